"""A server under a steady load for a long time: followers that come and go, appends at a pace, and what it keeps of it."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from bench.workloads.messages import message
from bench.workloads.server_load import Server, served, wires
from bench.workloads.websocket import Wire, request
from torture.clients.follower import Follower

Json = dict[str, Any]
GROUP = 100
"""So many messages are in one request while the store is filled."""
ROUNDS = 200
"""So often is looked whether the server has closed what was left."""
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """How long and how hard. `per_second` 0: as fast as it is answered."""

    sockets: int
    sessions: int
    filled: int
    """Messages that are there before it begins, so that what may be cached is cached."""
    warm: int
    appends: int
    per_second: int
    characters: int = 1_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What the server holds at one moment, in bytes; descriptors are counted."""

    memory: int
    log: int
    descriptors: int


@dataclass(frozen=True, slots=True)
class SoakResult:
    """What a server held over the time, and how often something was wrong."""

    before: Sample
    after: Sample
    most_log: int
    appended: int
    told: int
    visits: int
    errors: int
    seconds: float

    @property
    def growth(self) -> float:
        """How much more memory there is at the end, as a share."""
        return self.after.memory / self.before.memory - 1


@dataclass(slots=True)
class Load:
    """The ones who use the server: one writes, one looks around, the others follow."""

    soak: Soak
    folder: Path
    server: Server
    writer: Wire
    reader: Wire
    ids: Sequence[str]
    followers: list[Follower]
    numbers: list[int] = field(default_factory=list)
    """How many messages each session has."""
    errors: int = 0
    visits: int = 0

    async def fill(self) -> None:
        """Many messages, many in a request."""
        for at in range(0, self.soak.filled, GROUP):
            await self._append(at // GROUP % len(self.ids), GROUP)
        await self.reader.call("session.search", {"query": "nowhere"})

    async def run(self, appends: int) -> list[Sample]:
        """Append so many, one by one at the pace, and look around in between; a sample for each look."""
        began, samples = time.monotonic(), list[Sample]()
        each = self.soak.per_second or 50
        for number in range(appends):
            if self.soak.per_second:
                await asyncio.sleep(began + number / self.soak.per_second - time.monotonic())
            await self._append(number % len(self.ids), 1)
            if number % each == each - 1:
                await self._look_around(number // each)
                samples.append(self.sample())
        return samples

    def sample(self) -> Sample:
        log = max((file.stat().st_size for file in self.folder.glob("**/*-wal")), default=0)
        return Sample(self.server.memory(), log, self.server.descriptors())

    async def settled(self, samples: Sequence[Sample]) -> Sample:
        """What there is when those who left are gone: of the memory the middle of some samples."""
        fewest = self.server.descriptors()
        for _ in range(ROUNDS):
            await self.reader.call("session.get", {"session_id": self.ids[0]})
            fewest = min(fewest, self.server.descriptors())
        return Sample(round(statistics.median(each.memory for each in samples)), self.sample().log, fewest)

    async def all_told(self) -> int:
        """Wait until every follower was told the last message; how many were not."""
        for _ in range(ROUNDS):
            late = [
                each for each in self.followers if each.last != self.numbers[self.ids.index(each.session_id)]
            ]
            if not late:
                return 0
            await self.reader.call("session.get", {"session_id": self.ids[0]})
        return len(late)

    async def _append(self, which: int, count: int) -> None:
        first = self.numbers[which] + 1
        said = [
            {"role": "user", "content": message(number, self.soak.characters).text}
            for number in range(first, first + count)
        ]
        self.writer.send(request("session.append", {"session_id": self.ids[which], "messages": said}))
        if b'"error"' in (await self.writer.receive())[:100]:
            self.errors += 1
        else:
            self.numbers[which] += count

    async def _look_around(self, number: int) -> None:
        """One follower leaves and comes back, a client comes and goes, somebody reads, lists and searches."""
        await self.followers[number % len(self.followers)].come_back()
        async with wires(self.server, 1) as (guest,):
            for method, params in self._questions(number):
                answer = _decode(await _answer(guest, method, params))
                self.errors += "error" in answer
        self.visits += 1

    def _questions(self, number: int) -> list[tuple[str, Json]]:
        named = {"session_id": self.ids[number % len(self.ids)]}
        word = message(number).text.split()[1]
        return [
            ("session.list", {}),
            ("session.history", {**named, "limit": 20}),
            ("session.search", {"query": word}),
            ("session.subscribe", named),
        ]


async def _answer(wire: Wire, method: str, params: Json) -> bytes:
    wire.send(request(method, params))
    return await wire.receive()


@asynccontextmanager
async def _users(soak: Soak, folder: Path, server: Server) -> AsyncIterator[Load]:
    async with wires(server, 2) as (writer, reader):
        ids = [(await writer.call("session.create", {}))["session_id"] for _ in range(soak.sessions)]
        load = Load(soak, folder, server, writer, reader, ids, [], [0] * len(ids))
        try:
            await load.fill()
            for number in range(soak.sockets - 2):
                load.followers.append(Follower(server, ids[number % len(ids)], await server.wire()))
                await load.followers[-1].begin()
            yield load
        finally:
            for each in load.followers:
                await each.leave()


async def _run_soak(soak: Soak, folder: Path, server: Server, say: Callable[[str], None]) -> SoakResult:
    async with _users(soak, folder, server) as load:
        warm = await load.run(soak.warm)
        before = await load.settled(_last(warm))
        began = time.monotonic()
        samples = await load.run(soak.appends)
        seconds = time.monotonic() - began
        late = await load.all_told()
        after = await load.settled(_last(samples))
        say(_course(samples))
        return SoakResult(
            before,
            after,
            max(each.log for each in (*warm, *samples)),
            soak.appends,
            sum(each.told for each in load.followers),
            load.visits,
            late + load.errors + sum(each.errors + each.lost for each in load.followers),
            seconds,
        )


def _last(samples: Sequence[Sample]) -> Sequence[Sample]:
    """The last minute of an hour."""
    return samples[-max(3, len(samples) // 60) :]


def _course(samples: Sequence[Sample]) -> str:
    """The memory from the beginning to the end, in twelve steps."""
    step = max(1, len(samples) // 12)
    return "MB: " + " ".join(f"{each.memory / 1e6:.1f}" for each in samples[::step])


def run_soak(
    soak: Soak, folder: Path, say: Callable[[str], None], changed: Mapping[str, str] | None = None
) -> SoakResult:
    """Run it on a store of its own; each line that the server logs is an error."""
    place = folder / "store"
    place.mkdir()
    with tempfile.TemporaryFile(dir=folder) as log:
        with served(place, changed, log) as server:
            held = asyncio.run(_run_soak(soak, place, server, say))
        log.seek(0)
        logged = log.read()
    if logged:
        say(logged[-2_000:].decode(errors="replace"))
    return replace(held, errors=held.errors + len(logged.splitlines()))
