"""Taking every transcript of Claude Code into the store, reading only what is new. Its files are never changed."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.claude.places import TRANSCRIPT
from recollect.errors import AlreadyExists, InvalidInput, RecollectError
from recollect.limits import RAW_BYTES
from recollect.model import Json, Principal, Session, Value, encode
from recollect.ports import RawCopy
from recollect.service import Imported, Sessions, Taken
from recollect.service.boundaries import Summarised
from recollect.sources import claude, claude_files
from recollect.sources.claude import Parsed, State
from recollect.sources.claude_files import Found, Piece
from recollect.sources.ledger import Ledger, Seen
from recollect.titles import title_from

SOURCE = "claude"
LARGEST_FILE = 1 << 30
AT_ONCE = 16
MS = 1_000_000

Advance = Callable[[int], None]


class Report(Value, frozen=True):
    """What a sync did, in numbers of sessions (children count) and of records."""

    found: int = 0
    unchanged: int = 0
    new: int = 0
    updated: int = 0
    kept: int = 0
    refused: int = 0
    parsed_files: int = 0
    parsed_bytes: int = 0
    damaged_records: int = 0
    unknown_records: int = 0
    failed: tuple[str, ...] = ()


class _Read(NamedTuple):
    """What was read of a file: from `start` on, and what it means."""

    found: Found
    piece: Piece
    start: int
    parsed: Parsed

    @property
    def consumed(self) -> bytes:
        return self.piece.data[: self.parsed.state.offset - self.start]


class Sync:
    """One run of a sync; `advance` is told of each file that is done. With `revive`, sessions that were deleted here
    are taken in too."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        ledger: Ledger,
        advance: Advance = lambda _: None,
        *,
        revive: bool = False,
    ) -> None:
        self._sessions = sessions
        self._who = who
        self._ledger = ledger
        self._advance = advance
        self._revive = revive
        self._counts = Counter[str]()
        self._failed: list[str] = []

    async def run(self, found: list[Found]) -> Report:
        """Take in what changed among these files; mark sessions whose files are gone."""
        seen = self._ledger.seen()
        await self._vanished(seen, {str(file.path) for file in found})
        room = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            for file in found:
                known = seen.get(str(file.path))
                if known is not None and known[:5] == _stat(file):
                    self._counts["unchanged"] += 1
                    self._advance(1)
                    continue
                await room.acquire()
                tasks.create_task(self._one(file, known, room))
        return Report(found=len(found), failed=tuple(self._failed), **self._counts)

    async def _one(self, file: Found, known: Seen | None, room: asyncio.Semaphore) -> None:
        try:
            read = self._read(file, known)
            if read is not None:
                await self._take(read, known)
        except (OSError, RecollectError, ValueError) as error:
            self._failed.append(f"{file.path.name}: {error}")
        finally:
            room.release()
            self._advance(1)

    def _read(self, file: Found, known: Seen | None) -> _Read | None:
        if file.size > LARGEST_FILE:
            raise ValueError(f"larger than {LARGEST_FILE} bytes")
        state = self._state(file, known)
        if state is not None:
            piece = claude_files.read_on(file.path, state)
            parsed = None if piece is None else claude.parse(piece.data, state)
            if piece is not None and parsed is not None and parsed.change != "rebuild":
                return self._counted(_Read(file, piece, state.offset, parsed))
        piece = claude_files.read_whole(file.path)
        return self._counted(_Read(file, piece, 0, claude.parse(piece.data)))

    def _state(self, file: Found, known: Seen | None) -> State | None:
        """How to go on with the file, if it is the one that was read and has only grown."""
        if (
            known is None
            or (known.device, known.inode) != (file.device, file.inode)
            or file.size < known.size
        ):
            return None
        kept = self._ledger.state(str(file.path))
        return None if kept is None else claude.load_state(kept)

    def _counted(self, read: _Read) -> _Read:
        self._counts["parsed_files"] += 1
        self._counts["parsed_bytes"] += len(read.piece.data)
        return read

    async def _take(self, read: _Read, known: Seen | None) -> None:
        """Take in what was read, then note it: a crash in between only means doing it again."""
        imported = imported_from(read.found, read.parsed)
        seen = Seen(*_stat(read.found), imported.id)
        if read.parsed.total:
            taken = await self._sessions.take_in(
                self._who,
                imported,
                read.parsed.entries,
                extends=read.parsed.change == "extends",
                amended=read.parsed.amended,
                compactions=list(_summarised(read.parsed)),
                raw=list(_raw(read)),
                revive=self._revive,
            )
            self._tell(taken, read.parsed, is_new=known is None)
        self._ledger.put(str(read.found.path), seen, encode(read.parsed.state))

    def _tell(self, taken: Taken, parsed: Parsed, *, is_new: bool) -> None:
        if taken.refused:
            self._counts["refused"] += 1
            return
        if taken.created:
            self._counts["new"] += 1
        elif taken.appended or taken.reshaped or not is_new:
            self._counts["updated"] += 1
        else:
            self._counts["unchanged"] += 1
        self._counts["damaged_records"] += _damaged(parsed)
        self._counts["unknown_records"] += sum(parsed.info.unknown.values())

    async def _vanished(self, seen: dict[str, Seen], there: set[str]) -> None:
        for path, known in seen.items():
            if path not in there:
                if await self._sessions.mark_source(self._who, known.session, gone=True):
                    self._counts["kept"] += 1
                self._ledger.forget(path)


def imported_from(found: Found, parsed: Parsed) -> Imported:
    """The session that a transcript tells of."""
    info = parsed.info
    at = found.mtime_ns // MS
    notes = claude_files.notes(found) if found.agent is None else claude_files.Notes()
    updated = info.updated_at or at
    archived = bool(notes.archived) and (notes.archived_at is None or updated <= notes.archived_at)
    return Imported(
        id=_session_id(found, parsed),
        source=SOURCE,
        created_at=min(info.created_at or at, updated),
        updated_at=updated,
        cwd=info.cwd if info.cwd and info.cwd.startswith("/") else None,
        title=notes.custom_title or info.title or title_from(info.first_prompt or ""),
        tags=info.tags,
        agent_id="claude-code",
        parent=claude.session_id(_parent(found, parsed)) if found.agent is not None else None,
        archived=archived,
        meta=_meta(found, parsed),
    )


def _summarised(parsed: Parsed) -> Iterator[Summarised]:
    for each in parsed.compactions:
        if each.summary is not None:
            yield Summarised(summary=each.summary, kept=each.kept, until=each.boundary)


def _session_id(found: Found, parsed: Parsed) -> str:
    if found.agent is not None:
        return claude.child_id(_parent(found, parsed), found.agent)
    return claude.session_id(found.session or parsed.info.session_id or found.path.stem)


def _parent(found: Found, parsed: Parsed) -> str:
    return found.session or parsed.info.session_id or "unknown"


def _meta(found: Found, parsed: Parsed) -> Json:
    """What else is known and worth showing; left out where it is not."""
    info = parsed.info
    meta: Json = {
        "path": str(found.path).encode("utf-8", "replace").decode(),
        "git_branch": info.git_branch,
        "models": list(info.models),
        "usage": None if info.usage is None else msgspec.to_builtins(info.usage),
        "cost": info.cost,
        "version": info.version,
        "entrypoint": info.entrypoint,
        "continued_in": info.continued_in,
        "unknown_records": info.unknown,
        "damaged_records": _damaged(parsed),
    }
    if found.agent is not None:
        said = claude_files.agent_notes(found)
        meta |= {"agent": found.agent, "agent_type": said.agent_type, "tool_use_id": said.tool_use_id}
        meta["description"] = said.description
    return {name: value for name, value in meta.items() if value}


def _damaged(parsed: Parsed) -> int:
    damage = parsed.info.damage
    return damage.unreadable + damage.spliced + damage.nul_runs + damage.bad_utf8 + damage.overlong


def _stat(found: Found) -> tuple[int, int, int, int, int]:
    return found.device, found.inode, found.size, found.mtime_ns, found.noted_ns


def _raw(read: _Read) -> Iterator[RawCopy]:
    """The exact bytes that were read, named by where they stand in the file."""
    data = read.consumed
    for start in range(0, len(data), RAW_BYTES):
        yield RawCopy(f"{read.start + start:015d}", data[start : start + RAW_BYTES])


async def original(sessions: Sessions, who: Principal, session_id: str) -> bytes:
    """The transcript that a session was read from, as far as it was read."""
    return b"".join(copy.data for copy in await sessions.raw(who, session_id))


def _nearest(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.is_dir())


async def changes_of(folder: Path) -> AsyncIterator[None]:
    """Something may have changed under the folder; at least once at the beginning.

    While there is no such folder, the nearest one above it is watched.
    """
    from watchfiles import awatch  # here: only who watches needs it

    yield
    nearest, began = _nearest(folder), False
    watch = awatch(
        nearest, debounce=400, step=50, recursive=nearest == folder, rust_timeout=500, yield_on_timeout=True
    )
    async for changes in watch:
        # Once more when the watch has begun: what changed between the first look and that would be missed.
        if changes or not began:
            yield
        began = True


def write_back(config_home: Path, session: Session, data: bytes) -> Path:
    """Write a transcript where it was, below the agent's folder; `AlreadyExists` if a file is there."""
    projects = config_home / "projects"
    path = Path(str(session.meta.get("path", "")))
    if not path.is_relative_to(projects) or ".." in path.parts or path.suffix != TRANSCRIPT:
        raise InvalidInput(f"the transcript of {session.id!r} was not in {projects}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyExists(f"{path.name} is there; nothing was written") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    return path
