"""Finding words in a great many messages: the sessions, newest first, in which they were said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.contenders import HITHERTO
from bench.harness.lanes import Field, opened
from bench.harness.lockstep import ContenderFailed, Job, interleave
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration, not_measured
from bench.harness.samples import Cost, Sample, measure, median
from bench.harness.sizes import Sizes
from bench.workloads.messages import Message, messages

if TYPE_CHECKING:
    from bench.contenders.hitherto import Hitherto

CHARACTERS = 300
HITS = 20
LIMIT = 0.05
RARE_MESSAGES = 12
# Messages per request to fill.
BATCH_SESSIONS = 50

PROMISE = "search for a rare and for a common word, newest 20 sessions: under 50 ms of CPU"
COMMON, UNCOMMON, RARE, NEVER = "aubergine", "celeriac", "salsify", "rutabaga"
QUERIES = {
    "common word (every second message)": COMMON,
    "uncommon word (one message in a thousand)": UNCOMMON,
    f"rare word ({RARE_MESSAGES} messages)": RARE,
    "word that nobody said": NEVER,
    "common and uncommon word": f"{COMMON} {UNCOMMON}",
    "common and rare word": f"{COMMON} {RARE}",
    "beginning of a word": f"{COMMON[:5]}*",
    "phrase": f'"{COMMON} {UNCOMMON}"',
}
JUDGED = (next(iter(QUERIES)), f"rare word ({RARE_MESSAGES} messages)")


def spoken(number: int, total: int, message: Message) -> Message:
    """The message with the words that will be looked for."""
    words = [message.text[:CHARACTERS]]
    if number % 2 == 0:
        words.append(COMMON)
    if number % 1_000 == 0:
        words.append(UNCOMMON)
    if number % (total // RARE_MESSAGES) == 0:
        words.append(RARE)
    return Message(message.role, " ".join(words))


async def fill(contender: Hitherto, first: int, sessions: int, each: int, total: int) -> None:
    """Make sessions and say something in each."""
    for session in range(first, first + sessions):
        start = session * each
        said = [
            spoken(number, total, message)
            for number, message in enumerate(messages(start, each, CHARACTERS), start)
        ]
        await contender.fill(f"session {session}", said)


async def catch_up(contender: Hitherto) -> Sample:
    """Bring the index up to date with everything that was stored."""
    return await measure(1, contender.settle)


async def search(contender: Hitherto, query: str, calls: int) -> Sample:
    """Search again and again; the number of sessions found is checked by the caller's table."""

    async def work() -> None:
        for _ in range(calls):
            await contender.search(query, HITS)

    return await measure(calls, work)


async def count_hits(contender: Hitherto, query: str) -> int:
    """How many sessions the first page of hits has."""
    return len((await contender.search(query, HITS)).hits)


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    fills = len(range(0, sizes.search_sessions, BATCH_SESSIONS))
    meter.begin("search", fills + 1 + sizes.search_rounds + 1)
    costs: dict[str, Cost] = {}
    hits: dict[str, int] = {}
    with opened([HITHERTO], folder) as field:
        try:
            costs, hits = _measure(field, sizes, meter)
        except ContenderFailed as failure:
            field.failures[HITHERTO.name] = str(failure)
    return Part(
        title="Search",
        method=_method(sizes),
        bars=[_bar(costs, hits, field.failures.get(HITHERTO.name, "no lane ran"))],
        tables=[_table(costs, hits)] if costs else [],
    )


def _measure(field: Field, sizes: Sizes, meter: Meter) -> tuple[dict[str, Cost], dict[str, int]]:
    if HITHERTO not in field.lanes:
        raise ContenderFailed(field.failures[HITHERTO.name])
    lane = field.lanes[HITHERTO]
    each = sizes.search_messages // sizes.search_sessions
    for first in range(0, sizes.search_sessions, BATCH_SESSIONS):
        count = min(BATCH_SESSIONS, sizes.search_sessions - first)
        lane.run(fill, first, count, each, sizes.search_messages)
        meter.step()
    lane.run(catch_up)
    meter.step()
    hits = {name: lane.run(count_hits, query) for name, query in QUERIES.items()}

    def job(name: str, query: str) -> Job:
        return Job(name, lane, search, lambda _: (query, sizes.search_calls))

    done = interleave([job(name, query) for name, query in QUERIES.items()], sizes.search_rounds, meter.step)
    for failure in done.failures.values():
        raise ContenderFailed(failure)
    return {name: median(samples) for name, samples in done.samples.items()}, hits


def _method(sizes: Sizes) -> str:
    return (
        f"{sizes.search_messages:,} messages of about {CHARACTERS} characters in {sizes.search_sessions:,} sessions, "
        f"all of one owner; the index up to date. One search returns the {HITS} newest sessions with their best hit, "
        f"a snippet and a capped count of further hits. CPU per search, in slices of {sizes.search_calls} over "
        f"{sizes.search_rounds} rounds. None of the peers searches the text of messages."
    )


def _bar(costs: dict[str, Cost], hits: dict[str, int], reason: str) -> Bar:
    if not costs:
        return not_measured(PROMISE, reason)
    if hits[JUDGED[0]] != HITS or hits[JUDGED[1]] == 0:
        return not_measured(PROMISE, "a search did not find what there is")
    worst = max(costs[name].cpu for name in JUDGED)
    figure = ", ".join(f"{name}: {duration(costs[name].cpu)}" for name in JUDGED)
    return at_most(PROMISE, worst, LIMIT, figure)


def _table(costs: dict[str, Cost], hits: dict[str, int]) -> Table:
    rows = [[name, str(hits[name]), duration(cost.cpu), duration(cost.wall)] for name, cost in costs.items()]
    return Table("One search.", ("query", "sessions returned", "CPU", "wall"), rows)
