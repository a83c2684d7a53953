"""Text that arrives in pieces: cleaned as if it were whole, and indented."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hitherto.cli.terminal.output import clean_lines

MARGIN = "  "
TAB = 4

LONGEST_SEQUENCE = 512
# An unfinished terminal sequence or line break at the end of a piece.
_BEGUN = re.compile(
    "(?:"
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*\x1b?"
    "|\x1b[ -/]*"
    "|\r"
    ")\\Z"
)
_RUNS = re.compile(r"\n|[^\S\n]+|\S+")


class Cleaner:
    """Cleans pieces so that together they equal `clean_lines` of the whole text. An unfinished terminal sequence waits for
    the next piece."""

    def __init__(self) -> None:
        self._held = ""

    def clean(self, piece: str) -> str:
        """The text that can be shown now."""
        text = self._held + piece
        tail = max(0, len(text) - LONGEST_SEQUENCE)
        begun = _BEGUN.search(text, tail)
        end = begun.start() if begun else len(text)
        self._held = text[end:]
        return clean_lines(text[:end])

    def rest(self) -> str:
        """The text that was held back, at the end of the stream."""
        held, self._held = self._held, ""
        return clean_lines(held)


class Margin:
    """Indents text and wraps lines at the width (None: no wrapping)."""

    def __init__(self, measure: Callable[[str], int] = len) -> None:
        self._measure = measure
        self._column = 0

    @property
    def at_start(self) -> bool:
        """True at the start of a line."""
        return self._column == 0

    def set(self, text: str, width: int | None = None) -> str:
        """The next piece, indented and wrapped."""
        return "".join(self._set(text, width))

    def _set(self, text: str, width: int | None) -> Iterator[str]:
        room = None if width is None else max(1, width - len(MARGIN))
        for run in _RUNS.findall(text):
            if run == "\n":
                yield self._broken()
            elif run.isspace():
                yield from self._blank(run, room)
            else:
                yield from self._word(run, room)

    def _blank(self, blank: str, room: int | None) -> Iterator[str]:
        for char in blank:
            wide = TAB - self._column % TAB if char == "\t" else 1
            if room is not None and self._column + wide > room:
                yield self._broken()
                return
            yield self._placed(" " * wide if char == "\t" else char, wide)

    def _word(self, word: str, room: int | None) -> Iterator[str]:
        wide = self._measure(word)
        if room is None or self._column + wide <= room:
            yield self._placed(word, wide)
            return
        if self._column and wide <= room:
            yield self._broken()
            yield self._placed(word, wide)
            return
        for char in word:
            wide = self._measure(char)
            if self._column and self._column + wide > room:
                yield self._broken()
            yield self._placed(char, wide)

    def _placed(self, text: str, wide: int) -> str:
        start = MARGIN if self.at_start else ""
        self._column += wide
        return start + text

    def _broken(self) -> str:
        self._column = 0
        return "\n"
