"""Appending messages of 1 KB: one at a time, and by eight writers of one process at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from bench.contenders import HITHERTO, PEERS, RAW, Entrant
from bench.contenders.port import Contender
from bench.harness.lanes import opened
from bench.harness.progress import Meter
from bench.harness.results import Bar, Chart, Part, Table, at_least, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure
from bench.harness.sizes import Sizes
from bench.workloads.messages import Message, messages

ONE = "one"
EVERYONE = (RAW, HITHERTO, *PEERS)

LEAD, SHARE, GAIN = 1.4, 0.55, 1.2
FASTER = f"one at a time: at least {LEAD} times the rate of every SQL-backed peer at its own defaults"
SHARE_OF_RAW = f"one at a time: at least {SHARE} of the raw limit"
GROUPED = f"eight concurrent writers in one process: at least {GAIN} times the raw limit of one"


async def one_at_a_time(contender: Contender, first: int, count: int) -> Sample:
    """Append to one session, each message when the one before is stored."""
    ready = list(messages(first, count))

    async def work() -> None:
        for message in ready:
            await contender.append(ONE, message)
        await contender.settle()

    return await measure(count, work)


async def concurrently(contender: Contender, first: int, count: int, writers: int) -> Sample:
    """Share `count` messages among `writers` tasks, each with a session of its own."""
    share = count // writers
    ready = [list(messages(first + writer * share, share)) for writer in range(writers)]

    async def write(session: str, mine: list[Message]) -> None:
        for message in mine:
            await contender.append(session, message)

    async def work() -> None:
        await asyncio.gather(*(write(f"writer {number}", mine) for number, mine in enumerate(ready)))
        await contender.settle()

    return await measure(share * writers, work)


async def expect_stored(contender: Contender, expected: int) -> None:
    """Read back what was appended one at a time: a contender that lost a message is not fast, it is wrong."""
    stored = len(await contender.history(ONE))
    assert stored == expected, f"stored {stored} of {expected} messages"


@dataclass(frozen=True, slots=True)
class _Figures:
    single: dict[str, Cost]
    grouped: dict[str, Cost]
    failures: dict[str, str]


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    rounds = sizes.append_rounds
    meter.begin("append", 2 * (rounds + 1) + len(EVERYONE))

    def alone(entrant: Entrant, number: int) -> tuple[int, int]:
        return number * _slice(entrant, sizes), _slice(entrant, sizes)

    def together(entrant: Entrant, number: int) -> tuple[int, int, int]:
        return *alone(entrant, number), sizes.writers

    with opened(EVERYONE, folder) as field:
        single = field.take_turns(one_at_a_time, alone, rounds, meter.step, among=EVERYONE)
        for entrant in EVERYONE:
            field.each(expect_stored, (rounds + 1) * _slice(entrant, sizes), among=[entrant])
            meter.step()
        grouped = field.take_turns(concurrently, together, rounds, meter.step, among=EVERYONE[1:])
    figures = _Figures(single, grouped, field.failures)
    return Part(
        title="Append",
        method=_method(sizes),
        bars=_bars(figures),
        tables=[_table(figures)],
        charts=[_chart(figures)],
    )


def _slice(entrant: Entrant, sizes: Sizes) -> int:
    return sizes.quadratic_slice if entrant.quadratic else sizes.append_slice


def _method(sizes: Sizes) -> str:
    total = sizes.append_rounds * sizes.append_slice
    fewer = sizes.append_rounds * sizes.quadratic_slice
    return (
        f"Messages of 1 KB, in slices of {sizes.append_slice} over {sizes.append_rounds} rounds ({total:,} messages "
        f"each; {fewer:,} where every append rewrites the whole conversation). One at a time: one session, the "
        f"next message when the last one is stored. Concurrent: {sizes.writers} tasks of one process, each with "
        "its own session. A slice ends when everything that follows from its appends (search index, counters) is "
        "up to date. Afterwards every message was read back and counted."
    )


def _bars(figures: _Figures) -> list[Bar]:
    ours, raw = figures.single.get(HITHERTO.name), figures.single.get(RAW.name)
    peers = {peer.name: figures.single[peer.name] for peer in PEERS if peer.name in figures.single}
    if ours is None or raw is None or not peers:
        reason = figures.failures.get(HITHERTO.name, "a contender is missing")
        return [not_measured(promise, reason) for promise in (FASTER, SHARE_OF_RAW, GROUPED)]
    best = min(peers, key=lambda name: peers[name].wall)
    lead, share = peers[best].wall / ours.wall, raw.wall / ours.wall
    bars = [
        at_least(FASTER, lead, LEAD, f"{times(lead)} times the best, {best}"),
        at_least(SHARE_OF_RAW, share, SHARE, f"{times(share)} of raw"),
    ]
    grouped = figures.grouped.get(HITHERTO.name)
    if grouped is None:
        return [*bars, not_measured(GROUPED, figures.failures.get(HITHERTO.name, "failed"))]
    gain = raw.wall / grouped.wall
    return [*bars, at_least(GROUPED, gain, GAIN, f"{times(gain)} times raw")]


def _table(figures: _Figures) -> Table:
    raw = figures.single.get(RAW.name)
    rows = []
    for entrant in EVERYONE:
        single, grouped = figures.single.get(entrant.name), figures.grouped.get(entrant.name)
        if single is None or raw is None:
            rows.append([entrant.name, *[""] * 5, figures.failures.get(entrant.name, "not measured")])
            continue
        rows.append(
            [
                entrant.name,
                times(raw.wall / single.wall),
                f"{single.rate:,.0f}",
                duration(single.cpu),
                times(raw.wall / grouped.wall) if grouped else "",
                f"{grouped.rate:,.0f}" if grouped else "",
                figures.failures.get(entrant.name, entrant.note),
            ]
        )
    columns = (
        "contender",
        "rate / raw",
        "messages/s",
        "CPU per message",
        "8 writers: rate / raw",
        "8 writers: messages/s",
        "",
    )
    return Table("Appending messages of 1 KB; a higher ratio is better, raw is 1.", columns, rows)


def _chart(figures: _Figures) -> Chart:
    rates = {name: cost.rate for name, cost in figures.single.items()}
    if HITHERTO.name in figures.grouped:
        rates[f"{HITHERTO.name}, 8 writers"] = figures.grouped[HITHERTO.name].rate
    return Chart(
        name="append", title="Appending messages of 1 KB", values="messages per second", points=rates
    )
