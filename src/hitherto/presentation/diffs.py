"""What an edit changed, line by line. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from hitherto.clean_text import clean_lines

LINES = 400
LARGEST = 200_000
"""Beyond so many characters lines are not compared: all of the old goes, all of the new comes."""
OLD = ("old_string", "old", "oldText", "old_str")
NEW = ("new_string", "new", "newText", "new_str")
WHOLE = ("content", "file_text")
FIELDS = {**dict.fromkeys(OLD, "removed"), **dict.fromkeys((*NEW, *WHOLE), "added")}
"""What becomes of the text in a field of an edit tool."""
_KINDS = {"+": "added", "-": "removed", "@": "place"}


class Line(NamedTuple):
    """A line of a diff: added, removed, a place, or the same as it was."""

    kind: str
    text: str


class Diff(NamedTuple):
    """The first lines, and how many more there are."""

    lines: tuple[Line, ...]
    more: int = 0
    too_long: bool = False
    """Whether the texts were too long to compare, so that the lines are all of them."""


def is_edit(given: Any) -> bool:
    """Whether a tool was asked to change a text."""
    return next(_changes(given), None) is not None


def of_call(given: Any, *, compare: bool = True) -> Diff | None:
    """The change that a tool was asked to make; None if it is no edit.

    Without `compare` all of the old goes and all of the new comes, as for texts that are too long to compare.
    """
    changes = list(_changes(given))
    lines = [line for old, new in changes for line in _compared(old, new, compare=compare)]
    return _diff(lines) if changes else None


def of_result(output: Any, *, compare: bool = True) -> Diff | None:
    """The change that a tool says it has made."""
    match output:
        case {"diff": {"oldText": str() | None as old, "newText": str(new)}}:
            diff = _diff(list(_compared(old or "", new, compare=compare)))
            return diff._replace(too_long=not compare or _is_too_long(old or "", new))
    return None


def _changes(given: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(given, dict):
        return
    edits = given.get("edits")
    for each in edits if isinstance(edits, list) else [given]:
        if isinstance(each, dict) and (new := _text(each, NEW)) is not None:
            yield _text(each, OLD) or "", new
    if (whole := _text(given, WHOLE)) is not None:
        yield "", whole


def _text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := given.get(name), str)), None)


def _compared(old: str, new: str, *, compare: bool) -> Iterator[Line]:
    before, after = clean_lines(old).splitlines(), clean_lines(new).splitlines()
    if not (before and after and compare) or _is_too_long(old, new):
        yield from (Line("removed", line) for line in before)
        yield from (Line("added", line) for line in after)
        return
    for line in islice(difflib.unified_diff(before, after, lineterm="", n=3), 2, None):
        kind = _KINDS.get(line[:1], "same")
        yield Line(kind, line if kind == "place" else line[1:])


def _is_too_long(old: str, new: str) -> bool:
    return len(old) + len(new) > LARGEST


def _diff(lines: list[Line]) -> Diff:
    return Diff(tuple(lines[:LINES]), max(0, len(lines) - LINES))
