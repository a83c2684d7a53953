"""Reading Claude Code's own files: lists and conversations, against the SDK's own functions on the same tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders.claude_files import OURS, STATS, THEIRS, Theirs
from bench.harness.lockstep import ContenderFailed, Job, Lane, Work, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from tests.claude.peak_memory import peak_bytes
from tests.claude.transcripts import grow, large

PAGE = 20
MESSAGES_PAGE = 50
# So many transcripts are made for one step of the progress bar.
BATCH = 100
NAMES = {OURS: "Hitherto", THEIRS: "claude-agent-sdk", STATS: "one `stat` per file"}

NEWEST = f"newest {PAGE} sessions"
FIRST = "all sessions, first call"
NEXT = "all sessions, next call"
MESSAGES = "messages of one large session"
MESSAGES_FIRST = f"the first {MESSAGES_PAGE} of them"
# How many times faster than the SDK, by CPU.
FASTER = {NEWEST: 50, FIRST: 2, NEXT: 20, MESSAGES: 3, MESSAGES_FIRST: 6}
NEAR = 2
HEAVIER = 4
NEAR_PROMISE = f"{NEWEST}: within {NEAR} times the cost of one `stat` per file"
MEMORY_PROMISE = f"{MESSAGES}: never more memory than {HEAVIER} times the file"


async def list_sessions(contender: Theirs, limit: int | None, afresh: bool) -> Sample:
    """One list; `afresh`: nothing is remembered from another."""
    if afresh:
        contender.forget()

    async def work() -> None:
        assert contender.sessions(limit)

    return await measure(1, work)


async def read_messages(contender: Theirs, session: str, limit: int | None) -> Sample:
    """One conversation, or the beginning of it."""

    async def work() -> None:
        assert contender.messages(session, limit)

    return await measure(1, work)


async def peak(contender: Theirs) -> int:
    """How much memory the contender's process has used at most."""
    del contender
    return peak_bytes()


@dataclass(slots=True)
class _Figures:
    # Operation, number of transcripts, who.
    lists: dict[tuple[str, int], dict[str, Cost]] = field(default_factory=dict)
    messages: dict[str, dict[str, Cost]] = field(default_factory=dict)
    # By how many times the file's size the process grew that read it.
    memory: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("Claude Code: files", 0)
    figures = _Figures()
    for count in sizes.claude_trees:
        home = folder / f"claude-{count}"
        bytes_made = _grow(home, count, meter)
        _measure_lists(figures, home, count, sizes, meter)
    _measure_messages(figures, home, sizes, meter)
    return Part(
        title="Claude Code: files",
        method=(
            f"Trees of {' and '.join(f'{count:,}' for count in sizes.claude_trees)} transcripts in today's shape (the "
            f"larger one {bytes_made / 1e9:.2f} GB, a tenth of it conversation), read from the system's page cache by "
            f"processes that take turns; CPU, the median of {sizes.claude_rounds} rounds. No index is used: before a "
            "first call and a page Hitherto's cache is removed. Titles and tags are found anywhere in the file by "
            "Hitherto, in its first and last 64 KB by the SDK."
        ),
        bars=[
            *_bars(figures, max(sizes.claude_trees)),
            _near(figures, max(sizes.claude_trees)),
            _memory(figures),
        ],
        tables=[_table(figures)],
    )


def _grow(home: Path, count: int, meter: Meter) -> int:
    """Make a tree and return its size; reading it once also brings it into the page cache."""
    meter.more(count // BATCH)
    total = 0
    for number, path in enumerate(grow(home / "projects", count)):
        total += len(path.read_bytes())
        if number % BATCH == BATCH - 1:
            meter.step()
    return total


def _measure_lists(figures: _Figures, home: Path, count: int, sizes: Sizes, meter: Meter) -> None:
    wanted: dict[str, tuple[int | None, bool]] = {
        NEWEST: (PAGE, True),
        FIRST: (None, True),
        NEXT: (None, False),
    }
    for operation, arguments in wanted.items():
        among = [OURS, THEIRS, STATS] if operation == NEWEST else [OURS, THEIRS]
        costs, _ = _take_turns(figures, home, among, list_sessions, arguments, sizes.claude_rounds, meter)
        figures.lists[operation, count] = costs


def _measure_messages(figures: _Figures, home: Path, sizes: Sizes, meter: Meter) -> None:
    session = large(home / "projects", sizes.claude_bytes)
    (path,) = (home / "projects").glob(f"*/{session}.jsonl")
    for operation, limit in {MESSAGES: None, MESSAGES_FIRST: MESSAGES_PAGE}.items():
        costs, grown = _take_turns(
            figures, home, [OURS, THEIRS], read_messages, (session, limit), sizes.claude_rounds, meter
        )
        figures.messages[operation] = costs
        if operation == MESSAGES:
            figures.memory = {who: used / os.path.getsize(path) for who, used in grown.items()}


def _take_turns(
    figures: _Figures,
    home: Path,
    among: Sequence[str],
    work: Work[Sample],
    arguments: tuple[object, ...],
    rounds: int,
    meter: Meter,
) -> tuple[dict[str, Cost], dict[str, int]]:
    """What one operation costs each, and by how many bytes each grew with it."""
    meter.more(rounds + 1)
    with ExitStack() as stack:
        lanes = {}
        for who in among:
            try:
                lanes[who] = stack.enter_context(Lane(who, str(home)))
            except ContenderFailed as failure:
                figures.failures.append(f"{NAMES[who]}: {failure}")
        before = {who: lane.run(peak) for who, lane in lanes.items()}
        jobs = [Job(who, lane, work, _always(arguments)) for who, lane in lanes.items()]
        done = interleave(jobs, rounds, meter.step)
        figures.failures += [f"{NAMES[who]}: {why}" for who, why in done.failures.items()]
        well = [who for who in lanes if who not in done.failures]
        grown = {who: lanes[who].run(peak) - before[who] for who in well}
        return {who: median(done.samples[who]) for who in well}, grown


def _always(arguments: tuple[object, ...]) -> Callable[[int], tuple[object, ...]]:
    return lambda _: arguments


def _bars(figures: _Figures, most: int) -> list[Bar]:
    bars = []
    for operation, factor in FASTER.items():
        of = f"{operation} of {most:,}" if operation in (NEWEST, FIRST, NEXT) else operation
        promise = f"{of}: at least {factor} times faster than the SDK, by CPU"
        costs = figures.messages.get(operation) or figures.lists.get((operation, most), {})
        if OURS not in costs or THEIRS not in costs:
            bars.append(not_measured(promise, "; ".join(figures.failures)))
            continue
        ours, theirs = costs[OURS].cpu, costs[THEIRS].cpu
        figure = f"{times(theirs / ours)} times ({duration(ours)} against {duration(theirs)})"
        bars.append(at_least(promise, theirs / ours, factor, figure))
    return bars


def _near(figures: _Figures, most: int) -> Bar:
    costs = figures.lists.get((NEWEST, most), {})
    if OURS not in costs or STATS not in costs:
        return not_measured(NEAR_PROMISE, "; ".join(figures.failures))
    ratio = costs[OURS].cpu / costs[STATS].cpu
    return at_most(NEAR_PROMISE, ratio, NEAR, f"{times(ratio)} times")


def _memory(figures: _Figures) -> Bar:
    if OURS not in figures.memory:
        return not_measured(MEMORY_PROMISE, "; ".join(figures.failures))
    return at_most(MEMORY_PROMISE, figures.memory[OURS], HEAVIER, f"{times(figures.memory[OURS])} times")


def _table(figures: _Figures) -> Table:
    rows = [
        _row(f"{operation}, {count:,} transcripts", costs)
        for (operation, count), costs in figures.lists.items()
    ]
    rows += [_row(operation, costs) for operation, costs in figures.messages.items()]
    rows += [
        [
            "… memory, in sizes of the file",
            *(_sizes(figures.memory.get(who)) for who in (OURS, THEIRS)),
            "",
            "",
        ]
    ]
    return Table(
        "CPU of one call.", ["", *(NAMES[who] for who in (OURS, THEIRS)), "ratio", NAMES[STATS]], rows
    )


def _row(name: str, costs: dict[str, Cost]) -> list[str]:
    ratio = times(costs[THEIRS].cpu / costs[OURS].cpu) if OURS in costs and THEIRS in costs else ""
    return [name, _cpu(costs.get(OURS)), _cpu(costs.get(THEIRS)), ratio, _cpu(costs.get(STATS))]


def _cpu(cost: Cost | None) -> str:
    return "" if cost is None else duration(cost.cpu)


def _sizes(memory: float | None) -> str:
    return "" if memory is None else times(memory)
