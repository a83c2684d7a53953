"""Append, history and list on PostgreSQL, beside psycopg alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness.lockstep import ContenderFailed, Job, Lane, Work, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from bench.parts import append, history, list
from bench.workloads.messages import Message, messages

if TYPE_CHECKING:  # what it imports is for its own process
    from bench.contenders.hitherto import HithertoPostgres

OURS, RAW = "Hitherto", "raw psycopg"
CONTENDERS = {
    RAW: "bench.contenders.raw_postgres:RawPostgres",
    OURS: "bench.contenders.hitherto:HithertoPostgres",
}
ALONE = "append, one at a time"
END = f"last {history.TAIL}"
WRITERS = 16
ONE_OWNER, MANY_OWNERS = (
    f"append, {WRITERS} writers of one owner",
    f"append, {WRITERS} writers of {WRITERS} owners",
)

APPEND = "PostgreSQL, append to a session that this process wrote last: within 2 times psycopg alone"
LAST = f"PostgreSQL, {END}: within 2.5 times psycopg alone"
LIST = f"PostgreSQL, newest {list.PAGE} sessions: within 4 times psycopg alone"
OWNERS = (
    f"PostgreSQL, {WRITERS} writers in sessions of one owner: at least 0.9 of the rate of {WRITERS} owners"
)
PROMISES = (APPEND, LAST, LIST, OWNERS)

Open = Callable[[str, str], Lane]
Figures = dict[str, dict[str, Cost]]
Arguments = Callable[[int], tuple[object, ...]]


def run(sizes: Sizes, _folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    lists = len(sizes.postgres_sessions)
    meter.begin("postgres", 2 + 2 * lists + (6 + lists) * (sizes.postgres_rounds + 1))
    method = _method(sizes)
    try:
        with _server() as opened:
            figures = _messages(opened, sizes, meter) | _lists(opened, sizes, meter)
    except ContenderFailed as failure:
        bars = [not_measured(promise, str(failure)) for promise in PROMISES]
        return Part(title="PostgreSQL", method=method, bars=bars)
    return Part(title="PostgreSQL", method=method, bars=_bars(figures), tables=[_table(figures)])


async def by_owners(contender: HithertoPostgres, first: int, count: int, owners: int) -> Sample:
    """Share `count` messages among writers, each with a session of its own; these belong to so many owners."""
    share = count // WRITERS
    ready = [[*messages(first + writer * share, share)] for writer in range(WRITERS)]

    async def write(writer: int, mine: Sequence[Message]) -> None:
        for message in mine:
            await contender.append_as(f"owner {writer % owners} of {owners}", f"writer {writer}", message)

    async def work() -> None:
        await asyncio.gather(*(write(writer, mine) for writer, mine in enumerate(ready)))

    return await measure(share * WRITERS, work)


@contextmanager
def _server() -> Iterator[Open]:
    """A durable server; opens lanes, each in a database of its own."""
    # Not needed by the other parts, and neither are the packages it imports.
    from tests.support.postgres_server import PostgresServer

    with PostgresServer(fast=False) as server, ExitStack() as stack:

        def opened(name: str, database: str) -> Lane:
            return stack.enter_context(Lane(CONTENDERS[name], server.create_database(database)))

        yield opened


def _messages(opened: Open, sizes: Sizes, meter: Meter) -> Figures:
    lanes = {name: opened(name, f"messages{number}") for number, name in enumerate(CONTENDERS)}
    for lane in lanes.values():
        lane.run(history.fill, history.TALK, 0, sizes.postgres_history)
        meter.step()
    count, writers = sizes.postgres_slice, sizes.writers
    whole = history.TALK, sizes.postgres_history
    ours = {OURS: lanes[OURS]}

    def turns(work: Work[Sample], arguments: Arguments, among: dict[str, Lane] = lanes) -> dict[str, Cost]:
        return _take_turns(among, work, arguments, sizes.postgres_rounds, meter)

    return {
        ALONE: turns(append.one_at_a_time, lambda n: (n * count, count)),
        f"append, {writers} writers": turns(append.concurrently, lambda n: (n * count, count, writers), ours),
        **_owners(lanes[OURS], sizes, meter),
        f"history of {whole[1]:,}, typed": turns(history.read_typed, lambda _: whole),
        f"history of {whole[1]:,}, stored bytes": turns(history.read_bytes, lambda _: whole),
        END: turns(history.read_end, lambda _: (whole[0], sizes.last_calls)),
    }


def _owners(lane: Lane, sizes: Sizes, meter: Meter) -> Figures:
    """One owner and many take turns at the same store."""
    count = max(sizes.postgres_slice, 4 * WRITERS)

    def job(name: str, owners: int) -> Job:
        return Job(name, lane, by_owners, lambda n: (n * count, count, owners))

    jobs = [job(ONE_OWNER, 1), job(MANY_OWNERS, WRITERS)]
    return {name: {OURS: cost} for name, cost in _costs(jobs, sizes.postgres_rounds, meter).items()}


def _lists(opened: Open, sizes: Sizes, meter: Meter) -> Figures:
    figures: Figures = {}
    for size in sizes.postgres_sessions:
        lanes = {name: opened(name, f"list{size}of{number}") for number, name in enumerate(CONTENDERS)}
        lanes[RAW].run(list.make_sessions, size)
        meter.step()
        for first in range(0, size, list.BATCH):
            lanes[OURS].run(list.fill_catalogue, first, min(list.BATCH, size - first), size)
        meter.step()
        figures[f"newest {list.PAGE} of {size:,} sessions"] = _take_turns(
            lanes, list.read_newest, lambda _: (sizes.list_calls,), sizes.postgres_rounds, meter
        )
    return figures


def _take_turns(
    lanes: dict[str, Lane], work: Work[Sample], arguments: Arguments, rounds: int, meter: Meter
) -> dict[str, Cost]:
    return _costs([Job(name, lane, work, arguments) for name, lane in lanes.items()], rounds, meter)


def _costs(jobs: Sequence[Job], rounds: int, meter: Meter) -> dict[str, Cost]:
    done = interleave(jobs, rounds, meter.step)
    for name, failure in done.failures.items():
        raise ContenderFailed(f"{name}: {failure}")
    return {name: median(samples) for name, samples in done.samples.items()}


def _method(sizes: Sizes) -> str:
    return (
        "A real server with its default, durable settings, on the same machine, through a Unix socket. Raw: one "
        "connection of psycopg without a pool, one bare row per message, one statement per append, binary results. "
        "A page of a list that is read again is compared with the last one, column by column, and decoded where it differs. "
        f"The {WRITERS} writers are tasks of one process, with the pool that it has. "
        f"Slices of {sizes.postgres_slice} appends, {sizes.last_calls} calls for the end of a history and "
        f"{sizes.list_calls} list pages, over {sizes.postgres_rounds} rounds. CPU is the client's; the server's part "
        "is in the wall time."
    )


def _bars(figures: Figures) -> Sequence[Bar]:
    ratios = {name: costs[OURS].wall / costs[RAW].wall for name, costs in figures.items() if RAW in costs}
    lists = {name: ratio for name, ratio in ratios.items() if name.startswith("newest")}
    share = figures[MANY_OWNERS][OURS].wall / figures[ONE_OWNER][OURS].wall
    among = "; ".join(f"{name}: {times(ratio)}" for name, ratio in lists.items())
    return (
        at_most(APPEND, ratios[ALONE], 2, f"{times(ratios[ALONE])} times"),
        at_most(LAST, ratios[END], 2.5, f"{times(ratios[END])} times"),
        at_most(LIST, max(lists.values()), 4, f"{among} times"),
        at_least(OWNERS, share, 0.9, f"{times(share)} of it"),
    )


def _table(figures: Figures) -> Table:
    rows = []
    for name, costs in figures.items():
        ours, raw = costs[OURS], costs.get(RAW)
        rows.append(
            [
                name,
                times(ours.wall / raw.wall) if raw else "",
                duration(ours.wall),
                duration(raw.wall) if raw else "",
                duration(ours.cpu),
                duration(raw.cpu) if raw else "",
            ]
        )
    columns = ("", "Hitherto / raw", "Hitherto", "raw psycopg", "Hitherto, client CPU", "raw, client CPU")
    return Table("Wall time of one message, one read or one page; a lower ratio is better.", columns, rows)
