"""Append, history and list on PostgreSQL, beside psycopg alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.harness.lockstep import ContenderFailed, Job, Lane, Work, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, duration, not_measured, times
from bench.harness.samples import Cost, Sample, median
from bench.harness.sizes import Sizes
from bench.parts import append, history, list

OURS, RAW = "Hitherto", "raw psycopg"
CONTENDERS = {
    RAW: "bench.contenders.raw_postgres:RawPostgres",
    OURS: "bench.contenders.hitherto:HithertoPostgres",
}
PROMISE = "append, history and list on PostgreSQL, shown beside psycopg alone"

Open = Callable[[str, str], Lane]
Figures = dict[str, dict[str, Cost]]
Arguments = Callable[[int], tuple[object, ...]]


def run(sizes: Sizes, _folder: Path, meter: Meter) -> Part:
    """Measure; there is no limit to keep here, only figures to show."""
    lists = len(sizes.postgres_sessions)
    meter.begin("postgres", 2 + 2 * lists + (5 + lists) * (sizes.postgres_rounds + 1))
    method = _method(sizes)
    try:
        with _server() as opened:
            figures = _messages(opened, sizes, meter) | _lists(opened, sizes, meter)
    except ContenderFailed as failure:
        return Part(title="PostgreSQL", method=method, bars=[not_measured(PROMISE, str(failure))])
    return Part(title="PostgreSQL", method=method, bars=[_bar(figures)], tables=[_table(figures)])


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
        "append, one at a time": turns(append.one_at_a_time, lambda n: (n * count, count)),
        f"append, {writers} writers": turns(append.concurrently, lambda n: (n * count, count, writers), ours),
        f"history of {whole[1]:,}, typed": turns(history.read_typed, lambda _: whole),
        f"history of {whole[1]:,}, stored bytes": turns(history.read_bytes, lambda _: whole),
        f"last {history.TAIL}": turns(history.read_end, lambda _: (whole[0], sizes.last_calls)),
    }


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
    jobs = [Job(name, lane, work, arguments) for name, lane in lanes.items()]
    done = interleave(jobs, rounds, meter.step)
    for name, failure in done.failures.items():
        raise ContenderFailed(f"{name}: {failure}")
    return {name: median(samples) for name, samples in done.samples.items()}


def _method(sizes: Sizes) -> str:
    return (
        "A real server with its default, durable settings, on the same machine, through a Unix socket. Raw: one "
        "connection of psycopg without a pool, one bare row per message, one statement per append, binary results. "
        f"Slices of {sizes.postgres_slice} appends, {sizes.last_calls} calls for the end of a history and "
        f"{sizes.list_calls} list pages, over {sizes.postgres_rounds} rounds. CPU is the client's; the server's part "
        "is in the wall time."
    )


def _bar(figures: Figures) -> Bar:
    ratios = {name: costs[OURS].wall / costs[RAW].wall for name, costs in figures.items() if RAW in costs}
    return Bar(
        PROMISE, "; ".join(f"{name}: {times(ratio)} times raw" for name, ratio in ratios.items()), met=None
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
