"""Codex as a source: rollouts as sessions."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from hitherto.model import Json, Session, encode
from hitherto.service import Imported
from hitherto.sources.codex import parse
from hitherto.sources.codex.parse import Before, Parsed, State
from hitherto.sources.codex.resume_state import Meta
from hitherto.sources.codex.threads import files_beside, names_of_threads, rollouts_of_threads
from hitherto.sources.port import (
    SHELL,
    Census,
    FoundSession,
    Known,
    Reading,
    Unreadable,
    found_unreadable,
)
from hitherto.sources.shared import files
from hitherto.sources.shared.files import path_meta, path_of, raw_copies
from hitherto.sources.shared.growing_file import decompress
from hitherto.values.titles import title_from

NAME = "codex"
SESSIONS, ARCHIVED = "sessions", "archived_sessions"
SUFFIX, PACKED = ".jsonl", ".zst"
DEEPEST = 3
"""Folders for the year, the month and the day."""
FORKS = 100
"""How many files are followed for a fork of a fork of …"""
_UUID = r"[0-9a-f-]{36}"
# A time of the usual length is tried first: searching for the end of another takes three times as long.
_ROLLOUT = re.compile(rf"rollout-(.{{20}}|.*?)({_UUID})(?:_({_UUID}))?\.jsonl(\.zst)?")


class Rollout(msgspec.Struct, frozen=True, gc=False):
    """A rollout's file and its thread: a thread that was rewound has more than one. `key` is the same whether the file is
    compressed or not."""

    key: str
    file: files.FoundFile
    thread: str
    id: str
    began: str
    packed: bool


class SessionRollouts(msgspec.Struct, frozen=True, gc=False):
    """A session's rollout, its name, and the rollouts that its history may begin in. `unsure`: names cannot be read at the
    moment."""

    rollout: Rollout
    name: str | None
    rollouts: Mapping[str, Rollout]
    unsure: bool = False


class _Read(NamedTuple):
    """What was read of a file: its bytes from `start` on, how many were parsed in all, and the result. `torn`: its end is
    missing for good."""

    data: bytes
    start: int
    size: int
    parsed: Parsed
    torn: bool = False

    @property
    def damaged(self) -> int:
        return self.parsed.memory.damage.records + self.torn


class CodexSource(msgspec.Struct, frozen=True):
    """The rollouts under Codex's folder `home`."""

    home: Path
    name: str = NAME
    version: int = parse.VERSION

    def folders(self) -> Sequence[Path]:
        return self.home / SESSIONS, self.home / ARCHIVED

    def beside(self) -> Sequence[Path]:
        return files_beside(self.home)

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        names = names_of_threads(self.home, unreadable)
        unsure, names = names is None, names or {}
        rollouts = self._rollouts(unreadable)
        for each in self._present(rollouts.values()):
            name = names.get(each.thread)
            mark = zlib.crc32(name.encode("utf-8", "replace")) if name else None if unsure else 0
            stamp = each.file.stamp
            where = SessionRollouts(each, name, rollouts, unsure)
            yield FoundSession(
                self, each.key, (*stamp, mark), stamp[3] // files.MS, where, stamp[2], each.thread
            )
        yield from found_unreadable(self, unreadable)

    def _present(self, rollouts: Iterable[Rollout]) -> Iterable[Rollout]:
        """The current rollout of each thread: the one that Codex names, else the newest."""
        present, others = dict[str, Rollout](), list[Rollout]()
        for each in rollouts:
            if present.setdefault(each.thread, each) is not each:
                others.append(each)
        paths = rollouts_of_threads(self.home, {each.thread for each in others}) if others else {}
        for each in others:
            present[each.thread] = max(present[each.thread], each, key=lambda one: _rank(one, paths))
        return present.values()

    def _rollouts(self, unreadable: list[Unreadable]) -> dict[str, Rollout]:
        """All rollouts by id; if there are several copies, the uncompressed one, else the longest."""
        found = dict[str, Rollout]()
        for folder in self.folders():
            _find_rollouts(str(folder), DEEPEST, found, unreadable)
        return found

    def read(self, found: FoundSession, known: Known | None) -> Reading:
        where = found.where_as(SessionRollouts)
        read = _read(where, known)
        parsed = read.parsed
        consumed = read.data if where.rollout.packed else read.data[: parsed.state.offset - read.start]
        imported = imported_from(self.home, where, read)
        if where.unsure and known is not None:
            imported = replace(imported, title=None)  # keep the title that it has
        return Reading(
            imported=imported,
            entries=parsed.entries,
            total=parsed.memory.entries,
            state=encode(parsed.state),
            extends=parsed.extends,
            amended=parsed.amended,
            compactions=parsed.compactions,
            branches=parsed.branches,
            raw=list(raw_copies(consumed, read.start)),
            size=read.size,
            damaged=read.damaged,
            unknown=parsed.memory.unknown,
            census=Census(parsed.memory.shown, parsed.memory.left_out),
            waits_for=parsed.state.lost or "",
        )

    def resume(self, session: Session) -> Sequence[str] | None:
        source, _, uuid = session.id.partition(":")
        if source != NAME or session.parent is not None:
            return None
        if not self._is_archived(session):
            return (NAME, "resume", uuid)
        # Codex refuses to resume an archived thread.
        return (*SHELL, f"codex unarchive {shlex.quote(uuid)} && codex resume {shlex.quote(uuid)}")

    def restorable_path(self, session: Session) -> Path | None:
        path = path_of(session)
        inside = any(path.is_relative_to(folder) for folder in self.folders()) and ".." not in path.parts
        return path if inside and _ROLLOUT.fullmatch(path.name) else None

    def _is_archived(self, session: Session) -> bool:
        """Whether Codex has archived it now, which may differ from when it was read."""
        path, archived = path_of(session), self.home / ARCHIVED
        return path.is_relative_to(archived) if path.is_file() else (archived / path.name).is_file()


# Finding


def _find_rollouts(folder: str, depth: int, found: dict[str, Rollout], unreadable: list[Unreadable]) -> None:
    """Find the rollouts below a folder."""
    there = files.list_folder(folder, SUFFIX, PACKED, unreadable=unreadable)
    for file in there.files:
        if (name := _ROLLOUT.fullmatch(file.name)) is not None:
            at, thread, own, packed = name.groups()
            id = own or thread
            key = file.where.removesuffix(PACKED) if packed else file.where
            each = Rollout(key, file, thread, id, at, packed is not None)
            if (known := found.setdefault(id, each)) is not each and _completeness(each) > _completeness(
                known
            ):
                found[id] = each
    for inner in there.folders if depth else ():
        _find_rollouts(f"{folder}/{inner}", depth - 1, found, unreadable)


def _completeness(rollout: Rollout) -> tuple[bool, int]:
    return not rollout.packed, rollout.file.size


def _rank(rollout: Rollout, paths: Mapping[str, str]) -> tuple[bool, str, str]:
    path = paths.get(rollout.thread, "")
    chosen = Path(path).name.removesuffix(PACKED) == rollout.file.name.removesuffix(PACKED)
    return chosen, rollout.began, rollout.id


# Reading


def _read(where: SessionRollouts, known: Known | None) -> _Read:
    file = where.rollout.file
    state = None if where.rollout.packed else _state(file, known)
    if state is not None and state.lost not in where.rollouts:
        data = files.read_from(file.path, state.offset, state.seal)
        parsed = None if data is None else parse.parse(data, state)
        if data is not None and parsed is not None:
            return _Read(data, state.offset, len(data), parsed)
    return _read_whole(where)


def _read_whole(where: SessionRollouts) -> _Read:
    raw = files.read_whole(where.rollout.file.path)
    data = decompress(raw) if where.rollout.packed else raw
    meta = parse.first_line(data)
    before, lost = _before(meta, where)
    parsed = parse.parse(data, None, before, _inherited(meta, where))
    if parsed is None:
        raise ValueError("parsing a whole rollout must not need another rebuild")
    parsed = replace(parsed, state=replace(parsed.state, lost=lost))
    size = len(data) + sum(len(part.data) for part in before)
    torn = where.rollout.packed and parsed.state.offset < len(data)
    return _Read(raw, 0, size, parsed, torn)


def _state(file: files.FoundFile, known: Known | None) -> State | None:
    """The state to continue from, if the file is the one that was read and has only grown."""
    if known is None:
        return None
    if known.stamp[:2] != file.stamp[:2] or file.size < known.stamp[2]:
        return None
    return parse.load_state(known.state)


def _before(meta: Meta, where: SessionRollouts) -> tuple[list[Before], str | None]:
    """The history that a fork begins with, the oldest part first; and what of it is lost, as in `State`."""
    parts, at = list[Before](), None if meta.subagent else meta.base
    seen = {where.rollout.id}
    while at is not None and len(parts) < FORKS:
        rollout = where.rollouts.get(at.rollout)
        if rollout is None:
            return parts, at.rollout
        if rollout.id in seen:
            return parts, ""
        seen.add(rollout.id)
        try:
            data = _bytes(rollout)
        except (OSError, ValueError):
            return parts, ""
        parts.insert(0, Before(data[: at.offset], at.ordinal))
        at = parse.first_line(data).base
    return parts, None


def _inherited(meta: Meta, where: SessionRollouts) -> frozenset[str]:
    """The turns that a subagent's rollout may have copies of; newer rollouts say where these end."""
    parent = where.rollouts.get(meta.parent or "") if meta.subagent and meta.own_from is None else None
    try:
        return parse.turns_of(_bytes(parent)) if parent is not None else frozenset()
    except (OSError, ValueError):
        return frozenset()


def _bytes(rollout: Rollout) -> bytes:
    data = files.read_whole(rollout.file.path)
    return decompress(data) if rollout.packed else data


# The imported session


def imported_from(home: Path, where: SessionRollouts, read: _Read) -> Imported:
    """The session in a rollout."""
    memory, at = read.parsed.memory, where.rollout.file.at
    meta = memory.meta or Meta()
    updated = memory.updated_at or at
    name = where.name or memory.name
    return Imported(
        id=f"{NAME}:{where.rollout.thread}",
        source=NAME,
        created_at=min(memory.created_at or at, updated),
        updated_at=updated,
        cwd=memory.cwds[0] if memory.cwds else None,
        cwds=tuple(memory.cwds),
        project=meta.remote,
        branch=meta.branch,
        title=name or title_from(memory.first_prompt or "") or meta.nickname,
        agent_id=NAME,
        parent=f"{NAME}:{meta.parent}" if meta.parent else None,
        archived=where.rollout.file.path.is_relative_to(home / ARCHIVED),
        meta=_meta(where, meta, read),
    )


def _meta(where: SessionRollouts, meta: Meta, read: _Read) -> Json:
    """Further metadata; empty values are left out."""
    memory = read.parsed.memory
    meta_fields: Json = {
        **path_meta(where.rollout.file.path),
        "git_branch": meta.branch,
        "git_commit": meta.commit,
        "models": memory.models,
        "model_provider": meta.provider,
        "usage": None if memory.spent is None else msgspec.to_builtins(memory.spent),
        "version": meta.version,
        "entrypoint": meta.source,
        "forked_from": f"{NAME}:{meta.forked_from}" if meta.forked_from else None,
        "agent": meta.nickname,
        "agent_type": meta.agent_role,
        "unknown_records": memory.unknown,
        "damaged_records": read.damaged,
    }
    # Set for every fork: history that was missing before may be there now.
    fork: Json = {"history_is_lost": read.parsed.state.lost is not None} if meta.base else {}
    return {name: value for name, value in meta_fields.items() if value} | fork
