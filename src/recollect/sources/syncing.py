"""Taking the sessions of other agents into the store, reading only what has changed. Their files are never changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from recollect.errors import RecollectError
from recollect.model import Principal, Value, decode_json, encode
from recollect.service import Imported, Sessions, Taken
from recollect.service.placing import placed
from recollect.sources.ledger import Ledger, Seen
from recollect.sources.port import WITHIN, Found, Known, Reading, Source, Stamp

AT_ONCE = 16

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


class Sync:
    """One run of a sync; `advance` is told of each session that is done. With `revive`, sessions that were deleted here
    are taken in too. The bytes of files are kept beside what was read from them, unless `raw` is False."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        ledger: Ledger,
        advance: Advance = lambda _: None,
        *,
        revive: bool = False,
        raw: bool = True,
    ) -> None:
        self._sessions = sessions
        self._who = who
        self._ledger = ledger
        self._advance = advance
        self._revive = revive
        self._raw = raw
        self._counts = Counter[str]()
        self._projects: dict[str, str | None] = {}
        self._failed: list[str] = []

    async def run(self, sources: Sequence[Source], found: Iterable[Found]) -> Report:
        """Take in what changed among what was found in these sources; mark sessions that are there no more."""
        known = {source.name: self._ledger.seen(source.name) for source in sources}
        found = list(found)
        for source in sources:
            there = {each.key for each in found if each.source.name == source.name}
            await self._vanished(source.name, known[source.name], there)
        report = await self._changed(found, known)
        await self._place_others()
        return report

    async def take(self, found: Found, *, anew: bool = False) -> Report:
        """Take in what changed in this one, or all of it `anew`; of others nothing is said."""
        name = found.source.name
        return await self._changed([found], {name: {} if anew else self._ledger.seen(name)})

    async def _changed(self, found: Sequence[Found], known: dict[str, dict[str, Seen]]) -> Report:
        room = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            for each in found:
                seen = known[each.source.name].get(each.key)
                if not is_new(each, seen):
                    self._counts["unchanged"] += 1
                    self._advance(1)
                    continue
                await room.acquire()
                tasks.create_task(self._one(each, seen, room))
        return Report(found=len(found), failed=tuple(self._failed), **self._counts)

    async def _one(self, found: Found, seen: Seen | None, room: asyncio.Semaphore) -> None:
        try:
            reading = found.source.read(found, None if seen is None else self._known(found, seen))
            self._counts["parsed_files"] += 1
            self._counts["parsed_bytes"] += reading.size
            await self._take(found, reading, is_new=seen is None)
        except (OSError, RecollectError, ValueError) as error:
            self._failed.append(f"{found.key.rpartition('/')[2]}: {error}")
        finally:
            room.release()
            self._advance(1)

    def _known(self, found: Found, seen: Seen) -> Known:
        state = self._ledger.state(found.source.name, found.key) or b""
        return Known(_unpacked(seen.stamp), state)

    async def _take(self, found: Found, reading: Reading, *, is_new: bool) -> None:
        """Take in what was read, then note it: a crash in between only means doing it again."""
        if reading.total:
            taken = await self._sessions.take_in(
                self._who,
                await self._placed(reading.imported),
                reading.entries,
                extends=reading.extends,
                amended=reading.amended,
                compactions=reading.compactions,
                raw=reading.raw if self._raw else (),
                revive=self._revive,
            )
            self._tell(taken, reading, is_new=is_new)
        strange = sum(reading.unknown.values())
        seen = Seen(_packed(found.stamp), reading.imported.id, reading.damaged, strange)
        self._ledger.put(found.source.name, found.key, seen, reading.state)

    async def _placed(self, imported: Imported) -> Imported:
        """The session with the project that its folder belongs to; each folder is looked at once."""
        if imported.cwd is None or imported.project is not None:
            return imported
        return replace(imported, project=await self._project(imported.cwd))

    async def _place_others(self) -> None:
        """Sessions that were made before projects were known, or elsewhere, get theirs without being read again."""
        for cwd in await self._sessions.placeless(self._who):
            if (project := await self._project(cwd)) is not None:
                await self._sessions.place_folder(self._who, cwd, project)

    async def _project(self, cwd: str) -> str | None:
        if cwd not in self._projects:
            self._projects[cwd] = (await placed(self._sessions, cwd, self._who))["project"]
        return self._projects[cwd]

    def _tell(self, taken: Taken, reading: Reading, *, is_new: bool) -> None:
        if taken.refused:
            self._counts["refused"] += 1
            return
        if taken.created:
            self._counts["new"] += 1
        elif taken.appended or taken.reshaped or not is_new:
            self._counts["updated"] += 1
        else:
            self._counts["unchanged"] += 1
        self._counts["damaged_records"] += reading.damaged
        self._counts["unknown_records"] += sum(reading.unknown.values())

    async def _vanished(self, source: str, seen: dict[str, Seen], there: set[str]) -> None:
        for key, known in seen.items():
            if key not in there and key.partition(WITHIN)[0] not in there:
                if await self._sessions.mark_source(self._who, known.session, gone=True):
                    self._counts["kept"] += 1
                self._ledger.forget(source, key)


def is_new(found: Found, seen: Seen | None) -> bool:
    """Whether there is something to read that was not read yet."""
    return seen is None or seen.stamp != _packed(found.stamp)


def _packed(stamp: Stamp) -> bytes:
    return encode(stamp)


def _unpacked(stamp: bytes) -> Stamp:
    return tuple(decode_json(stamp))
