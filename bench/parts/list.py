"""A page of the newest sessions: plain, with each filter, at any depth, among few and among very many."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.contenders import HITHERTO, PEERS, RAW, Entrant
from bench.contenders.port import Lists
from bench.harness.lockstep import ContenderFailed, Job, Lane, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Chart, Part, Table, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from bench.parts import list_acp
from bench.workloads import sessions as catalogue
from hitherto.limits import LIST_PAGE, ROWS_EXAMINED
from hitherto.model import Filter

if TYPE_CHECKING:
    from bench.contenders.hitherto import Hitherto

PAGE = 50
# Sessions per request to fill: short enough to show progress.
BATCH = 10_000
# At the deepest place there is still a full page and a little more.
BEYOND = PAGE + 10
DEPTHS = ("first", "middle", "deepest")
FLAT = 2.0
NEAR = 8

PROMISE = "a page of 50 newest, plain and with each single filter, at any depth: the largest within 2 times the smallest"
BESIDE_RAW = f"a page of 50 newest, as typed sessions: within {NEAR} times a bare SELECT of the same columns, as tuples"
BOUNDED = "a combination of filters examines at most 5,000 rows per page"


async def fill_catalogue(contender: Hitherto, first: int, count: int, size: int) -> None:
    """Store part of the catalogue."""
    numbers = range(first, first + count)
    await contender.add_sessions(
        [(catalogue.session(number, size), catalogue.said(number, size)) for number in numbers]
    )


async def find_depths(contender: Hitherto, given: Filter) -> list[str | None]:
    """Walk the filtered list once and return the cursors in front of its middle and of its last full page."""
    found = await contender.count(given)
    assert found >= BEYOND, f"only {found} sessions pass the filter"
    middle, deepest = (found - BEYOND) // 2, found - BEYOND
    at_middle = await _skip(contender, given, None, middle)
    return [None, at_middle, await _skip(contender, given, at_middle, deepest - middle)]


async def _skip(contender: Hitherto, given: Filter, cursor: str | None, sessions: int) -> str | None:
    left = sessions
    while left > 0:
        page = await contender.find(given, cursor, min(left, LIST_PAGE))
        left -= len(page.sessions)
        cursor = page.cursor
    return cursor


async def read_page(contender: Hitherto, given: Filter, cursor: str | None, calls: int) -> Sample:
    """Read one page again and again; if it comes in pieces, all of them count."""

    async def full() -> int:
        place, left = cursor, PAGE
        while left > 0:
            page = await contender.find(given, place, left)
            left -= len(page.sessions)
            place = page.cursor
            if place is None:
                break
        return PAGE - left

    got = await full()
    assert got == PAGE, f"a page of {got} sessions"

    async def work() -> None:
        for _ in range(calls):
            await full()

    return await measure(calls, work)


async def read_bare_page(contender: Hitherto, calls: int) -> Sample:
    """Read the newest page again and again by a bare SELECT."""
    assert len(contender.bare_page(PAGE)) == PAGE

    async def work() -> None:
        for _ in range(calls):
            contender.bare_page(PAGE)

    return await measure(calls, work)


async def walk_in_vain(contender: Hitherto) -> tuple[int, int, Sample]:
    """Walk a list that is always empty; candidates that either filter leaves, pages, and the cost of all pages."""
    halves = Filter(cwd=catalogue.NEVER_BOTH.cwd), Filter(agent_id=catalogue.NEVER_BOTH.agent_id)
    candidates = min([await contender.count(half) for half in halves])
    pages = 0

    async def work() -> None:
        nonlocal pages
        cursor = None
        while True:
            page = await contender.find(catalogue.NEVER_BOTH, cursor, PAGE)
            assert not page.sessions
            pages, cursor = pages + 1, page.cursor
            if cursor is None:
                break

    sample = await measure(1, work)
    return candidates, pages, sample


async def make_sessions(contender: Lists, count: int) -> None:
    """Fill a peer."""
    await contender.make_sessions(count)


async def read_newest(contender: Lists, calls: int) -> Sample:
    """Read a peer's newest sessions again and again."""
    assert len(await contender.newest(PAGE)) == PAGE

    async def work() -> None:
        for _ in range(calls):
            await contender.newest(PAGE)

    return await measure(calls, work)


@dataclass(slots=True)
class _Figures:
    # Filter, then depth, then size.
    ours: dict[str, dict[str, dict[int, Cost]]] = field(default_factory=dict)
    # The same columns by a bare SELECT, by size.
    bare: dict[int, Cost] = field(default_factory=dict)
    # Name, then size.
    others: dict[str, dict[int, Cost]] = field(default_factory=dict)
    # Why Hitherto, or a peer, was not measured.
    broken: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    combination: tuple[int, int, Sample] | None = None
    over_acp: list_acp.Pages = field(default_factory=dict)


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    figures = _Figures()
    meter.begin("list", 0)
    _measure_others(figures, sizes, folder, meter)
    try:
        _measure_ours(figures, sizes, folder, meter)
    except ContenderFailed as failure:
        figures.broken.append(str(failure))
    return Part(
        title="List",
        method=_method(sizes),
        bars=[
            _flat(figures),
            _beside_raw(figures),
            _bounded(figures, max(sizes.list_sizes)),
            list_acp.bar(figures.over_acp),
        ],
        tables=[
            *_our_tables(figures, sizes),
            _others_table(figures, sizes),
            list_acp.table(figures.over_acp),
        ],
        charts=[_chart(figures)],
    )


def _measure_ours(figures: _Figures, sizes: Sizes, folder: Path, meter: Meter) -> None:
    names = list(catalogue.filters(1))
    fills = sum(len(range(0, size, BATCH)) for size in sizes.list_sizes)
    meter.more(fills + len(names) * (len(sizes.list_sizes) + sizes.list_rounds + 1) + 2)
    with tempfile.TemporaryDirectory(dir=folder) as below, ExitStack() as stack:
        lanes: dict[int, Lane] = {}
        for size in sizes.list_sizes:
            place = Path(below) / str(size)
            place.mkdir()
            lanes[size] = stack.enter_context(Lane(HITHERTO.contender, str(place)))
            for first in range(0, size, BATCH):
                lanes[size].run(fill_catalogue, first, min(BATCH, size - first), size)
                meter.step()
        for name in names:
            figures.ours[name] = _measure_filter(name, lanes, sizes, meter, figures)
        bare = [
            Job(str(size), lane, read_bare_page, lambda _: (sizes.list_calls,))
            for size, lane in lanes.items()
        ]
        done = interleave(bare, sizes.list_rounds, lambda: None)
        figures.bare = {size: median(done.samples[str(size)]) for size in lanes}
        figures.combination = lanes[max(lanes)].run(walk_in_vain)
        meter.step()
        stores = {size: Path(below) / str(size) / "hitherto.db" for size in sizes.list_sizes}
        figures.over_acp = list_acp.measure(stores, sizes)
        meter.step()


def _measure_filter(
    name: str, lanes: dict[int, Lane], sizes: Sizes, meter: Meter, figures: _Figures
) -> dict[str, dict[int, Cost]]:
    jobs: list[Job] = []
    for size, lane in lanes.items():
        given = catalogue.filters(size)[name]
        for depth, cursor in zip(DEPTHS, lane.run(find_depths, given), strict=True):
            jobs.append(_page_job(f"{depth} {size}", lane, (given, cursor, sizes.list_calls)))
        meter.step()
    done = interleave(jobs, sizes.list_rounds, meter.step)
    figures.broken += [f"{name}, {key}: {reason}" for key, reason in done.failures.items()]
    return {
        depth: {
            size: median(done.samples[f"{depth} {size}"])
            for size in lanes
            if f"{depth} {size}" not in done.failures
        }
        for depth in DEPTHS
    }


def _page_job(key: str, lane: Lane, arguments: tuple[object, ...]) -> Job:
    return Job(key, lane, read_page, lambda _: arguments)


def _measure_others(figures: _Figures, sizes: Sizes, folder: Path, meter: Meter) -> None:
    """The peers that can list, and the raw limit, each in one lane per size."""
    wanted = [(RAW, size) for size in sizes.list_sizes]
    wanted += [(peer, size) for peer in PEERS if peer.lists for size in sizes.peer_list_sizes]
    meter.more(len(wanted) + sizes.list_rounds + 1)
    with tempfile.TemporaryDirectory(dir=folder) as below, ExitStack() as stack:
        jobs = []
        for number, (entrant, size) in enumerate(wanted):
            place = Path(below) / str(number)
            place.mkdir()
            try:
                lane = stack.enter_context(Lane(entrant.contender, str(place)))
                lane.run(make_sessions, size)
            except ContenderFailed as failure:
                figures.failures[entrant.name] = str(failure)
            else:
                # What reads the whole list each time needs no repetition to be measured.
                calls = sizes.list_calls if entrant is RAW else 1
                jobs.append(_newest_job(entrant, size, lane, calls))
            meter.step()
        done = interleave(jobs, sizes.list_rounds, meter.step)
    for key, samples in done.samples.items():
        name, size_text = key.rsplit(" ", 1)
        if key in done.failures:
            figures.failures[name] = done.failures[key]
        else:
            figures.others.setdefault(name, {})[int(size_text)] = median(samples)


def _newest_job(entrant: Entrant, size: int, lane: Lane, calls: int) -> Job:
    return Job(f"{entrant.name} {size}", lane, read_newest, lambda _: (calls,))


def _method(sizes: Sizes) -> str:
    among = ", ".join(f"{size:,}" for size in sizes.list_sizes)
    return (
        f"A page of {PAGE} sessions, newest activity first, among {among} sessions; all sizes and depths take turns. "
        f"CPU per page, in slices of {sizes.list_calls} pages over {sizes.list_rounds} rounds. *Every fifth*: a value "
        f"that a fifth of all sessions have; *seldom*: a value of {catalogue.SELDOM} sessions at every size, spread "
        "evenly from the newest to the oldest. *Middle* and *deepest*: the page at a cursor half-way through the "
        "filtered list and at its end, reached by walking. A page that comes in pieces is read until it is full, and "
        "all pieces count. The combination: two filters that a fifth of the sessions meet, and no session both."
    )


def _spread(depths: dict[str, dict[int, Cost]]) -> float:
    """The dearest page, of any size and depth, over the cheapest."""
    all_costs = [cost.cpu for by_size in depths.values() for cost in by_size.values()]
    return max(all_costs) / min(all_costs) if all_costs else 0.0


def _growth(depths: dict[str, dict[int, Cost]]) -> float:
    """How much dearer the page is among the most sessions than among the fewest, at the worst depth."""
    ratios = [by_size[max(by_size)].cpu / by_size[min(by_size)].cpu for by_size in depths.values() if by_size]
    return max(ratios, default=0.0)


def _flat(figures: _Figures) -> Bar:
    if not figures.ours or figures.broken:
        return not_measured(PROMISE, "; ".join(figures.broken))
    spreads = {name: _spread(depths) for name, depths in figures.ours.items()}
    worst = max(spreads, key=lambda name: spreads[name])
    return at_most(PROMISE, spreads[worst], FLAT, f"{times(spreads[worst])} times at worst (filter: {worst})")


def _beside_raw(figures: _Figures) -> Bar:
    if not figures.bare or figures.broken:
        return not_measured(BESIDE_RAW, "; ".join(figures.broken))
    first = figures.ours["none"]["first"]
    ratios = {size: first[size].cpu / cost.cpu for size, cost in figures.bare.items()}
    worst = max(ratios, key=lambda size: ratios[size])
    figure = f"{times(ratios[worst])} times ({duration(first[worst].cpu)} against {duration(figures.bare[worst].cpu)})"
    return at_most(BESIDE_RAW, ratios[worst], NEAR, figure)


def _bounded(figures: _Figures, size: int) -> Bar:
    if figures.combination is None:
        return not_measured(BOUNDED, "; ".join(figures.broken))
    candidates, pages, sample = figures.combination
    rows = candidates / pages
    figure = (
        f"{rows:,.0f} rows per page ({candidates:,} candidates among {size:,} sessions in {pages} pages, "
        f"{duration(sample.cpu / pages)} of CPU each)"
    )
    return at_most(BOUNDED, rows, ROWS_EXAMINED, figure)


def _our_tables(figures: _Figures, sizes: Sizes) -> Sequence[Table]:
    rows = []
    for name, depths in figures.ours.items():
        cells = [_cell(depths[depth].get(size)) for depth in DEPTHS for size in sizes.list_sizes]
        rows.append([name, times(_growth(depths)), times(_spread(depths)), *cells])
    columns = [
        "filter",
        "most / fewest sessions",
        "dearest / cheapest",
        *(f"{depth}, {size:,}" for depth in DEPTHS for size in sizes.list_sizes),
    ]
    caption = (
        f"Hitherto: CPU of a page of {PAGE}, by depth and by number of sessions; the ratios are what counts."
    )
    return [Table(caption, columns, rows)] if rows else []


def _others_table(figures: _Figures, sizes: Sizes) -> Table:
    every = sorted({*sizes.list_sizes, *sizes.peer_list_sizes})
    shown = dict(figures.others)
    if "none" in figures.ours:
        shown = {
            HITHERTO.name: figures.ours["none"]["first"],
            "a bare SELECT of its columns": figures.bare,
            **shown,
        }
    rows = [
        [
            name,
            times(costs[max(costs)].cpu / costs[min(costs)].cpu),
            _beside(costs, shown.get(HITHERTO.name, {})),
            *(_cell(costs.get(size)) for size in every),
        ]
        for name, costs in shown.items()
    ]
    rows += [[name, "", "", reason] for name, reason in figures.failures.items()]
    columns = ["contender", "most / fewest sessions", "/ Hitherto", *(f"{size:,}" for size in every)]
    caption = (
        f"CPU of the newest {PAGE}, plain, for those that can list at all (google-adk: only the whole list; "
        "openai-agents and langgraph have no list of sessions)."
    )
    return Table(caption, columns, rows)


def _beside(costs: dict[int, Cost], ours: dict[int, Cost]) -> str:
    """How often Hitherto's cost it is, at the largest size that both have."""
    both = costs.keys() & ours.keys()
    return times(costs[max(both)].cpu / ours[max(both)].cpu) if both else ""


def _cell(cost: Cost | None) -> str:
    return duration(cost.cpu) if cost else ""


def _chart(figures: _Figures) -> Chart:
    lines = {
        name: {size: cost.cpu * 1e3 for size, cost in costs.items()} for name, costs in figures.others.items()
    }
    for name in ("none", "cwd, seldom", "tag, every fifth", "title, seldom"):
        if name in figures.ours:
            costs = figures.ours[name]["deepest"]
            lines[f"Hitherto, filter: {name}, deepest page"] = {
                size: cost.cpu * 1e3 for size, cost in costs.items()
            }
    return Chart(
        name="list",
        title=f"A page of {PAGE} sessions",
        values="milliseconds of CPU",
        sizes="sessions in the store",
        lines=lines,
    )
