"""Importing the sessions of other agents, reading only what has changed. Their files are never changed."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import aclosing

from msgspec.structs import replace

from hitherto.errors import HithertoError, InvalidInput
from hitherto.model import Principal, Value, decode_json, encode
from hitherto.service import Imported, Sessions, SyncResult
from hitherto.service.catalog.projects import project_of_folder
from hitherto.sources.claude.files import TranscriptFile
from hitherto.sources.claude.mirror_reading import MirrorReader
from hitherto.sources.claude.source import NAME as CLAUDE
from hitherto.sources.port import FoundSession, Known, Reading, Source, Stamp
from hitherto.sources.shared.database import Row
from hitherto.sources.sync.ledger import Ledger, Seen
from hitherto.sources.sync.workers import Failed, Packed, Wanted, processes_for, read_all


class Progress(Value, frozen=True):
    """How far a sync is: of `found` sessions, of these agents, it reads those that changed, which have about `size` bytes, and has
    `done` so many bytes."""

    found: int
    agents: tuple[str, ...]
    size: int
    done: int = 0


Told = Callable[[Progress], None]


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


class Sync:
    """One run of a sync, the sessions that changed last first. `told` is called when they are found, and whenever some of them are
    done. With `revive`, sessions that were deleted here are imported again. Raw copies of files are kept, unless `raw` is False. `processes` is how many other
    processes read; the default depends on how much there is to read."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        ledger: Ledger,
        told: Told = lambda _: None,
        *,
        revive: bool = False,
        raw: bool = True,
        processes: int | None = None,
    ) -> None:
        self._sessions = sessions
        self._who = who
        self._ledger = ledger
        self._told = told
        self._progress = Progress(found=0, agents=(), size=0)
        self._revive = revive
        self._raw = raw
        self._processes = processes
        self._mirrors = MirrorReader(sessions, who) if sessions.is_here else None
        self._counts = Counter[str]()
        self._projects: dict[str, str | None] = {}
        self._failed: list[str] = []

    async def run(self, sources: Sequence[Source], found: Iterable[FoundSession]) -> Report:
        """Import what changed among the sessions found in these sources, and mark sessions whose files are gone."""
        await clear_ledger(self._sessions, self._who, self._ledger)
        known = {source.name: self._ledger.stamps(source.name) for source in sources}
        found = list(found)
        outdated = {each.name for each in sources if self._ledger.reader(each.name) != each.version}
        if self._mirrors is not None and CLAUDE in known:
            await self._mirrors.catch_up(everything=CLAUDE in outdated)
        await self._changed(found, known, outdated)
        # Keys are paths: those of two agents are never the same.
        there = {each.key for each in found}
        unreadable = [each for each in found if not each.stamp]
        for name, stamps in known.items():
            missing = (key for key in sorted(stamps.keys() - there) if not _is_unreadable(unreadable, key))
            await self._mark_gone(name, list(missing), there)
        await self._find_other_projects()
        for source in sources:
            self._ledger.put_reader(source.name, source.version)
        return self._report(len(found))

    async def sync_one(self, found: FoundSession, *, anew: bool = False) -> Report:
        """Import what changed in one session, or all of it `anew`, without looking at others."""
        name = found.source.name
        await self._changed([found], {name: {} if anew else self._ledger.stamps(name)})
        return self._report(1)

    def _report(self, found: int) -> Report:
        return Report(found=found, failed=tuple(self._failed), **self._counts)

    async def _changed(
        self,
        found: Sequence[FoundSession],
        known: dict[str, dict[str, bytes]],
        outdated: Set[str] = frozenset(),
    ) -> None:
        """Read what changed, and all of the sources that an older reader has read."""
        stamps = (
            None if each.source.name in outdated else known[each.source.name].get(each.key) for each in found
        )
        changed = [
            (each, stamp) for each, stamp in zip(found, stamps, strict=True) if stamp != encode(each.stamp)
        ]
        there = {each.identity for each in found} if changed else set()
        wanted = [
            Wanted(each, None if stamp is None else self._known(each, stamp))
            for each, stamp in changed
            if stamp is None or not _is_same(stamp, each.stamp, there)
        ]
        self._counts["unchanged"] += len(found) - len(wanted)
        wanted.sort(key=lambda each: -each.found.at)
        self._tell(replace(self._progress, found=len(found), agents=_agents(found), size=_size(wanted)))
        anew = {each.found.key for each in wanted if each.known is None}
        processes = processes_for(wanted) if self._processes is None else self._processes
        async with aclosing(read_all(wanted, processes, raw=self._raw)) as pieces:
            async for piece in pieces:
                await self._import_all(piece, anew)

    def _known(self, found: FoundSession, stamp: bytes) -> Known:
        state = self._ledger.state(found.source.name, found.key) or b""
        return Known(_unpacked(stamp), state)

    async def _import_all(self, read: Sequence[tuple[FoundSession, Packed | Failed]], anew: Set[str]) -> None:
        """Import what was read, then note it in the ledger: after a crash in between, it is imported again. Sessions that are
        imported at the same time share a transaction."""
        for found, each in read:
            if isinstance(each, Packed):
                await self._find_project(each.reading.imported)
            else:
                self._fail(found, each.reason)
        there = [(found, each) for found, each in read if isinstance(each, Packed)]
        done = await asyncio.gather(
            *(self._import_one(found, each, found.key in anew) for found, each in there)
        )
        bereft = await self._sessions.transfer.bereft(self._who)
        self._ledger.put(
            (found.source.name, found.key, _seen(found, each.reading), _state(each.reading, bereft))
            for (found, each), taken in zip(there, done, strict=True)
            if taken
        )
        self._tell(replace(self._progress, done=self._progress.done + sum(found.size for found, _ in read)))

    def _tell(self, progress: Progress) -> None:
        self._progress = progress
        self._told(progress)

    async def _import_one(self, found: FoundSession, packed: Packed, is_new: bool) -> bool:
        """Whether the session was imported; a failure does not affect the others."""
        reading = packed.reading
        self._counts["parsed_files"] += 1
        self._counts["parsed_bytes"] += reading.size
        if not reading.total:
            self._count_records(reading)
            return True
        try:
            taken = await self._sessions.transfer.sync_packed(
                self._who,
                self._with_project(reading.imported),
                packed.payloads,
                extends=reading.extends,
                amended=reading.amended,
                compactions=reading.compactions,
                branches=reading.branches,
                raw=packed.raw,
                revive=self._revive,
                words=packed.words,
            )
            if taken.mirrored:
                taken = await self._import_mirrored(found, reading.imported.id)
        except (OSError, HithertoError, RecursionError, ValueError) as error:
            self._fail(found, str(error))
            return False
        self._count_outcome(taken, reading, is_new=is_new)
        return True

    async def _import_mirrored(self, found: FoundSession, session: str) -> SyncResult:
        """Import a session that a program mirrors here too: what either has is read together."""
        if self._mirrors is None:
            raise InvalidInput("a program mirrors this session on the server: sync there")
        return await self._mirrors.read(session, found.where_as(TranscriptFile))

    def _fail(self, found: FoundSession, reason: str) -> None:
        self._failed.append(f"{found.key.rpartition('/')[2]}: {reason}")

    async def _find_project(self, imported: Imported) -> None:
        """Look up the project of a session's folder."""
        if imported.cwd is not None and imported.project is None:
            await self._project(imported.cwd)

    def _with_project(self, imported: Imported) -> Imported:
        """The session with the project of its folder."""
        if imported.cwd is None or imported.project is not None:
            return imported
        return replace(imported, project=self._projects[imported.cwd])

    async def _find_other_projects(self) -> None:
        """Set the project of sessions that have none yet, without reading them again."""
        for cwd in await self._sessions.projects.placeless(self._who):
            if (project := await self._project(cwd)) is not None:
                await self._sessions.projects.place_folder(self._who, cwd, project)

    async def _project(self, cwd: str) -> str | None:
        if cwd not in self._projects:
            self._projects[cwd] = (await project_of_folder(self._sessions.projects, cwd, self._who))[
                "project"
            ]
        return self._projects[cwd]

    def _count_outcome(self, taken: SyncResult, reading: Reading, *, is_new: bool) -> None:
        if taken.refused:
            self._counts["refused"] += 1
            return
        if taken.created:
            self._counts["new"] += 1
        elif taken.appended or taken.reshaped or not is_new:
            self._counts["updated"] += 1
        else:
            self._counts["unchanged"] += 1
        self._count_records(reading)

    def _count_records(self, reading: Reading) -> None:
        self._counts["damaged_records"] += reading.damaged
        self._counts["unknown_records"] += sum(reading.unknown.values())

    async def _mark_gone(self, source: str, missing: Sequence[str], there: Set[str]) -> None:
        """Mark the sessions whose files are gone, unless another copy exists."""
        seen = self._ledger.seen(source) if missing else {}
        present = {each.session for key, each in seen.items() if key in there}
        # A key may be unknown if the ledger was damaged and started again meanwhile.
        for key in filter(seen.__contains__, missing):
            session = seen[key].session
            if session not in present and await self._sessions.transfer.mark_source(
                self._who, session, gone=True
            ):
                self._counts["kept"] += 1
            self._ledger.forget(source, key)


def _agents(found: Iterable[FoundSession]) -> tuple[str, ...]:
    """The agents of these sessions, the one with most first."""
    return tuple(name for name, _ in Counter(each.source.name for each in found).most_common())


def _size(wanted: Iterable[Wanted]) -> int:
    return sum(each.found.size for each in wanted)


def _is_unreadable(unreadable: Sequence[FoundSession], key: str) -> bool:
    return any(each.contains(key) for each in unreadable)


async def clear_ledger(sessions: Sessions, who: Principal, ledger: Ledger) -> None:
    """Forget what the ledger has of the words of sessions that were deleted, or in which something was erased."""
    ledger.clear(await sessions.transfer.bereft(who))


def _state(reading: Reading, bereft: Set[str]) -> bytes:
    return b"" if reading.imported.id in bereft else reading.state


def _seen(found: FoundSession, reading: Reading) -> Seen:
    unknown = sum(reading.unknown.values())
    stamp = (*found.stamp, reading.waits_for) if reading.waits_for else found.stamp
    shown, left_out = reading.census
    return Seen(encode(stamp), reading.imported.id, reading.damaged, unknown, shown, encode(left_out))


def is_new(found: FoundSession, seen: Seen | None) -> bool:
    """Whether the session has something that sync has not read yet."""
    return seen is None or not (
        seen.stamp == encode(found.stamp) or _is_same(seen.stamp, found.stamp, frozenset())
    )


def _is_same(known: bytes, stamp: Stamp, there: Set[str]) -> bool:
    """Whether a session is unchanged, by its stamp; not if the session that it waits for has been found."""
    before: Sequence[object] = _unpacked(known)
    if before and isinstance(before[-1], str):
        *before, waits_for = before
        if waits_for in there:
            return False
    pairs = zip(stamp, before, strict=False)
    return len(before) == len(stamp) and all(now is None or now == was for now, was in pairs)


def _unpacked(stamp: bytes) -> tuple[int, ...]:
    try:
        return tuple(decode_json(stamp))
    except (TypeError, ValueError):
        return ()  # the ledger is damaged: read the session again


Rank = tuple[bool, int, int]


def find_all(sources: Iterable[Source]) -> list[FoundSession]:
    """All sessions of these sources. If an agent has several copies of a session, for example in a backup or in the old
    folder of a moved project, it is the most complete one: the longest file, in databases the last changed."""
    of_agents = defaultdict[str, dict[str, FoundSession]](dict)
    for source in sources:
        best = of_agents[source.name]
        for each in source.find():
            name = each.identity or each.key
            known = best.setdefault(name, each)
            if known is not each and _rank(each) > _rank(known):
                best[name] = each
    return [each for best in of_agents.values() for each in best.values()]


def _rank(found: FoundSession) -> Rank:
    """A copy in a database counts as newer than one in a file; its length is not known."""
    in_database = isinstance(found.where, Row)
    return in_database, 0 if in_database else found.size, found.at
