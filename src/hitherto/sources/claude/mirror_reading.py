"""Reading what is mirrored of a transcript, together with its file if there is one, as sync reads the file.

The two have the same records, unless the mirror missed some or a session went on elsewhere: what either has is read once.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.claude.foreign_files import encoded
from hitherto.claude.paths import session_folder
from hitherto.errors import Conflict
from hitherto.model import MIRROR_READ, MIRRORED, Filter, Json, Principal, Session
from hitherto.ports import RawCopy, Reader, Writer
from hitherto.service import Sessions, SyncResult
from hitherto.service.catalog.projects import project_of_folder
from hitherto.service.history.mirrored import count_records, load_records
from hitherto.service.records import require_session
from hitherto.service.transfer.synced import MirrorMark
from hitherto.service.validation import checked_owner
from hitherto.sources.claude import parse, records
from hitherto.sources.claude.beside import LongOutput, copies_beside, output_among, output_beside
from hitherto.sources.claude.files import AgentNotes, TranscriptFile, agent_notes_in
from hitherto.sources.claude.mirror_key import TranscriptKey, key_of
from hitherto.sources.claude.mirror_session import in_shape, mirrors_out_of_shape
from hitherto.sources.claude.parse import State
from hitherto.sources.claude.source import NAME, TranscriptOrigin, origin_of, reading_of
from hitherto.sources.port import Reading
from hitherto.sources.shared.files import FoundFile, joined_copies, path_of, raw_copies, read_whole
from hitherto.sources.shared.growing_file import complete_length

ATTEMPTS = 50
"""How often reading is begun anew because another process has read more meanwhile."""
REMEMBERED = 64
"""Of how many transcripts it is remembered how to read on."""
METADATA = "agent_metadata"


class _File(NamedTuple):
    """The file of a transcript: its bytes, what is known beside them, and how to find long outputs."""

    data: bytes
    origin: TranscriptOrigin
    output: LongOutput
    raw: Sequence[RawCopy] = ()


class _Mirror(NamedTuple):
    """What is mirrored of a session: all records, or those from `start` on."""

    session: Session
    key: TranscriptKey
    records: list[Json]
    total: int
    start: int = 0

    @property
    def before(self) -> tuple[int, ...] | None:
        known = self.session.meta.get(MIRROR_READ)
        return None if known is None else tuple(known)


class _Progress(NamedTuple):
    """Up to which record a mirror was read, and how to go on from there."""

    total: int
    state: State


class _Read(NamedTuple):
    """What was read, the mark of having read that, and how to go on; None if it has to be read whole."""

    reading: Reading
    after: tuple[int, ...]
    state: State | None = None


class MirrorReader:
    """Reads mirrors into their sessions. It remembers where it stopped: a mirror that grows is not read again and again."""

    def __init__(self, sessions: Sessions, who: Principal) -> None:
        self._sessions, self._who = sessions, who
        self._progress: OrderedDict[str, _Progress] = OrderedDict()

    async def read(self, session_id: str, found: TranscriptFile | None = None) -> SyncResult:
        """Make a session what its mirror says, and its file: the one that was found, or the one that sync read before."""
        for _ in range(ATTEMPTS):
            known = None if found else self._progress.pop(session_id, None)
            mirror = await self._load(session_id, known)
            if mirror is None:
                return SyncResult()
            file = await asyncio.to_thread(_read_file, found) if found else await self._known_file(mirror)
            read = _read_both(mirror, file) if file else _read_mirror(mirror, known)
            if read is None:
                continue
            result = await self._sync(mirror, read)
            if not result.mirrored:
                self._remember(session_id, mirror.total, read.state)
                return result
        raise Conflict(f"session {session_id!r} is read by others all the time")

    async def catch_up(self, *, everything: bool) -> None:
        """Bring what earlier versions of the program kept into the shape of now, and read it; with `everything`, read all
        mirrors again."""
        core, owner = self._sessions.core, checked_owner(self._who)

        async def shape(name: str, tx: Writer) -> str | None:
            record = await tx.session(owner, name)
            shaped = None if record is None else await in_shape(tx, record, core.now(), core.store.secret)
            return None if shaped is None else shaped.session.id

        names = await core.store.read(lambda tx: mirrors_out_of_shape(tx, owner))
        found = {await core.store.write(partial(shape, name)) for name in names}
        if everything:
            every = self._sessions.catalog.every(self._who, Filter(source=NAME, archived="include"))
            found |= {session.id async for session in every if MIRRORED in session.meta}
        for name in sorted(filter(None, found)):
            await self.read(name)

    async def _load(self, session_id: str, known: _Progress | None) -> _Mirror | None:
        async def work(tx: Reader) -> _Mirror | None:
            record = await require_session(tx, self._who, session_id)
            key = key_of(record.session)
            if key is None:
                return None
            read = record.session.meta.get(MIRROR_READ)
            start = known.total if known is not None and read == list(_mark(known.total)) else 0
            found = await load_records(tx, record, start, links=True)
            return _Mirror(record.session, key, found, await count_records(tx, record), start)

        return await self._sessions.core.store.read(work)

    async def _sync(self, mirror: _Mirror, read: _Read) -> SyncResult:
        reading, session = read.reading, mirror.session
        imported = replace(
            reading.imported,
            id=session.id,
            parent=session.parent or reading.imported.parent,
            mirror=MirrorMark(before=mirror.before, after=read.after),
        )
        if self._who.local and imported.cwd is not None and session.project is None:
            where = await project_of_folder(self._sessions.projects, imported.cwd, self._who)
            imported = replace(imported, project=where["project"])
        return await self._sessions.transfer.sync(
            self._who,
            imported,
            reading.entries,
            extends=reading.extends,
            amended=reading.amended,
            compactions=reading.compactions,
            branches=reading.branches,
            raw=reading.raw,
            revive=True,
        )

    def _remember(self, session_id: str, total: int, state: State | None) -> None:
        if state is None:
            return
        self._progress[session_id] = _Progress(total, state)
        while len(self._progress) > REMEMBERED:
            self._progress.popitem(last=False)

    async def _known_file(self, mirror: _Mirror) -> _File | None:
        """The file that sync has read, or what is kept of it; None if there was none."""
        path = path_of(mirror.session)
        if not path.name:
            return None
        found = await asyncio.to_thread(_file_at, path, mirror.key)
        if found is not None:
            return (await asyncio.to_thread(_read_file, found))._replace(raw=())
        copies = await self._sessions.transfer.raw(self._who, mirror.session.id)
        data = joined_copies(copies)
        origin = _origin(mirror)._replace(path=path)
        return _File(data, origin, partial(output_among, copies)) if data else None


def _read_mirror(mirror: _Mirror, known: _Progress | None) -> _Read | None:
    """What the records say, or those that came since; None if these change what was read before."""
    state = known.state if known is not None and mirror.start else None
    parsed = parse.parse(b"".join(_lines(mirror)), state)
    if parsed.change == "rebuild":
        return None
    return _Read(reading_of(parsed, _origin(mirror), _no_output), _mark(mirror.total), parsed.state)


def _read_both(mirror: _Mirror, file: _File) -> _Read:
    """What the file says, and behind that what only the mirror has."""
    own, told = _origin(mirror), file.origin
    if told.agent_notes == AgentNotes():
        told = told._replace(agent_notes=own.agent_notes)
    parsed = parse.parse(file.data + b"".join(_missing(file.data, _lines(mirror))))
    reading = reading_of(parsed, told, file.output)._replace(raw=file.raw, size=len(file.data))
    return _Read(reading, _mark(mirror.total, len(file.data)))


def _mark(total: int, file: int = 0) -> tuple[int, ...]:
    return parse.VERSION, total, file


def _lines(mirror: _Mirror) -> list[bytes]:
    return [encoded(each) for each in mirror.records if each.get("type") != METADATA]


def _origin(mirror: _Mirror) -> TranscriptOrigin:
    notes = [agent_notes_in(each) for each in mirror.records if each.get("type") == METADATA]
    key, at = mirror.key, mirror.session.updated_at
    return TranscriptOrigin(key.session_id, key.agent, at, agent_notes=notes[-1] if notes else AgentNotes())


def _missing(data: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    """The lines whose records are not in a file."""
    known = {_identity(line) for line in data.split(b"\n") if line}
    for line in lines:
        if _identity(line) not in known:
            yield line


def _identity(line: bytes) -> object:
    """What a record is known by: its uuid, or all of it."""
    record = records.read(line)
    if record is not None and record.uuid:
        return record.uuid
    try:
        return json.dumps(json.loads(line), sort_keys=True)
    except (ValueError, RecursionError):
        return line


def _no_output(_: str) -> bytes | None:
    return None


def _file_at(path: Path, key: TranscriptKey) -> TranscriptFile | None:
    """The transcript in a file; None if it is gone."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    stamp = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    file = FoundFile(str(path), path.name, stamp)
    noted = int(key.agent is None and session_folder(path).is_dir())
    return TranscriptFile(file, path.parent.name, key.session_id, key.agent, noted)


def _read_file(found: TranscriptFile) -> _File:
    data = read_whole(found.path)
    data = data[: complete_length(data)]
    raw = [*raw_copies(data), *copies_beside(found, None)]
    ended = data if not data or data.endswith(b"\n") else data + b"\n"
    return _File(ended, origin_of(found), partial(output_beside, found), raw)
