"""Output: JSON, tables on a terminal, plain text in a pipe. Terminal sequences in content are removed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import StringIO
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import msgspec

from hitherto.clean_text import clean as clean
from hitherto.clean_text import clean_json as clean_json
from hitherto.clean_text import clean_lines as clean_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segments


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
        self._in_pager = False

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
        """Print a line to stderr; in a pager, below the rest."""
        if self._in_pager:
            from rich.text import Text

            self.draw(Text(clean(text), "dim"))
        else:
            _write(clean(text), sys.stderr)

    @cached_property
    def console(self) -> Console:
        """The terminal, or what a pager is to show."""
        return plain_console()

    @contextmanager
    def paged(self, *, wanted: bool = True) -> Iterator[None]:
        """Show all that is printed within it with the pager of `PAGER`, else with less: on a terminal, if there is one."""
        command = pager_command() if wanted and self.terminal else None
        if command is None:
            yield
            return
        before, self.console = self.console, plain_console(file=StringIO(), width=self.console.width)
        self._in_pager = True
        try:
            yield
        finally:
            paged, self.console, self._in_pager = self.console, before, False
        _show_in_pager(command, cast(StringIO, paged.file).getvalue())

    def draw(self, *renderables: RenderableType) -> None:
        """Print to the terminal."""
        self.console.print(*renderables)
        self.console.file.flush()

    def draw_line(self, line: Segments) -> None:
        """Print one line that is as long as it is."""
        self.console.print(line, end="", soft_wrap=True)
        self.console.print()
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


def plain_console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that prints text literally, in colours unless `NO_COLOR` is set. A `file` is for a terminal too."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    system: Literal["auto", "standard"] | None = None if plain else "auto" if file is None else "standard"
    return Console(
        color_system=system,
        stderr=stderr,
        file=file,
        width=width,
        force_terminal=None if file is None else True,
        markup=False,
        highlight=False,
        emoji=False,
    )


def pager_command(environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The pager of `PAGER`, else less; None if there is none or it only copies."""
    words = shlex.split(environ.get("PAGER", PAGER))
    return None if not words or words[0] == "cat" or shutil.which(words[0]) is None else words


def _show_in_pager(command: Sequence[str], text: str) -> None:
    """^C is for the pager alone."""
    environ = {"LESS": LESS, "LESSCHARSET": "utf-8", **os.environ}
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(command, input=text, encoding="utf-8", errors="replace", env=environ, check=False)  # noqa: S603 - the user's own pager
    except BrokenPipeError:
        pass
    finally:
        signal.signal(signal.SIGINT, before)


def fitted(text: str, columns: int | None = None) -> str:
    """The text, cut to the width of the terminal or to so many columns."""
    from rich.cells import cell_len, set_cell_size

    width = (shutil.get_terminal_size().columns - 1) if columns is None else columns
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 1)).rstrip()}…"


PAGER = "less"
LESS = "FRX"
"""Of less: leave at once if all fits on the screen, show colours, leave what was shown on the screen."""
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
