"""An edit as a value, and the lines that separate two texts."""

from __future__ import annotations

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


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, whatever ends them."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return tuple(lines[:MOST_LINES])


def compared(old: str, new: str) -> tuple[Hunk, ...]:
    """What separates two texts, which may be pieces of a file, line by line."""
    before, after = lines_of(old), lines_of(new)
    if old and new and old.endswith("\n") != new.endswith("\n"):
        # A piece that ends with a line end, in place of one that does not, leaves an empty line behind it.
        before, after = (*before, *[""] * old.endswith("\n")), (*after, *[""] * new.endswith("\n"))
    start, least = 0, min(len(before), len(after))
    while start < least and before[start] == after[start]:
        start += 1
    end = 0
    while end < least - start and before[-1 - end] == after[-1 - end]:
        end += 1
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if not before or not after or len(before) + len(after) > COMPARED_LINES:
        return (Hunk(before, after),) if before or after else ()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return tuple(Hunk(before[a:b], after[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal")
