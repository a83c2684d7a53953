"""What it costs that every row is summed with its owner and its place: CPU of appends and of lists, with and without."""

from __future__ import annotations

from pathlib import Path

from bench.contenders import HITHERTO, Entrant
from bench.contenders.port import Contender, Lists
from bench.harness.lanes import opened
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure
from bench.harness.sizes import Sizes
from bench.parts.append import one_at_a_time
from bench.workloads.messages import messages

UNPLACED = Entrant(
    name="without",
    contender="bench.contenders.unplaced:Unplaced",
    package="hitherto",
    imports="import hitherto",
    lists=True,
    bulk=True,
)
BOTH = (HITHERTO, UNPLACED)
MOST = 1.10
PAGE = 50
SESSIONS = 1_000
BATCH = 100
# A slice is a few milliseconds of CPU, and a busy machine disturbs some of them: many slices have a steady middle.
ROUNDS = 4
APPEND = "append, one message: CPU at most 1.10 times as without checksums of places"
GROUP = "append, 100 messages at once: CPU at most 1.10 times as without checksums of places"
LIST = "list, 50 sessions: CPU at most 1.10 times as without checksums of places"


async def in_groups(contender: Contender, first: int, count: int) -> Sample:
    """Append many messages by each call."""
    ready = [list(messages(first + start, BATCH)) for start in range(0, count, BATCH)]

    async def work() -> None:
        for group in ready:
            await contender.fill("groups", group)

    return await measure(len(ready) * BATCH, work)


async def pages(contender: Lists, calls: int) -> Sample:
    """Read the first page of the list again and again."""

    async def work() -> None:
        for _ in range(calls):
            await contender.newest(PAGE)

    return await measure(calls, work)


async def make(contender: Lists) -> None:
    """Some sessions to list."""
    await contender.make_sessions(SESSIONS)


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    rounds = ROUNDS * sizes.append_rounds
    meter.begin("checks", 3 * (rounds + 1))

    def slice_(_: Entrant, number: int) -> tuple[int, int]:
        return number * sizes.append_slice, sizes.append_slice

    with opened(BOTH, folder) as field:
        field.each(make, among=BOTH)
        costs = {
            LIST: field.take_turns(pages, lambda *_: (sizes.list_calls,), rounds, meter.step, among=BOTH),
            APPEND: field.take_turns(one_at_a_time, slice_, rounds, meter.step, among=BOTH),
            GROUP: field.take_turns(in_groups, slice_, rounds, meter.step, among=BOTH),
        }
    return Part(
        title="Checks",
        method=(
            "Every row is summed with its owner and its place, and compared when it is read. The same program with"
            " and without these sums, on SQLite; both sum what entries and sessions say. The two take turns, in"
            f" {rounds} slices of {sizes.append_slice} messages of 1 KB or {sizes.list_calls} pages; medians of CPU."
        ),
        bars=[_bar(promise, found, field.failures) for promise, found in costs.items()],
        tables=[_table(costs)],
        charts=[],
    )


def _bar(promise: str, found: dict[str, Cost], failures: dict[str, str]) -> Bar:
    ours, without = found.get(HITHERTO.name), found.get(UNPLACED.name)
    if ours is None or without is None:
        return not_measured(promise, "; ".join(failures.values()) or "not measured")
    ratio = ours.cpu / without.cpu
    return at_most(promise, ratio, MOST, f"{times(ratio)} times ({duration(ours.cpu)})")


def _table(costs: dict[str, dict[str, Cost]]) -> Table:
    rows = [
        [
            promise.partition(":")[0],
            *(duration(found[each.name].cpu) if each.name in found else "" for each in BOTH),
        ]
        for promise, found in costs.items()
    ]
    return Table("CPU of one message, or of one page.", ("", "with", "without"), rows)
