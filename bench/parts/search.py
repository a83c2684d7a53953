"""Finding words in a great many messages, newest first and best match, and what the index takes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.contenders import HITHERTO
from bench.harness.lanes import opened
from bench.harness.lockstep import ContenderFailed, Job, Lane, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration, not_measured, times
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from bench.workloads.messages import Message, messages

if TYPE_CHECKING:
    from bench.contenders.hitherto import Hitherto
    from hitherto.service.search.sessions import Order

CHARACTERS = 300
HITS = 20
RARE_MESSAGES = 12
SMALLER = 10
# Sessions per request to fill.
BATCH_SESSIONS = 50
SPREAD = 7_919
"""A prime: sessions follow each other in an order that is not that of their times."""

NEWEST, BEST = "newest", "best"
COMMON, UNCOMMON, RARE, NEVER = "aubergine", "celeriac", "salsify", "rutabaga"
OFTEN = {"parsnips": 20, "turnip": 50, "harvested": 100, "pickles": 100}
"""Words that one message in so many has."""
WORD, RARE_WORD, FIVE, BEGINNING = (
    "common word (every second message)",
    f"rare word ({RARE_MESSAGES} messages)",
    "question of five words",
    "beginning of a word",
)
QUERIES = {
    WORD: COMMON,
    "uncommon word (one message in a thousand)": UNCOMMON,
    RARE_WORD: RARE,
    "word that nobody said": NEVER,
    "common and uncommon word": f"{COMMON} {UNCOMMON}",
    "common and rare word": f"{COMMON} {RARE}",
    FIVE: "when did we harvest aubergines, parsnips and turnips to pickle them?",
    BEGINNING: f"{COMMON[:5]}*",
    "phrase": f'"{COMMON} {UNCOMMON}"',
}


class Limit(NamedTuple):
    """What is promised of some searches in one order: so many seconds of CPU for the dearest."""

    promise: str
    order: str
    queries: tuple[str, ...]
    seconds: float


LIMITS = (
    Limit("search, newest first, rare word, common word, five words: at most 15 ms of CPU", NEWEST, (RARE_WORD, WORD, FIVE), 0.015),
    Limit("search, best match, rare word, common word, five words: at most 40 ms of CPU", BEST, (RARE_WORD, WORD, FIVE), 0.040),
    Limit("search, newest first, beginning of a word: at most 50 ms of CPU", NEWEST, (BEGINNING,), 0.050),
    Limit("search, best match, beginning of a word: at most 50 ms of CPU", BEST, (BEGINNING,), 0.050),
)  # fmt: skip
FLAT = f"search, each of these: CPU at most 1.5 times as among {SMALLER} times fewer messages"
FLAT_TIMES = 1.5
INDEX = "the search index: at most 1.25 times one in the order of commits, which is not that of time"
INDEX_TIMES = 1.25
PROMISES = (*(each.promise for each in LIMITS), FLAT, INDEX)

Costs = dict[tuple[str, str], Cost]


def spoken(number: int, total: int, message: Message) -> Message:
    """The message with the words that will be looked for."""
    words = [message.text[:CHARACTERS]]
    if number % 2 == 0:
        words.append(COMMON)
    if number % 1_000 == 0:
        words.append(UNCOMMON)
    if number % (total // RARE_MESSAGES) == 0:
        words.append(RARE)
    words += [word for word, every in OFTEN.items() if number % every == every // 2]
    return Message(message.role, " ".join(words))


async def fill(contender: Hitherto, first: int, sessions: int, each: int, total: int) -> None:
    """Make sessions, at times of a whole year, and say something in each."""
    for session in range(first, first + sessions):
        start = session * each
        said = [
            spoken(number, total, message)
            for number, message in enumerate(messages(start, each, CHARACTERS), start)
        ]
        moment = session * SPREAD % (total // each) / (total // each)
        await contender.fill(f"session {session}", said, moment)


async def catch_up(contender: Hitherto) -> Sample:
    """Bring the index up to date with everything that was stored."""
    return await measure(1, contender.settle)


async def index_sizes(contender: Hitherto) -> tuple[int, int]:
    """The bytes of the index, and of one of the same words in the order of commits."""
    return contender.index_sizes()


async def search(contender: Hitherto, query: str, order: Order, calls: int) -> Sample:
    """Search again and again; the number of sessions found is checked by the caller's table."""

    async def work() -> None:
        for _ in range(calls):
            await contender.search(query, HITS, order)

    return await measure(calls, work)


async def count_hits(contender: Hitherto, query: str, order: Order) -> int:
    """How many sessions the first page of hits has."""
    return len((await contender.search(query, HITS, order)).hits)


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("search", 2 * (sizes.search_rounds + 1) + 4)
    try:
        with ExitStack() as stack:
            figures = []
            for messages_, sessions in _stores(sizes):
                field = stack.enter_context(opened([HITHERTO], folder))
                if HITHERTO not in field.lanes:
                    raise ContenderFailed(field.failures[HITHERTO.name])
                figures.append(_Store(field.lanes[HITHERTO], messages_, sessions, sizes, meter))
            large, small = figures
            bars, tables = _bars(large, small), [_table(large, small)]
    except ContenderFailed as failure:
        bars, tables = [not_measured(promise, str(failure)) for promise in PROMISES], []
    return Part(title="Search", method=_method(sizes), bars=bars, tables=tables)


def _stores(sizes: Sizes) -> tuple[tuple[int, int], ...]:
    """How many messages and sessions each store has."""
    many, sessions = sizes.search_messages, sizes.search_sessions
    return (many, sessions), (many // SMALLER, sessions // SMALLER)


class _Store:
    """A store that was filled, and what searches of it cost."""

    def __init__(self, lane: Lane, total: int, sessions: int, sizes: Sizes, meter: Meter) -> None:
        for first in range(0, sessions, BATCH_SESSIONS):
            lane.run(fill, first, min(BATCH_SESSIONS, sessions - first), total // sessions, total)
        lane.run(catch_up)
        meter.step()
        asked = [(order, name) for order in (NEWEST, BEST) for name in QUERIES]
        self.hits = {key: lane.run(count_hits, QUERIES[key[1]], key[0]) for key in asked}
        self.index, self.plain = lane.run(index_sizes)
        meter.step()

        def job(order: str, name: str) -> Job:
            return Job(f"{order}: {name}", lane, search, lambda _: (QUERIES[name], order, sizes.search_calls))

        done = interleave([job(*key) for key in asked], sizes.search_rounds, meter.step)
        for failure in done.failures.values():
            raise ContenderFailed(failure)
        self.costs: Costs = {key: median(done.samples[f"{key[0]}: {key[1]}"]) for key in asked}


def _method(sizes: Sizes) -> str:
    return (
        f"{sizes.search_messages:,} messages of about {CHARACTERS} characters in {sizes.search_sessions:,} sessions, "
        "all of one owner, said at times of a whole year and stored in another order; the index up to date. One search returns"
        f" the {HITS} newest sessions, or the best, with their best hit,"
        f" a snippet and a capped count of further hits. CPU per search, in slices of {sizes.search_calls} over "
        f"{sizes.search_rounds} rounds. The same of {SMALLER} times fewer messages. None of the peers searches the text of messages."
    )


def _bars(large: _Store, small: _Store) -> list[Bar]:
    if large.hits[NEWEST, WORD] != HITS or not large.hits[BEST, FIVE] or not large.hits[BEST, RARE_WORD]:
        return [not_measured(promise, "a search did not find what there is") for promise in PROMISES]
    bars = []
    for limit in LIMITS:
        costs = {name: large.costs[limit.order, name].cpu for name in limit.queries}
        figure = ", ".join(f"{name}: {duration(cost)}" for name, cost in costs.items())
        bars.append(at_most(limit.promise, max(costs.values()), limit.seconds, figure))
    judged = [(limit.order, name) for limit in LIMITS for name in limit.queries]
    growth = max(large.costs[key].cpu / small.costs[key].cpu for key in judged)
    size = large.index / large.plain
    bars.append(at_most(FLAT, growth, FLAT_TIMES, f"{times(growth)} times at worst"))
    bars.append(at_most(INDEX, size, INDEX_TIMES, f"{times(size)} times ({large.index / 1e6:,.0f} MB)"))
    return bars


def _table(large: _Store, small: _Store) -> Table:
    rows = [
        [
            order,
            name,
            str(large.hits[order, name]),
            duration(cost.cpu),
            duration(cost.wall),
            duration(small.costs[order, name].cpu),
        ]
        for (order, name), cost in large.costs.items()
    ]
    columns = ("order", "query", "sessions returned", "CPU", "wall", f"CPU, {SMALLER} times fewer messages")
    return Table("One search.", columns, rows)
