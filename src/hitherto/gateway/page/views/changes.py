"""`/changes`: what a session changed in files; without a session, the files that were changed last, or who changed one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hitherto.clean_text import clean_lines
from hitherto.edits.changes import FileChange, FileEdit, FileTouch, SessionChanges
from hitherto.edits.net import NetHunk, net_hunks
from hitherto.errors import NotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import Row, address, row
from hitherto.gateway.page.render.tool_card import ShownDiff, shown_diff
from hitherto.gateway.server.workers import Run
from hitherto.ids import now_ms
from hitherto.presentation.diffs import LINES, Diff, Line

FILES, ALL_LINES = 300, 4_000
"""So many files are shown at once, and so many lines of them; of the rest, the names are."""
TOUCHES = 100


class ShownHunk(NamedTuple):
    """A hunk, with the address and the time of the message that made it; `others` are those that changed it before."""

    address: str
    at: int
    diff: ShownDiff
    others: int


class ShownFile(NamedTuple):
    """A file that a session changed. `hunks` is None if it is not shown here; `idle` are edits that left nothing."""

    change: FileChange
    folder: str
    name: str
    kind: str
    hunks: list[ShownHunk] | None
    idle: list[tuple[str, int, str]]


async def changes(caller: Caller, query: Mapping[str, str], run: Run, _: bool) -> bytes:
    """Render the changes of a session, or those of all."""
    if "session" not in query:
        return await _touched(caller, query.get("file", "").strip())
    home = caller.sessions.at(query["session"])
    session = await home.get(caller.who, query["session"])
    found = await home.edits.changes(caller.who, session.id, file=query.get("file") or None)
    return await run(_render, row(session, now_ms()), found, query.get("file", ""))


async def _touched(caller: Caller, file: str) -> bytes:
    edits, now = caller.sessions.edits, now_ms()
    if file:
        touches = await edits.touched(caller.who, file, limit=TOUCHES)
    else:
        touches = await edits.recent(caller.who, limit=TOUCHES)
    rows: dict[str, Row] = {}
    for each in touches:
        try:
            if each.session not in rows:
                rows[each.session] = row(await caller.sessions.get(caller.who, each.session), now)
        except NotFound:
            continue
    shown: list[tuple[FileTouch, Row]] = [
        (each, rows[each.session]) for each in touches if each.session in rows
    ]
    return templates.page("touched.html", file=file, touches=shown)


def _render(shown: Row, found: SessionChanges, file: str) -> bytes:
    left, files = ALL_LINES, list[ShownFile]()
    for each in found.files[:FILES]:
        made = _shown(each, hidden=left <= 0)
        left -= sum(len(hunk.diff.lines) for hunk in made.hunks or ())
        files.append(made)
    return templates.page(
        "changes.html",
        row=shown,
        session=shown.session,
        changes=found,
        files=files,
        more=max(0, len(found.files) - FILES),
        file=file,
    )


def _shown(change: FileChange, *, hidden: bool) -> ShownFile:
    folder, _, name = change.path.rpartition("/")
    kinds = {edit.kind for edit in change.edits if not edit.failed}
    kind = next(
        (
            word
            for kind, word in (("delete", "deleted"), ("create", "new"), ("move", "moved"))
            if kind in kinds
        ),
        "",
    )
    hunks = None if hidden else [_hunk(change.path, each, whole=kind == "new") for each in net_hunks(change)]
    idle = [(_address(edit), edit.at, _why(edit)) for edit in change.edits if _why(edit)]
    return ShownFile(change, folder, name, kind, hunks, idle)


def _hunk(path: str, hunk: NetHunk, *, whole: bool) -> ShownHunk:
    lines = list(_lines(hunk, whole=whole and not hunk.removed))
    diff = Diff(tuple(lines[:LINES]), max(0, len(lines) - LINES))
    last = hunk.edits[-1]
    return ShownHunk(_address(last), last.at, shown_diff(diff, path), len(hunk.edits) - 1)


def _lines(hunk: NetHunk, *, whole: bool) -> Iterator[Line]:
    """The lines of a hunk; those of a file that was made here are numbered."""
    yield from (Line("removed", clean_lines(line)) for line in hunk.removed)
    for number, line in enumerate(hunk.added, 1):
        yield Line("added", clean_lines(line), number if whole else None)


def _address(edit: FileEdit) -> str:
    return address(edit.session, edit.message)


def _why(edit: FileEdit) -> str:
    """Why an edit left nothing that is shown; empty if it did."""
    known = {
        "failed": edit.failed,
        "undone": edit.undone,
        f"moved to {edit.to}": edit.kind == "move",
        "deleted the file": edit.kind == "delete" and not edit.hunks,
        "lines unknown": edit.kind == "edit" and not edit.hunks,
    }
    return next((word for word, holds in known.items() if holds), "")
