"""What reaches the user: JSON, tables on a terminal, plain text in a pipe, and nothing that could command a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Sequences that colour, move or name things; a string without its end is not one, or it would hide all that follows.
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]+[0-~]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
# They turn the direction of the text around them, or are letters that nobody sees.
_UNSEEN = (
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[{_CONTROLS}{_UNSEEN}]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACES = re.compile("[\t\n]+")


def clean(text: str) -> str:
    """The text in one line without terminal sequences, control, direction and unseen characters."""
    return _SPACES.sub(" ", clean_lines(text))


def clean_lines(text: str) -> str:
    """The same for a text of several lines; newlines and tabs stay."""
    text = _BREAKS.sub("\n", _SEQUENCES.sub("", text))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _UNSAFE.sub("", text))


def clean_json(line: bytes) -> str:
    """A line of JSON in which the same characters are escapes; it means what it meant."""
    return _UNSAFE.sub(_escape, line.decode("utf-8", "replace"))


def json_text(value: Any) -> str:
    """JSON in one line of ASCII. Values of the model show all their fields."""
    return json.dumps(_plain(value))


def _write(line: str, stream: IO[str]) -> None:
    """Not by click, which would write past the progress bar and into it."""
    stream.write(f"{line}\n")
    stream.flush()


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


class Output:
    """Where a command prints. `json` and `terminal` say which of the three forms is wanted."""

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
        """Print fields separated by tabs; what is not known is an empty field."""
        _write("\t".join("" if field is None else clean(str(field)) for field in fields), sys.stdout)

    def text(self, text: str) -> None:
        """Print lines."""
        _write(clean_lines(text), sys.stdout)

    def note(self, text: str) -> None:
        """Say something beside the output, on stderr."""
        _write(clean(text), sys.stderr)

    @cached_property
    def console(self) -> Console:
        """The terminal."""
        from rich.console import Console

        plain = bool(os.environ.get("NO_COLOR"))
        return Console(color_system=None if plain else "auto", markup=False, highlight=False, emoji=False)

    def draw(self, *shown: RenderableType) -> None:
        """Print to the terminal."""
        self.console.print(*shown)
        self.console.file.flush()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Draw a table on the terminal; where there is not enough room, the elastic columns give way."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(
                name, justify="right" if name in NUMBERS else "left", no_wrap=name not in ELASTIC
            )
        for row in rows:
            table.add_row(*(Text(clean(cell), no_wrap=True, overflow="ellipsis") for cell in row))
        self.draw(table)


NUMBERS = frozenset({"MESSAGES", "SIZE", "TOKENS"})
ELASTIC = frozenset({"TITLE", "FOLDER", "MARKS", "VALUE"})
