"""Text that arrives in pieces: cleaned as if it were whole, and indented."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from hitherto.cli.terminal.output import clean_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
CLOSED_BY_A_BLANK_LINE = frozenset({"paragraph_open", "heading_open", "table_open"})
LONG = 2_000
"""Text of a block that is longer is looked at again when it has grown by an eighth, not at each line."""
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


class Blocks:
    """Divides Markdown that arrives in pieces into blocks, each of which is given when nothing can be added to it."""

    def __init__(self) -> None:
        self._text = ""
        self._enough = 0

    @property
    def lines(self) -> int:
        """How many lines wait for the end of their block."""
        return self._text.count("\n")

    def add(self, piece: str) -> list[str]:
        """The blocks that are whole with the next piece."""
        self._text += piece
        if "\n" not in piece or len(self._text) < self._enough:
            return []
        lines, starts = self._text.split("\n"), self._starts()
        blocks = ["\n".join(lines[start:end]) for start, end in pairwise(starts)]
        self._text = "\n".join(lines[starts[-1] :]) if starts else self._text
        self._enough = len(self._text) * 9 // 8 if len(self._text) > LONG else 0
        return blocks

    def rest(self) -> str:
        """What is left at the end of the message."""
        text, self._text, self._enough = self._text, "", 0
        return text

    def _starts(self) -> list[int]:
        """The lines at which blocks start; the last is the first that may not be whole. The rest of a line could change what
        it means, so only whole lines are looked at."""
        whole = self._text[: self._text.rindex("\n") + 1]
        tokens = self._parser.parse(whole)
        tops = [(token.map[0], token.type) for token in tokens if token.level == 0 and token.map]
        starts = [start for start, _ in tops]
        if tops and tops[-1][1] in CLOSED_BY_A_BLANK_LINE and whole.endswith("\n\n"):
            starts.append(self.lines)
        return starts

    @cached_property
    def _parser(self) -> MarkdownIt:
        from markdown_it import MarkdownIt

        return MarkdownIt().enable("table")
