"""Examining the transcript of a session, and writing a new session without what is wrong with it."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hitherto.claude.foreign_files import encoded, new_file
from hitherto.claude.list import get_session_info
from hitherto.claude.paths import TRANSCRIPT, session_folder
from hitherto.errors import HithertoError, InvalidInput, SessionNotFound
from hitherto.ids import now_ms, uuid7
from hitherto.model import CONTINUED_IN, CONTINUES, Json, Principal, Value
from hitherto.service import Sessions
from hitherto.sources import AGENTS
from hitherto.sources.codex.source import SessionRollouts
from hitherto.sources.handoff.continue_ import TARGETS
from hitherto.sources.handoff.transcripts import Heading, stamp
from hitherto.sources.mend import claude_records, codex_records
from hitherto.sources.mend.findings import Finding, Findings, MendedTranscript
from hitherto.sources.port import FoundSession, Source
from hitherto.sources.shared.files import path_text, read_whole
from hitherto.sources.shared.growing_file import decompress
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync

Mend = Callable[[bytes, Findings, str, str, Callable[[], str]], MendedTranscript]


class _Patient(NamedTuple):
    """A transcript that was found: where it is, and its bytes."""

    source: Source
    agent: str
    id: str
    path: Path
    data: bytes


class _Kind(NamedTuple):
    """An agent whose transcripts can be mended: how, where the new one goes, and the folder for files beside it."""

    mend: Mend
    place: Callable[[_Patient, str, int], Path]
    beside: Callable[[Path], Path]


class Examined(Value, frozen=True):
    """What is wrong with the transcript of a session. `mended` is the session that was written instead, if one was, in the
    file `mended_path`."""

    session: str
    path: str
    findings: tuple[Finding, ...]
    mended: str | None = None
    mended_path: str | None = None


def _claude_place(patient: _Patient, made: str, _: int) -> Path:
    return patient.path.with_name(f"{made}{TRANSCRIPT}")


def _codex_place(patient: _Patient, made: str, now: int) -> Path:
    home = AGENTS[patient.agent].home(os.environ)
    return TARGETS[patient.agent].place(home, Heading(made, "/", now, ""))


MENDABLE: dict[str, _Kind] = {
    "claude": _Kind(
        claude_records.mend, _claude_place, lambda path: session_folder(path) / claude_records.FOLDER
    ),
    "codex": _Kind(codex_records.mend, _codex_place, lambda path: path.with_suffix("")),
}
"""A new one is a module with `mend` and a line here."""


class TranscriptDoctor:
    """Examines and mends transcripts. Files that are there are never changed."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        *,
        now: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = uuid7,
    ) -> None:
        self._sessions, self._who = sessions, who
        self._now, self._new_id = now, new_id

    async def examine(self, session_id: str) -> Examined:
        """What is wrong with the transcript of a session, by its full id. `SessionNotFound` if it has none."""
        patient = await asyncio.to_thread(_find, session_id)
        findings = Findings()
        await asyncio.to_thread(self._mended, patient, findings, self._new_id())
        return Examined(session=session_id, path=path_text(patient.path), findings=findings.known())

    async def repair(self, session_id: str, ledger: Ledger, *, raw: bool = True) -> Examined:
        """Write a new session without what is wrong, and import it; nothing is written if nothing is wrong. The two sessions
        are linked."""
        patient = await asyncio.to_thread(_find, session_id)
        findings, made = Findings(), self._new_id()
        mended = await asyncio.to_thread(self._mended, patient, findings, made)
        examined = Examined(session=session_id, path=path_text(patient.path), findings=findings.known())
        if not examined.findings:
            return examined
        path = await asyncio.to_thread(self._write, patient, mended, made)
        name = await self._import(patient, path, f"{patient.agent}:{made}", ledger, raw=raw)
        await self._link(session_id, name)
        return Examined(
            session=session_id,
            path=examined.path,
            findings=examined.findings,
            mended=name,
            mended_path=path_text(path),
        )

    def _mended(self, patient: _Patient, findings: Findings, made: str) -> MendedTranscript:
        mend = MENDABLE[patient.agent].mend
        return mend(patient.data, findings, made, stamp(self._now()), self._new_id)

    def _write(self, patient: _Patient, mended: MendedTranscript, made: str) -> Path:
        """The files beside the transcript first: it appears when all of it is there."""
        kind = MENDABLE[patient.agent]
        path = kind.place(patient, made, self._now())
        data = b"".join(map(encoded, [*mended.records, *_closing(patient, made)]))
        if left := self._faults(patient, data):
            raise HithertoError(f"{patient.path.name} cannot be mended: {left[0].wrong} remain")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if patient.agent == "claude" and session_folder(patient.path).is_dir():
            # As copies: the files of the session that is mended may be deleted with it.
            shutil.copytree(session_folder(patient.path), session_folder(path), symlinks=True)
        for name, content in mended.files.items():
            folder = kind.beside(path)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        with new_file(path) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        return path

    def _faults(self, patient: _Patient, data: bytes) -> tuple[Finding, ...]:
        findings = Findings()
        self._mended(patient._replace(data=data), findings, patient.id)
        return findings.known()

    async def _import(self, patient: _Patient, path: Path, name: str, ledger: Ledger, *, raw: bool) -> str:
        found = next((each for each in patient.source.find() if each.key == str(path)), None)
        if found is None:
            raise HithertoError(f"{path} was written, but sync does not find it")
        report = await Sync(self._sessions, self._who, ledger, raw=raw).sync_one(found)
        if report.failed:
            raise HithertoError(f"{path} was written, but sync cannot read it: {report.failed[0]}")
        return name

    async def _link(self, session_id: str, made: str) -> None:
        try:
            session = await self._sessions.get(self._who, session_id)
        except SessionNotFound:  # it was never synced
            return
        known = session.meta.get(CONTINUED_IN, ())
        await self._sessions.catalog.set_own_meta(self._who, made, {CONTINUES: session.id})
        await self._sessions.catalog.set_own_meta(self._who, session.id, {CONTINUED_IN: [*known, made]})


def _find(session_id: str) -> _Patient:
    agent, _, uuid = session_id.partition(":")
    if agent not in MENDABLE or not uuid or ":" in uuid:
        raise InvalidInput(
            f"transcripts of {' and '.join(MENDABLE)} can be mended: {', '.join(f'{each}:ID' for each in MENDABLE)}"
        )
    source = AGENTS[agent].at(AGENTS[agent].home(os.environ))
    found = next((each for each in source.find() if each.identity == uuid), None)
    if found is None:
        raise SessionNotFound(session_id)
    path, packed = _file(found)
    data = read_whole(path)
    return _Patient(source, agent, uuid, path, decompress(data) if packed else data)


def _file(found: FoundSession) -> tuple[Path, bool]:
    if isinstance(found.where, SessionRollouts):
        return found.where.rollout.file.path, found.where.rollout.packed
    return Path(found.key), False


def _closing(patient: _Patient, made: str) -> list[Json]:
    """The name of the new session, where names are records."""
    info = get_session_info(patient.id) if patient.agent == "claude" else None
    if info is None:
        return []
    return [{"type": "custom-title", "customTitle": f"{info.summary} (mended)", "sessionId": made}]
