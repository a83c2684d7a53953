"""What a session changed in files."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.edits.changes import FileChange
from hitherto.errors import TooLarge
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, key_of
from hitherto.model import encode

CHANGES_BYTES = 16 * 1024 * 1024


class GetChanges(Named, frozen=True, kw_only=True):
    """`file`: only files whose path ends with this. Without `lines`, edits come without their lines."""

    file: str | None = None
    lines: bool = True


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


def _without_lines(file: FileChange) -> FileChange:
    return replace(file, edits=tuple(replace(edit, hunks=()) for edit in file.edits))
