"""Output: JSON, tables on a terminal, plain text in a pipe. Terminal sequences in content are removed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Literal

import msgspec

from hitherto.clean_text import clean as clean
from hitherto.clean_text import clean_json as clean_json
from hitherto.clean_text import clean_lines as clean_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def json_text(value: Any) -> str:
    """One line of ASCII JSON. Structs are written with all their fields."""
    return json.dumps(_plain(value))


def _write(line: str, stream: IO[str]) -> None:
    """Not with click, which would write into the progress bar."""
    stream.write(f"{line}\n")
    stream.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Output:
    """Where a command prints. `json` and `terminal` select one of three forms."""

    def __init__(self, *, as_json: bool) -> None:
        self.json = as_json
        self.terminal = not as_json and sys.stdout.isatty()

    def document(self, value: Any) -> None:
        """Print a value as one line of JSON."""
        _write(json_text(value), sys.stdout)

    def line(self, text: str) -> None:
        """Print one line."""
        _write(clean(text), sys.stdout)

    def row(self, *fields: object) -> None:
        """Print tab-separated fields; None is an empty field."""
        _write("\t".join("" if field is None else clean(str(field)) for field in fields), sys.stdout)

    def text(self, text: str) -> None:
        """Print lines."""
        _write(clean_lines(text), sys.stdout)

    def note(self, text: str) -> None:
        """Print a line to stderr."""
        _write(clean(text), sys.stderr)

    @cached_property
    def console(self) -> Console:
        """The terminal."""
        return plain_console()

    def draw(self, *renderables: RenderableType) -> None:
        """Print to the terminal."""
        self.console.print(*renderables)
        self.console.file.flush()

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        widths: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Draw a table on the terminal. Columns have the given widths; the elastic ones among the others shrink if there is not
        enough room."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(
                name,
                justify="right" if name in NUMBERS else "left",
                no_wrap=name not in ELASTIC or name in widths,
                width=widths.get(name),
            )
        for row in rows:
            table.add_row(*(Text(clean(cell), no_wrap=True, overflow="ellipsis") for cell in row))
        self.draw(table)


def plain_console(*, stderr: bool = False) -> Console:
    """A console that prints text literally, in colours unless `NO_COLOR` is set."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    system: Literal["auto"] | None = None if plain else "auto"
    return Console(color_system=system, stderr=stderr, markup=False, highlight=False, emoji=False)


def fitted(text: str, columns: int | None = None) -> str:
    """The text, cut to the width of the terminal or to so many columns."""
    from rich.cells import cell_len, set_cell_size

    width = (shutil.get_terminal_size().columns - 1) if columns is None else columns
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 1)).rstrip()}…"


NUMBERS = frozenset({"#", "MESSAGES", "SIZE", "TOKENS", "CONTEXT", "COST"})
ELASTIC = frozenset({"TITLE", "FOLDER", "MARKS", "VALUE"})


Advance = Callable[[int], None]


@contextmanager
def progress(label: str, total: int | None, *, hidden: bool = False) -> Iterator[Advance]:
    """Show a progress bar; the yielded function advances it. Without a total, it only shows activity."""
    if hidden or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, markup=False, highlight=False)
    # Output to the same terminal is printed above the bar; other output goes where it belongs.
    same = sys.stdout.isatty()
    with Progress(console=console, transient=True, redirect_stdout=same) as bar:
        task = bar.add_task(label, total=total)
        yield lambda step: bar.advance(task, step)
