"""PostgreSQL is killed, restarted and cut off while a server writes to it: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bench.workloads.server_load import served
from tests.support.postgres_server import PostgresServer
from torture.clients.acknowledged import Judged, judged
from torture.clients.persistent import Connection, Writer, at_work
from torture.trial.network import Connected, address, aside, connected
from torture.trial.row import Outcome, Setting, Trial

WRITERS = 4
SLOW_SECONDS = 5.0
"""So long it may take, in 95 of 100 cases of each kind, until all are acknowledged again."""
LOAD = (5, 40)
"""So many messages each, at least and at most, between two faults."""
SHORTEST_CUT = 0.3
"""Seconds."""

Fault = Callable[[Connected, float], Awaitable[None]]


@dataclass
class Seen:
    """What the trial has seen: how long it took until all went on, by kind of fault."""

    back: list[tuple[str, float]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def p95(self) -> dict[str, float]:
        """By kind, what 95 of 100 took at most."""
        times: dict[str, list[float]] = {}
        for kind, seconds in sorted(self.back):
            times.setdefault(kind, []).append(seconds)
        return {kind: each[-(-len(each) * 95 // 100) - 1] for kind, each in times.items()}

    def told(self) -> str:
        """How often each kind was, and how long it took: p95 and the most."""
        counts, most = Counter(kind for kind, _ in self.back), dict(sorted(self.back))
        return ", ".join(
            f"{counts[kind]} × {kind} (p95 {p95:.1f} s, max {most[kind]:.1f} s)"
            for kind, p95 in self.p95().items()
        )


def trial(*, careless: bool = False) -> Trial:
    """Faults of each kind in any order; a `careless` store has said that commits may be lost."""

    def run(setting: Setting) -> Outcome:
        seen, found = asyncio.run(_run_trial(setting, careless=careless))
        met = found.whole and max(seen.p95().values()) < SLOW_SECONDS
        figure = f"until all were served again: {seen.told()}; {found.told()}"
        counts = {"faults": len(seen.back), "acknowledged": found.acknowledged, "lost": found.lost}
        return Outcome(met=met, figure=figure, counts=counts)

    return run


async def _run_trial(setting: Setting, *, careless: bool) -> tuple[Seen, Judged]:
    seen, dice = Seen(), setting.dice("outages")
    plan = _plan(setting, dice, careless=careless)
    async with connected(1, apart=not setting.short) as postgres:
        store = address(postgres.cables[0], careless=careless)
        with (setting.folder / "log").open("wb") as log:
            starting = served(setting.folder, {"HITHERTO_STORE": store}, log)
            async with aside(starting) as server:
                door = Connection(server.port, server.token)
                writers = [Writer([door], f"w{number}") for number in range(WRITERS)]
                cut = setting.of(short=1, full=12)
                await at_work(writers, lambda: _hit(postgres, plan, writers, seen, dice, cut))
        for writer in writers:
            seen.failures += writer.client.failures
        setting.say(f"answers and ends that were no acknowledgement: {dict(seen.failures)}")
        return seen, await judged(postgres.server.uri(), [writer.pages for writer in writers])


def _plan(setting: Setting, dice: random.Random, *, careless: bool) -> Sequence[str]:
    """Which faults, in which order. A careless store loses something in a kill or never."""
    many = {kind: setting.of(short=1, full=full) for kind, (full, _) in FAULTS.items()}
    if careless:
        many = {"kill -9": setting.of(short=3, full=20)}
    plan = [kind for kind, count in many.items() for _ in range(count)]
    dice.shuffle(plan)
    return plan


async def _hit(
    postgres: Connected,
    plan: Sequence[str],
    writers: Sequence[Writer],
    seen: Seen,
    dice: random.Random,
    longest_cut: int,
) -> None:
    for kind in plan:
        await asyncio.gather(*(writer.more(dice.randint(*LOAD)) for writer in writers))
        await FAULTS[kind][1](postgres, dice.uniform(SHORTEST_CUT, longest_cut))
        began = time.monotonic()
        ends = await asyncio.gather(*(writer.after(began) for writer in writers))
        seen.back.append((kind, max(ends) - began))


async def _kill(postgres: Connected, _seconds: float) -> None:
    await asyncio.to_thread(_killed_and_started, postgres.server)


def _killed_and_started(server: PostgresServer) -> None:
    server.kill()
    server.start()


async def _restart(postgres: Connected, _seconds: float) -> None:
    await asyncio.to_thread(postgres.server.stop)
    await asyncio.to_thread(postgres.server.start)


async def _cut(postgres: Connected, seconds: float) -> None:
    await postgres.cables[0].cut()
    await asyncio.sleep(seconds)
    await postgres.cables[0].heal()


FAULTS: dict[str, tuple[int, Fault]] = {
    "kill -9": (100, _kill),
    "restart": (50, _restart),
    "partition": (50, _cut),
}
"""How often on the scorecard, and how."""
