"""What an edit changed, line by line. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
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
_PLACE = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_KINDS = {"+": "added", "-": "removed", "@": "place"}


class Line(NamedTuple):
    """A line of a diff: added, removed, a place, or the same as it was. `number` is its own in the file, if that is known: in the
    old file of a line that was removed, else in the new one."""

    kind: str
    text: str
    number: int | None = None


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
    if len(changes) == 1 and _is_whole(given):
        lines = [line._replace(number=number) for number, line in enumerate(lines, 1)]
    return _diff(lines) if changes else None


def of_result(output: Any, *, compare: bool = True) -> Diff | None:
    """The change that a tool says it has made, with the numbers of its lines if the tool says where it is."""
    match output:
        case {"structuredPatch": [_, *_] as hunks}:
            return _diff(list(_of_hunks(hunks)))
        case {"fileDiff": str(patch)}:
            return _diff(list(_of_unified(patch)))
        case {"diff": {"oldText": str() | None as old, "newText": str(new)}}:
            diff = _diff(list(_compared(old or "", new, compare=compare)))
            return diff._replace(too_long=not compare or _is_too_long(old or "", new))
    return None


def _of_hunks(hunks: list[Any]) -> Iterator[Line]:
    """Claude Code's own account of an edit."""
    for hunk in hunks:
        match hunk:
            case {"oldStart": int(old), "newStart": int(new), "lines": list(lines)}:
                yield from _placed(old, new, (line for line in lines if isinstance(line, str)))


def _of_unified(diff: str) -> Iterator[Line]:
    """The lines of a unified diff of one file."""
    lines = iter(diff[:LARGEST].splitlines())
    place = next((found for line in lines if (found := _PLACE.match(line))), None)
    while place is not None:
        hunk, following = list[str](), None
        for line in lines:
            if following := _PLACE.match(line):
                break
            hunk.append(line)
        yield from _placed(int(place[1]), int(place[2]), hunk)
        place = following


def _placed(old: int, new: int, lines: Iterable[str]) -> Iterator[Line]:
    """The lines of a hunk, each with its number."""
    yield Line("place", f"@@ -{old} +{new} @@")
    for line in lines:
        kind = _KINDS.get(line[:1], "same")
        if line[:1] == "\\":  # no newline at the end of the file
            continue
        yield Line(kind, clean_lines(line[1:]), old if kind == "removed" else new)
        old += kind != "added"
        new += kind != "removed"


def _changes(given: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(given, dict):
        return
    edits = given.get("edits")
    for each in edits if isinstance(edits, list) else [given]:
        if isinstance(each, dict) and (new := _text(each, NEW)) is not None:
            yield _text(each, OLD) or "", new
    if (whole := _text(given, WHOLE)) is not None:
        yield "", whole


def _is_whole(given: Any) -> bool:
    """Whether a tool was asked to write a whole file."""
    return isinstance(given, dict) and _text(given, WHOLE) is not None and _text(given, NEW) is None


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
