"""An edit as a value, and the lines that separate two texts."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from hitherto.model import Value

Kind = Literal["edit", "create", "write", "delete", "move"]
"""`write` replaces a whole file of which nobody knows what was in it before; `create` makes a new one."""
MOST_LINES = 20_000
"""Of a longer text, only so many lines are looked at."""
COMPARED_LINES = 2_000
"""Beyond so many lines texts are not compared: all of the old goes, all of the new comes."""


class Hunk(NamedTuple):
    """Lines that took the place of others."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


class Edit(Value, frozen=True):
    """A change of one file. `path` is as the agent named it, `to` the new path of a file that was moved.

    An edit without hunks is known to have changed the file, but not how.
    """

    path: str
    kind: Kind
    hunks: tuple[Hunk, ...] = ()
    to: str | None = None

    @property
    def added(self) -> int:
        """How many lines it added."""
        return sum(len(hunk.added) for hunk in self.hunks)

    @property
    def removed(self) -> int:
        """How many lines it removed."""
        return sum(len(hunk.removed) for hunk in self.hunks)


def all_lines(text: str) -> list[str]:
    """The lines of a text, whatever ends them."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text that an edit has, as far as they are looked at."""
    return tuple(all_lines(text)[:MOST_LINES])


def compared(old: str, new: str) -> tuple[Hunk, ...]:
    """What separates two texts, which may be pieces of a file, line by line."""
    before, after = lines_of(old), lines_of(new)
    if old and new and old.endswith("\n") != new.endswith("\n"):
        # A piece that ends with a line end, in place of one that does not, leaves an empty line behind it.
        before, after = (*before, *[""] * old.endswith("\n")), (*after, *[""] * new.endswith("\n"))
    return tuple(Hunk(before[a:b], after[c:d]) for a, b, c, d in differences(before, after))


def differences(
    before: Sequence[str], after: Sequence[str], most: int = COMPARED_LINES
) -> list[tuple[int, int, int, int]]:
    """Where lines differ: in place of those from `a` to `b` stand those from `c` to `d`, for each (a, b, c, d). More than `most` lines
    that are not the same at the beginning or the end differ as a whole."""
    start, least = 0, min(len(before), len(after))
    while start < least and before[start] == after[start]:
        start += 1
    end = 0
    while end < least - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if not old or not new or len(old) + len(new) > most:
        return [(start, start + len(old), start, start + len(new))] if old or new else []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (a + start, b + start, c + start, d + start)
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    ]
