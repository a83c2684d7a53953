"""What sessions changed in files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from hitherto.edits.changes import EditCounts, FileChange, FileTouch
from hitherto.errors import TooLarge
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, ChangeCounts, ListLimit, Named, Params, Row, key_of
from hitherto.model import encode

R = TypeVar("R", bound=Row)
CHANGES_BYTES = 16 * 1024 * 1024


class GetChanges(Named, frozen=True, kw_only=True):
    """`file`: only files whose path ends with this. Without `lines`, edits come without their lines."""

    file: str | None = None
    lines: bool = True


class ListTouched(Params, frozen=True, kw_only=True):
    """`file`: only files whose path ends with this."""

    file: str | None = None
    limit: ListLimit = 100


class Touched(Answer, frozen=True, kw_only=True):
    """Files and the sessions that changed them, the newest edit first."""

    changes: tuple[FileTouch, ...]


class Changes(Answer, frozen=True, kw_only=True):
    """The files that the session and its subagents changed, with the lines that came and went from its first edit to its last,
    and each edit with its message."""

    session_key: str
    added: int
    removed: int
    files: tuple[FileChange, ...]


async def changes(call: Call[GetChanges]) -> Changes:
    """Get the files that a session changed, with what each of its edits added and removed."""
    found = await call.sessions.edits.changes(call.who, call.session.id, file=call.params.file)
    files = found.files if call.params.lines else tuple(map(_without_lines, found.files))
    answer = Changes(session_key=key_of(call.session), added=found.added, removed=found.removed, files=files)
    if len(encode(answer)) > CHANGES_BYTES:
        raise TooLarge(f"the changes exceed {CHANGES_BYTES} bytes: ask for one file, or without lines")
    return answer


async def touched(call: Call[ListTouched]) -> Touched:
    """List the files that sessions changed last; of a given file, the sessions that changed it."""
    edits, given = call.sessions.edits, call.params
    if given.file is None:
        return Touched(changes=tuple(await edits.recent(call.who, limit=given.limit)))
    return Touched(changes=tuple(await edits.touched(call.who, given.file, limit=given.limit)))


async def with_changes(call: Call[Any], rows: Iterable[R]) -> tuple[R, ...]:
    """Rows of sessions with how much each changed: one query for all."""
    listed = tuple(rows)
    counts = await call.sessions.edits.counts(call.who, [each.session_id for each in listed])
    changes = (counts.get(each.session_id, EditCounts()) for each in listed)
    told = (ChangeCounts(added=each.added, removed=each.removed, files=each.files) for each in changes)
    return tuple(replace(row, changes=each) for row, each in zip(listed, told, strict=True))


def _without_lines(file: FileChange) -> FileChange:
    return replace(file, edits=tuple(replace(edit, hunks=()) for edit in file.edits))
