"""Clients that subscribe and never read: what they cost the server and the others, and whether they can go on."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.workloads.server_load import SILENT_BYTES, Json, Server, served, told, wires
from bench.workloads.websocket import Wire
from torture.clients.follower import Follower

READERS = 4
LARGE, FILLING = 20_000, 100
"""So many messages of that size are far more than may be kept for anybody."""
MOST_ROUNDS = 1_000
LATE_ROUNDS = 2_000
CLOSED_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """How many never read, how many messages are in a round, and how many rounds come before them."""

    silent: int
    messages: int
    rounds: int
    too_much: int
    """Bytes for each of them at which it is clear that they cost too much."""


@dataclass(frozen=True, slots=True)
class SilenceResult:
    """What came of them. `each` is in bytes; `alone` and `beside` are seconds: 99 of 100 messages, the median round."""

    each: float
    alone: float
    beside: float
    closed: int
    resumed: int
    gaps: int
    messages: int


class _Talk:
    """One session that is written and read."""

    def __init__(self, writer: Wire, readers: list[Wire], named: Json) -> None:
        self._writer, self._readers, self.named = writer, readers, named
        self.said = 0

    async def round(self, count: int, size: int = 1_000) -> float:
        """See `told`."""
        took = await told(self._writer, self._readers, self.named, count, size, first=self.said)
        self.said += count
        return took


@asynccontextmanager
async def _silent(server: Server, named: Json, count: int) -> AsyncIterator[list[Follower]]:
    async with wires(server, count, SILENT_BYTES) as made:
        followers = [Follower(server, named["session_id"], each) for each in made]
        try:
            for each in followers:
                await each.begin()
                each.wire.pause()
            yield followers
        finally:
            for each in followers:
                await each.leave()


async def _measure_silence(server: Server, silence: Silence) -> SilenceResult:
    async with wires(server, 1) as (writer,), wires(server, READERS) as readers:
        named = {"session_id": (await writer.call("session.create", {}))["session_id"]}
        for reader in readers:
            await reader.call("session.subscribe", {**named, "events": ["entries"]})
        talk = _Talk(writer, readers, named)
        await talk.round(FILLING, LARGE)
        alone = [await talk.round(silence.messages) for _ in range(silence.rounds)]
        async with _silent(server, named, silence.silent) as silent:
            before = most = server.memory()
            await talk.round(FILLING, LARGE)
            beside = list[float]()
            for _ in range(MOST_ROUNDS):
                beside.append(await talk.round(silence.messages))
                most = max(most, server.memory())
                too_much = most - before > silence.too_much * silence.silent
                if too_much or await asyncio.to_thread(server.sockets) <= 1 + READERS:
                    break
            closed = 0 if too_much else await _closed(silent)
            resumed = await _resumed(silent, writer, talk) if closed else 0
            return SilenceResult(
                each=(most - before) / silence.silent,
                alone=statistics.median(alone),
                beside=statistics.median(beside),
                closed=closed,
                resumed=resumed,
                gaps=sum(each.errors for each in silent),
                messages=talk.said,
            )


async def _closed(silent: list[Follower]) -> int:
    """How many the server has closed; each reads what was on its way."""
    for each in silent:
        each.wire.resume()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSED_SECONDS):
                await each.ended()
    return sum(each.lost for each in silent)


async def _resumed(silent: list[Follower], writer: Wire, talk: _Talk) -> int:
    """How many have all messages after they have come back with the last cursor that they know."""
    for each in silent:
        await each.come_back()
    for _ in range(LATE_ROUNDS):
        if all(each.last == talk.said - 1 for each in silent):
            break
        await writer.call("session.get", talk.named)
    return sum(each.last == talk.said - 1 for each in silent)


def measure_silence(folder: Path, silence: Silence, changed: Mapping[str, str]) -> SilenceResult:
    """On a store of its own."""
    place = folder / "store"
    place.mkdir()
    with served(place, changed) as server:
        return asyncio.run(_measure_silence(server, silence))
