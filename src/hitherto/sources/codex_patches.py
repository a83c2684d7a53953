"""Codex's patches as what goes and what comes: `{"path", "old_string", "new_string"}` for each place. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hitherto.model import Json
from hitherto.sources.codex_records import text

BEGIN = "*** Begin Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")


def of_patch(patch: str) -> Json | None:
    """A patch in the language of `apply_patch` as the input of an edit; None if it is none."""
    if BEGIN not in patch:
        return None
    paths, edits, lines = list[str](), list[Json](), list[str]()
    for line in [*patch.partition(BEGIN)[2].splitlines(), "*** End Patch"]:
        if not line.startswith("*** "):
            lines.append(line)
            continue
        edits += _edits(paths[-1], lines) if paths else ()
        lines = []
        if name := next((each for each in _FILES if line.startswith(each)), None):
            paths.append(line.removeprefix(name).strip())
    return _input(paths, edits)


def of_changes(changes: Any) -> Json | None:
    """Changed files as the input of an edit; None if there are none."""
    if not isinstance(changes, dict):
        return None
    paths, edits = list[str](), list[Json]()
    for path, change in changes.items():
        paths.append(path)
        edits += _change(path, change) if isinstance(change, dict) else ()
    return _input(paths, edits)


def paths_of(given: Any) -> tuple[Json, ...]:
    """The files that an edit is about."""
    edits = given.get("edits") if isinstance(given, dict) else None
    named = [text(each, "path") for each in (given, *edits)] if isinstance(edits, list) else []
    return tuple({"path": path} for path in dict.fromkeys(filter(None, named)))


def _input(paths: list[str], edits: list[Json]) -> Json | None:
    return {"path": paths[0], "edits": edits} if paths else None


def _change(path: str, change: Json) -> Iterator[Json]:
    kind, content = text(change, "type"), text(change, "content") or ""
    match kind or next(iter(change), None):
        case "add":
            yield _edit(path, "", content or text(change.get("add"), "content") or "")
        case "delete":
            yield _edit(path, content or text(change.get("delete"), "content") or "", "")
        case "update":
            told = change if kind else change.get("update")
            yield from _edits(path, (text(told, "unified_diff") or "").splitlines())


def _edits(path: str, lines: list[str]) -> Iterator[Json]:
    """One edit for each stretch of lines behind a `@@`."""
    old, new = list[str](), list[str]()
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield _edit(path, "\n".join(old), "\n".join(new))
            old, new = [], []
        elif not line.startswith(("--- ", "+++ ", "\\")):
            old += [line[1:]] if line[:1] != "+" else []
            new += [line[1:]] if line[:1] != "-" else []


def _edit(path: str, old: str, new: str) -> Json:
    return {"path": path, "old_string": old, "new_string": new}
