"""Reading a long conversation back: all of it, as objects and as stored bytes, and only its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.contenders import HITHERTO, PEERS, RAW, Entrant
from bench.contenders.port import Contender, KeepsBytes
from bench.harness.lanes import Field, opened
from bench.harness.progress import Meter
from bench.harness.results import Bar, Chart, Part, Table, at_least, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from bench.workloads.messages import messages

TALK = "talk"
LONG = "long talk"
TAIL = 20
# What one transaction takes when a contender is filled.
BATCH = 1_000
END_LIMIT = 0.2e-3

EVERYONE = (RAW, HITHERTO, *PEERS)
BYTES_TOO = (RAW, HITHERTO)
BULK = tuple(entrant for entrant in EVERYONE if entrant.bulk)

TYPED = "a long history as typed entries: faster than every peer"
BYTES = "a long history as stored bytes: at most 1.3 times reading one bare column"
ENDS = "the last 20: under 0.2 ms of CPU, however long the session"


async def fill(contender: Contender, session: str, first: int, count: int) -> None:
    """Store `count` messages, unmeasured."""
    await contender.fill(session, list(messages(first, count)))


async def read_typed(contender: Contender, session: str, expected: int) -> Sample:
    """Read everything as the contender's own objects."""
    found: list[int] = []

    async def work() -> None:
        found.append(len(await contender.history(session)))

    sample = await measure(1, work)
    assert found == [expected], f"read {found[0]} of {expected} messages"
    return sample


async def read_bytes(contender: KeepsBytes, session: str, expected: int) -> Sample:
    """Read everything as stored bytes."""
    found: list[int] = []

    async def work() -> None:
        found.append(len(await contender.stored(session)))

    sample = await measure(1, work)
    assert found == [expected], f"read {found[0]} of {expected} messages"
    return sample


async def read_end(contender: Contender, session: str, calls: int) -> Sample:
    """Read the newest messages, again and again."""
    assert len(await contender.last(session, TAIL)) == TAIL

    async def work() -> None:
        for _ in range(calls):
            await contender.last(session, TAIL)

    return await measure(calls, work)


@dataclass(frozen=True, slots=True)
class _Figures:
    first: dict[str, Cost]
    typed: dict[str, Cost]
    stored: dict[str, Cost]
    ends: dict[str, Cost]
    long_ends: dict[str, Cost]
    failures: dict[str, str]


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("history", _fills(sizes) + len(EVERYONE) + 4 * (sizes.history_rounds + 1))
    with opened(EVERYONE, folder) as field:
        figures = _measure(field, sizes, meter)
    return Part(
        title="History",
        method=_method(sizes),
        bars=_bars(figures),
        tables=[_table(figures, sizes)],
        charts=[_chart(figures, sizes)],
    )


def _fills(sizes: Sizes) -> int:
    long = len(range(0, sizes.long_history, BATCH))
    return len(EVERYONE) + len(BULK) * long


def _measure(field: Field, sizes: Sizes, meter: Meter) -> _Figures:
    rounds, tick = sizes.history_rounds, meter.step
    first: dict[str, Cost] = {}
    for entrant in EVERYONE:
        field.each(fill, TALK, 0, sizes.history, among=[entrant])
        tick()
        once = field.each(read_typed, TALK, sizes.history, among=[entrant])
        first |= {name: median([sample]) for name, sample in once.items()}
        tick()

    def whole(*_: object) -> tuple[str, int]:
        return TALK, sizes.history

    typed = field.take_turns(read_typed, whole, rounds, tick, among=EVERYONE)
    stored = field.take_turns(read_bytes, whole, rounds, tick, among=BYTES_TOO)
    ends = field.take_turns(read_end, lambda *_: (TALK, sizes.last_calls), rounds, tick, among=EVERYONE)
    for entrant in BULK:
        _fill_long(field, entrant, sizes, meter)
    long_ends = field.take_turns(read_end, lambda *_: (LONG, sizes.last_calls), rounds, tick, among=BULK)
    return _Figures(first, typed, stored, ends, long_ends, field.failures)


def _fill_long(field: Field, entrant: Entrant, sizes: Sizes, meter: Meter) -> None:
    for start in range(0, sizes.long_history, BATCH):
        field.each(fill, LONG, start, min(BATCH, sizes.long_history - start), among=[entrant])
        meter.step()


def _method(sizes: Sizes) -> str:
    return (
        f"One session of {sizes.history:,} messages of 1 KB, read whole {sizes.history_rounds} times by each "
        "contender in turn, as the objects that it gives its users; the first read in the process is shown "
        "apart (agno keeps the objects of an earlier read). Raw: the bare column decoded into a two-field "
        f"struct, and the bare column alone. The last {TAIL} messages: CPU per call, in slices of "
        f"{sizes.last_calls} calls, also of a session of {sizes.long_history:,} messages where it can be filled "
        "in bulk."
    )


def _bars(figures: _Figures) -> list[Bar]:
    ours = HITHERTO.name
    missing = [
        part for part in (figures.typed, figures.stored, figures.ends, figures.long_ends) if ours not in part
    ]
    peers = {peer.name: figures.typed[peer.name] for peer in PEERS if peer.name in figures.typed}
    if missing or not peers or RAW.name not in figures.stored:
        reason = figures.failures.get(ours, "a contender is missing")
        return [not_measured(promise, reason) for promise in (TYPED, BYTES, ENDS)]
    best = min(peers, key=lambda name: peers[name].wall)
    lead = peers[best].wall / figures.typed[ours].wall
    bare = figures.stored[ours].wall / figures.stored[RAW.name].wall
    ends = figures.ends[ours].cpu, figures.long_ends[ours].cpu
    return [
        at_least(TYPED, lead, 1, f"{times(lead)} times the best, {best}"),
        at_most(BYTES, bare, 1.3, f"{times(bare)} times"),
        at_most(
            ENDS, max(ends), END_LIMIT, f"{duration(ends[0])}; of the longer session {duration(ends[1])}"
        ),
    ]


def _table(figures: _Figures, sizes: Sizes) -> Table:
    bare = figures.stored.get(RAW.name)
    rows = []
    for entrant in EVERYONE:
        typed = figures.typed.get(entrant.name)
        if typed is None or bare is None:
            rows.append([entrant.name, *[""] * 5, figures.failures.get(entrant.name, "not measured")])
            continue
        rows.append(
            [
                entrant.name,
                times(typed.wall / bare.wall),
                *(_time(part, entrant.name) for part in (figures.typed, figures.first)),
                _time(figures.stored, entrant.name),
                *(_cpu(part, entrant.name) for part in (figures.ends, figures.long_ends)),
            ]
        )
    columns = (
        "contender",
        "typed / bare column",
        "typed",
        "first read",
        "stored bytes",
        f"last {TAIL}: CPU",
        f"last {TAIL} of {sizes.long_history:,}: CPU",
    )
    return Table(f"Reading {sizes.history:,} messages of 1 KB; a lower ratio is better.", columns, rows)


def _time(costs: dict[str, Cost], name: str) -> str:
    return duration(costs[name].wall) if name in costs else ""


def _cpu(costs: dict[str, Cost], name: str) -> str:
    return duration(costs[name].cpu) if name in costs else ""


def _chart(figures: _Figures, sizes: Sizes) -> Chart:
    points = {name: cost.wall * 1e3 for name, cost in figures.typed.items()}
    points |= {f"{name}, stored bytes": cost.wall * 1e3 for name, cost in figures.stored.items()}
    title = f"Reading {sizes.history:,} messages"
    return Chart(name="history", title=title, values="milliseconds, less is better", points=points)
