"""Numbers about sessions: what they used, how many there are, and what was said on which day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from hitherto.errors import InvalidInput
from hitherto.limits import HISTORY_PAGE
from hitherto.model import (
    DayCount,
    Entry,
    Facets,
    HistoryPage,
    Json,
    Overview,
    Principal,
    ProjectCount,
    Share,
    Usage,
    Value,
    decode_entry,
)
from hitherto.ports import Activity
from hitherto.service.core import Core, Room
from hitherto.service.history.branches import Branches
from hitherto.service.history.entries import Entries
from hitherto.service.validation import MICROS, checked_owner
from hitherto.values.days import Tally, day_number, day_text

MOST = 10
SHOWN_FIELDS = ("kind", "schema", "bytes", "sqlite", "server")
"""The facts about a store that every owner may see: not where it is, nor what other owners have in it."""
MOST_DAYS = 3_700
"""Ten years and a little more."""
PAGE_BYTES = 16 * 1024 * 1024
"""How much of a session is in memory while it is added up."""


class SessionUsage(Value, frozen=True):
    """What a session has used. Unknown values are None.

    `cost_status`: `complete` if every answer has a price, `partial_missing_price` if some have, else `unknown`.
    """

    messages: int
    tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    cost_status: str


class Statistics(Room):
    """Sessions in numbers."""

    def __init__(self, core: Core, entries: Entries, branches: Branches) -> None:
        super().__init__(core)
        self._entries, self._branches = entries, branches

    async def usage(self, who: Principal, session_id: str) -> SessionUsage:
        """What the whole session has used, including what was compacted and what branches have used."""
        spent = _UsageSum()
        await self._spend(who, session_id, spent, None, None)
        for branch in await self._branches.known(who, session_id):
            await self._spend(who, session_id, spent, branch.id, branch.after)
        return spent.usage()

    async def _spend(
        self, who: Principal, session_id: str, spent: _UsageSum, checkpoint: str | None, last: str | None
    ) -> None:
        """Add what was used after an entry, in the conversation or in a branch."""
        while True:
            page = await self._entries.history(
                who,
                session_id,
                view="conversation",
                checkpoint=checkpoint,
                after=last,
                limit=HISTORY_PAGE,
                max_bytes=PAGE_BYTES,
            )
            spent.add(page)
            if (last := page.next) is None:
                return

    async def facets(self, who: Principal) -> Facets:
        """How many sessions the caller has, and of which kinds; it costs the same among many as among few."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.facets(owner))

    async def stats(self, who: Principal) -> Json:
        """Numbers about the caller's sessions."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.stats(owner))

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


class _EntryUsage(msgspec.Struct):
    """As much of an entry as is needed."""

    usage: Usage | None = None
    tokens: int | None = None


_used = msgspec.json.Decoder(_EntryUsage)


class _UsageSum:
    """Sums of what is known; None where nothing is."""

    def __init__(self) -> None:
        self._messages = self._answers = self._priced = 0
        self._tokens: int | None = None
        self._input: int | None = None
        self._output: int | None = None
        self._cost: float | None = None

    def add(self, page: HistoryPage) -> None:
        """Add what was said; the summaries of compactions were not."""
        for raw in (raw for number, raw in enumerate(page.raw) if number not in page.marks):
            entry = _decode_usage(raw)
            self._messages += 1
            self._tokens = _sum(self._tokens, entry.tokens)
            if entry.usage is not None:
                self._add_answer(entry.usage)

    def _add_answer(self, used: Usage) -> None:
        self._answers += 1
        self._input = _sum(self._input, used.input)
        self._output = _sum(self._output, used.output)
        if used.cost is not None:
            self._priced += 1
            self._cost = used.cost + (self._cost or 0.0)

    def usage(self) -> SessionUsage:
        """All of it."""
        return SessionUsage(
            messages=self._messages,
            tokens=self._tokens if self._messages else 0,
            input_tokens=self._input,
            output_tokens=self._output,
            cost=self._cost,
            cost_status=self._cost_status(),
        )

    def _cost_status(self) -> str:
        if self._cost is None:
            return "unknown"
        return "complete" if self._priced == self._answers else "partial_missing_price"


def _decode_usage(raw: bytes) -> _EntryUsage | Entry:
    try:
        return _used.decode(raw)
    except msgspec.DecodeError:  # lone surrogates
        return decode_entry(raw)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


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
