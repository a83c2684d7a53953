"""Durable appends through the server by several clients at once: how many a second, how long each waits, what it costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.workloads.messages import messages
from bench.workloads.server_load import NOWHERE, Server, in_turns, served, wires
from bench.workloads.websocket import Wire, request


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What a number of messages took until they were durable and could be found."""

    messages: int
    seconds: float
    cpu: float
    p99: float
    kept: int

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def cost(self) -> float:
        """Seconds of the server's CPU for a message."""
        return self.cpu / self.messages


async def _round(
    lines: Sequence[Wire], ids: Sequence[str], first: int, requests: int, group: int
) -> tuple[float, list[float]]:
    """Every client sends its requests, each when the one before is answered. Seconds in all, and of each request."""
    took = list[float]()

    def asked(session_id: str) -> list[bytes]:
        said = [{"role": "user", "content": each.text} for each in messages(first, requests * group)]
        parts = (said[at : at + group] for at in range(0, len(said), group))
        return [request("session.append", {"session_id": session_id, "messages": part}) for part in parts]

    ready = list(map(asked, ids))

    async def write(client: int) -> None:
        line = lines[client]
        for each in ready[client]:
            began = time.perf_counter()
            line.send(each)
            assert b'"error"' not in await line.receive()
            took.append(time.perf_counter() - began)

    seconds = await in_turns(len(lines), write)
    began = time.perf_counter()
    await lines[0].call("session.search", {"query": NOWHERE})
    return seconds + time.perf_counter() - began, took


async def _appended(server: Server, clients: int, rounds: int, requests: int, group: int) -> AppendResult:
    async with wires(server, clients) as lines:
        ids = [(await line.call("session.create", {}))["session_id"] for line in lines]
        await _round(lines, ids, 0, 2, group)
        seconds, cpu, took = 0.0, server.cpu(), list[float]()
        for number in range(rounds):
            more, each = await _round(lines, ids, number * requests * group, requests, group)
            seconds += more
            took += each
        cpu = server.cpu() - cpu
        kept = [(await lines[0].call("session.get", {"session_id": each}))["message_count"] for each in ids]
    p99 = sorted(took)[round(len(took) * 0.99) - 1]
    return AppendResult(
        rounds * requests * group * clients, seconds, cpu, p99, sum(kept) - 2 * group * clients
    )


def appended(
    folder: Path, changed: Mapping[str, str], clients: int, plans: Sequence[tuple[int, int, int]]
) -> list[AppendResult]:
    """One figure for each plan: rounds, requests of a client in a round, messages in a request."""

    async def each(server: Server) -> list[AppendResult]:
        return [await _appended(server, clients, *plan) for plan in plans]

    place = folder / "store"
    place.mkdir()
    with served(place, changed) as server:
        return asyncio.run(each(server))
