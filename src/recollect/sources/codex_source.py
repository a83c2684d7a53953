"""Codex as a source: its rollouts as sessions of ours."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.model import Json, Session, encode
from recollect.service import Imported
from recollect.sources import codex, files
from recollect.sources.codex import Before, Parsed, State
from recollect.sources.codex_memory import Meta
from recollect.sources.codex_state import names_of_threads, rollouts_of_threads
from recollect.sources.pi_source import raw_copies
from recollect.sources.port import Found, Known, Reading
from recollect.titles import title_from

NAME = "codex"
SESSIONS, ARCHIVED = "sessions", "archived_sessions"
SUFFIX, PACKED = ".jsonl", ".zst"
DEEPEST = 3
"""Folders for the year, the month and the day."""
FORKS = 100
"""A fork of a fork of …: so many files are followed."""
_UUID = r"[0-9a-f-]{36}"
# A time of today's length is tried first: to look for the end of any other takes three times as long.
_ROLLOUT = re.compile(rf"rollout-(.{{20}}|.*?)({_UUID})(?:_({_UUID}))?\.jsonl(\.zst)?")


class Rollout(msgspec.Struct, frozen=True, gc=False):
    """A rollout's file, and whose it is: a thread that went back to an earlier place has more than one. By its `key` it is
    known again, packed or not."""

    key: str
    file: files.Seen
    thread: str
    id: str
    began: str
    packed: bool


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a session is, the name that it was given, and where the rollouts are that it may begin with."""

    rollout: Rollout
    name: str | None
    rollouts: Mapping[str, Rollout]


class _Read(NamedTuple):
    """What was read of a file: its bytes from `start` on, how many were parsed in all, and what they mean. `lost_base`: the
    history that it begins with is not there. `torn`: its end is not, and will not come."""

    data: bytes
    start: int
    size: int
    parsed: Parsed
    lost_base: bool = False
    torn: bool = False

    @property
    def damaged(self) -> int:
        return self.parsed.memory.damage.records + self.torn


class CodexSource(msgspec.Struct, frozen=True):
    """The rollouts under Codex's folder `home`."""

    home: Path
    name: str = NAME

    def folders(self) -> Sequence[Path]:
        return self.home / SESSIONS, self.home / ARCHIVED

    def find(self) -> Iterator[Found]:
        names = names_of_threads(self.home)
        rollouts = self._rollouts()
        for each in self._present(rollouts.values()):
            name = names.get(each.thread)
            mark = zlib.crc32(name.encode("utf-8", "replace")) if name else 0
            stamp = each.file.stamp
            where = Place(each, name, rollouts)
            yield Found(self, each.key, (*stamp, mark), stamp[3] // files.MS, where, stamp[2])

    def _present(self, rollouts: Iterable[Rollout]) -> Iterable[Rollout]:
        """The rollout of each thread that it goes on with: the one that Codex says, or else the newest."""
        present, others = dict[str, Rollout](), list[Rollout]()
        for each in rollouts:
            if present.setdefault(each.thread, each) is not each:
                others.append(each)
        said = rollouts_of_threads(self.home, {each.thread for each in others}) if others else {}
        for each in others:
            present[each.thread] = max(present[each.thread], each, key=lambda one: _rank(one, said))
        return present.values()

    def _rollouts(self) -> dict[str, Rollout]:
        """All of them by their ids; of one that is there both packed and not, the one that is not."""
        found = dict[str, Rollout]()
        for folder in self.folders():
            _gather(str(folder), DEEPEST, found)
        return found

    def read(self, found: Found, known: Known | None) -> Reading:
        place: Place = found.where
        read = _read(place, known)
        parsed = read.parsed
        consumed = read.data if place.rollout.packed else read.data[: parsed.state.offset - read.start]
        return Reading(
            imported=imported_from(self.home, place, read),
            entries=parsed.entries,
            total=parsed.memory.entries,
            state=encode(parsed.state),
            extends=parsed.extends,
            amended=parsed.amended,
            compactions=parsed.compactions,
            raw=list(raw_copies(consumed, read.start)),
            size=read.size,
            damaged=read.damaged,
            unknown=parsed.memory.unknown,
        )

    def resume(self, session: Session) -> Sequence[str] | None:
        source, _, uuid = session.id.partition(":")
        return None if source != NAME or session.parent is not None else ("codex", "resume", uuid)

    def home_of(self, session: Session) -> Path | None:
        path = Path(str(session.meta.get("path", "")))
        inside = any(path.is_relative_to(folder) for folder in self.folders()) and ".." not in path.parts
        return path if inside and _ROLLOUT.fullmatch(path.name) else None


# Finding


def _gather(folder: str, depth: int, found: dict[str, Rollout]) -> None:
    """Find the rollouts below a folder."""
    there = files.inside(folder, SUFFIX, PACKED)
    for file in there.files:
        if (name := _ROLLOUT.fullmatch(file.name)) is not None:
            at, thread, own, packed = name.groups()
            id = own or thread
            if id not in found or not packed:
                key = file.where.removesuffix(PACKED) if packed else file.where
                found[id] = Rollout(key, file, thread, id, at, packed is not None)
    for inner in there.folders if depth else ():
        _gather(f"{folder}/{inner}", depth - 1, found)


def _rank(rollout: Rollout, said: Mapping[str, str]) -> tuple[bool, str, str]:
    told = said.get(rollout.thread, "")
    chosen = Path(told).name.removesuffix(PACKED) == rollout.file.name.removesuffix(PACKED)
    return chosen, rollout.began, rollout.id


# Reading


def _read(place: Place, known: Known | None) -> _Read:
    file = place.rollout.file
    state = None if place.rollout.packed else _state(file, known)
    if state is not None:
        data = files.read_on(file.path, state.offset, state.seal)
        parsed = None if data is None else codex.parse(data, state)
        if data is not None and parsed is not None:
            return _Read(data, state.offset, len(data), parsed)
    return _read_whole(place)


def _read_whole(place: Place) -> _Read:
    raw = files.read_whole(place.rollout.file.path)
    data = unpacked(raw) if place.rollout.packed else raw
    meta = codex.first_line(data)
    before, lost = _before(meta, place)
    parsed = codex.parse(data, None, before, _inherited(meta, place))
    if parsed is None:
        raise ValueError("a rollout read as a whole goes on with nothing")
    size = len(data) + sum(len(part.data) for part in before)
    torn = place.rollout.packed and parsed.state.offset < len(data)
    return _Read(raw, 0, size, parsed, lost, torn)


def _state(file: files.Seen, known: Known | None) -> State | None:
    """How to go on with the file, if it is the one that was read and has only grown."""
    if known is None:
        return None
    if known.stamp[:2] != file.stamp[:2] or file.size < known.stamp[2]:
        return None
    return codex.load_state(known.state)


def _before(meta: Meta, place: Place) -> tuple[list[Before], bool]:
    """The history that a fork begins with, the oldest part first; and whether some of it is lost."""
    parts, at = list[Before](), None if meta.subagent else meta.base
    seen = {place.rollout.id}
    while at is not None and len(parts) < FORKS:
        rollout = place.rollouts.get(at.rollout)
        if rollout is None or rollout.id in seen:
            return parts, True
        seen.add(rollout.id)
        try:
            data = _bytes(rollout)
        except (OSError, ValueError):
            return parts, True
        parts.insert(0, Before(data[: at.offset], at.ordinal))
        at = codex.first_line(data).base
    return parts, False


def _inherited(meta: Meta, place: Place) -> frozenset[str]:
    """The turns of which a subagent's rollout may hold copies; where they end is told by newer ones."""
    parent = place.rollouts.get(meta.parent or "") if meta.subagent and meta.own_from is None else None
    try:
        return codex.turns_of(_bytes(parent)) if parent is not None else frozenset()
    except (OSError, ValueError):
        return frozenset()


def _bytes(rollout: Rollout) -> bytes:
    data = files.read_whole(rollout.file.path)
    return unpacked(data) if rollout.packed else data


def unpacked(data: bytes) -> bytes:
    """What is packed in these bytes, as far as it can be had."""
    import zstandard  # here: few rollouts are packed

    pieces, size = list[bytes](), 0
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        try:
            # One step at a time: a longer read would lose what comes before the damage.
            while size <= files.LARGEST and (piece := reader.read1(1 << 20)):
                pieces.append(piece)
                size += len(piece)
        except zstandard.ZstdError:
            pass  # what was read before the damage is all there is
    if size > files.LARGEST:
        raise ValueError(f"larger than {files.LARGEST} bytes")
    return b"".join(pieces)


# What it tells


def imported_from(home: Path, place: Place, read: _Read) -> Imported:
    """The session that a rollout tells of."""
    memory, at = read.parsed.memory, place.rollout.file.at
    meta = memory.meta or Meta()
    updated = memory.updated_at or at
    name = place.name or memory.name
    return Imported(
        id=f"{NAME}:{place.rollout.thread}",
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
        archived=place.rollout.file.path.is_relative_to(home / ARCHIVED),
        meta=_meta(place, meta, read),
    )


def _meta(place: Place, meta: Meta, read: _Read) -> Json:
    """What else is known and worth showing; left out where it is not."""
    memory = read.parsed.memory
    told: Json = {
        "path": str(place.rollout.file.path).encode("utf-8", "replace").decode(),
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
        "history_is_lost": read.lost_base,
        "unknown_records": memory.unknown,
        "damaged_records": read.damaged,
    }
    return {name: value for name, value in told.items() if value}
