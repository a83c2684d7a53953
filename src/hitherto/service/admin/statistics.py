"""Numbers about sessions: what they used, how many there are, and what was said on which day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from hitherto.errors import InvalidInput
from hitherto.model import (
    DayCount,
    Facets,
    Json,
    Overview,
    Principal,
    ProjectCount,
    Share,
)
from hitherto.ports import Activity
from hitherto.service.admin.usage import Spending
from hitherto.service.core import Core, Room
from hitherto.service.validation import MICROS, checked_owner
from hitherto.values.days import Tally, day_number, day_text

MOST = 10
SHOWN_FIELDS = ("kind", "schema", "bytes", "sqlite", "server")
"""The facts about a store that every owner may see: not where it is, nor what other owners have in it."""
MOST_DAYS = 3_700
"""Ten years and a little more."""
STATS_SECONDS = 5.0
"""How long what was not counted yet is counted before the numbers are read."""


class Statistics(Room):
    """Sessions in numbers."""

    def __init__(self, core: Core, spending: Spending) -> None:
        super().__init__(core)
        self._spending = spending

    async def facets(self, who: Principal) -> Facets:
        """How many sessions the caller has, and of which kinds; it costs the same among many as among few."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.facets(owner))

    async def stats(self, who: Principal) -> Json:
        """Numbers about the caller's sessions. The cost is what was reported, of what forks and copies share once; unless
        `cost_complete`, some messages are not counted in it yet."""
        owner = checked_owner(who)
        complete = await self._spending.count_for(who, STATS_SECONDS)
        return {**await self._store.read(lambda tx: tx.stats(owner)), "cost_complete": complete}

    async def overview(self, who: Principal, *, since_day: str, until_day: str) -> Overview:
        """What was said from one day to another (`2026-11-15`, in UTC, both included)."""
        owner, first, last = checked_owner(who), day_number(since_day), day_number(until_day)
        if not 0 <= last - first < MOST_DAYS:
            raise InvalidInput(f"an overview covers 1 to {MOST_DAYS} days, not {last - first + 1}")
        found = await self._store.read(lambda tx: tx.activity(owner, first, last, MOST))
        return Overview(
            days=tuple(_day(*each) for each in found.days),
            by_agent=tuple(_shares(found, lambda agent, _: agent)),
            by_model=tuple(_shares(found, lambda _, model: model)),
            projects=tuple(_project(*each) for each in found.projects),
            longest=tuple(record.session for record in found.longest),
            store={
                name: value for name, value in (await self._store.about()).items() if name in SHOWN_FIELDS
            },
        )


def _day(day: int, sessions: int, tally: Tally) -> DayCount:
    return DayCount(
        day=day_text(day),
        sessions=sessions,
        messages=tally.messages,
        tokens=tally.tokens,
        cost=_dollars(tally),
    )


def _project(project: str, sessions: int, tally: Tally) -> ProjectCount:
    return ProjectCount(
        project=project,
        sessions=sessions,
        messages=tally.messages,
        tokens=tally.tokens,
        cost=_dollars(tally),
    )


def _shares(found: Activity, name_of: Callable[[str, str], str]) -> Iterable[Share]:
    """The days by one of the names that shares have."""
    sums: defaultdict[tuple[int, str], Tally] = defaultdict(Tally)
    for day, agent, model, tally in found.shares:
        name = name_of(agent, model)
        sums[day, name] = sums[day, name].plus(tally)
    for (day, name), tally in sorted(sums.items()):
        yield Share(
            day=day_text(day),
            name=name or None,
            messages=tally.messages,
            tokens=tally.tokens,
            cost=_dollars(tally),
        )


def _dollars(tally: Tally) -> float | None:
    return tally.cost / MICROS if tally.cost else None
