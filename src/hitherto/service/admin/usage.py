"""What sessions have used and cost: one session and its turns, or everything by day, project, model and agent.

What a report adds up are requests that were counted from stored messages beforehand, behind what is written: in the
background of a server, and before a report.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from hitherto.errors import InvalidInput, SessionNotFound, StoreDamaged, StoreFull, StoreUnavailable
from hitherto.model import Principal, encode
from hitherto.ports import KeptUsage, Writer
from hitherto.service.admin.counts import CountedSession, count_session
from hitherto.service.admin.requests import changed_sessions, count_logs, keep_requests, move_on
from hitherto.service.admin.spending import (
    GROUPS,
    PERIODS,
    By,
    Labels,
    Period,
    UsageReport,
    checked_day,
    checked_zone,
    load_requests,
    moment_of,
    rows_of,
)
from hitherto.service.core import Room
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner, is_clean
from hitherto.values.usage.requests import each_once, sum_of
from hitherto.values.usage.sessions import SessionCount, SessionUsage, decoded_count, usage_of

MOST_ROWS = 10_000
SOME = 20
SOME_MESSAGES = 5_000
MOST_MESSAGES = 100_000
"""So many messages are read while somebody waits for the numbers of sessions: by default, and at most."""
LEAST_EFFORT = 250
"""To look at a session at all is as much work as to read so many messages."""
MOST_TURNS = 1_000
"""Of how many of the newest turns a session's usage tells."""
MOST_DAYS = 36_600
REPORT_SECONDS = 20.0
"""How long a report counts what was not counted yet before it answers with what there is."""


class _Known(NamedTuple):
    """The count that is kept of a session, whether it is of the session as it is now, and else how much work that would be."""

    numbers: SessionCount | None
    is_current: bool
    effort: int


def _known(count: SessionCount | None, kept: KeptUsage) -> _Known:
    done = count.head if count is not None and count.shape else 0
    current = count is not None and kept.counted == kept.revision
    return _Known(count, current, max(kept.size - done, LEAST_EFFORT))


class Spending(Room):
    """Tokens and money."""

    async def usage(self, who: Principal, session_id: str) -> SessionUsage:
        """What a session has used, as a whole and turn by turn."""
        await self._store.read(lambda tx: require_session(tx, who, session_id))
        found = await count_session(self._store, checked_owner(who), session_id, None)
        if found is None:
            raise SessionNotFound(session_id)
        return usage_of(found.numbers, turns=found.turns[-MOST_TURNS:])

    async def numbers(
        self, who: Principal, session_ids: Sequence[str], *, most: int = SOME_MESSAGES
    ) -> dict[str, SessionUsage]:
        """What each of these sessions has used, as `usage` tells it, without turns; foreign ids are left out.

        They are counted behind what is written. Those that changed since are counted now, as long as no more than `most` messages have
        to be read for that; the others are as they were (`current` is False), and left out if they were never counted.
        """
        owner = checked_owner(who)
        kept = await self._kept(owner, [each for each in session_ids if is_clean(each)])
        behind, left = list[str](), min(most, MOST_MESSAGES)
        for name, each in kept.items():
            if not each.is_current and each.effort <= left:
                behind.append(name)
                left -= each.effort
        new = await self._count_some(owner, behind, kept, None)
        with suppress(StoreUnavailable, StoreFull):
            await self._keep([each for each in new if each.turns])
        known = {
            name: usage_of(each.numbers, current=each.is_current)
            for name, each in kept.items()
            if each.numbers is not None
        }
        return known | {each.record.session.id: usage_of(each.numbers) for each in new}

    async def count(self, who: Principal, *, seconds: float | None = None) -> bool:
        """Count what was written since the last time, requests and sessions; False if the time was over before all were."""
        owner, until = checked_owner(who), None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            before, position, ids = await self._store.read(lambda tx: changed_sessions(tx, owner))
            if not ids and position == before:
                return True
            if not await self._count_sessions(owner, ids, until):
                return False
            await self._store.write(lambda tx, to=position: move_on(tx, owner, to))  # type: ignore[misc]
        return False

    async def count_for(self, who: Principal, seconds: float) -> bool:
        """The same for whoever only reads: False also if the store cannot be written to."""
        try:
            return await self.count(who, seconds=seconds)
        except (StoreUnavailable, StoreFull):
            return False

    async def report(
        self,
        who: Principal,
        *,
        since_day: str,
        until_day: str,
        period: Period | None = "day",
        by: By | None = None,
        zone: str = "UTC",
        project: str | None = None,
        seconds: float = REPORT_SECONDS,
    ) -> UsageReport:
        """What was used from one day to another, both included: a row for each period, each `by`, or both.

        Days, weeks (`2026-W46`) and months are those of the time zone: `Europe/Berlin`, `+02:00`. What forks and copies
        share counts once, in the session that was created first. What was not counted yet is counted for so many seconds at most.
        """
        local, first, last = checked_zone(zone), checked_day(since_day), checked_day(until_day)
        if period not in (None, *PERIODS) or by not in (None, *GROUPS):
            raise InvalidInput(f"use a period of {', '.join(PERIODS)}, by {', '.join(GROUPS)}")
        if not 0 <= (last - first).days < MOST_DAYS:
            raise InvalidInput(f"a report begins before it ends: {since_day} is not before {until_day}")
        complete = await self.count_for(who, min(max(seconds, 0.0), REPORT_SECONDS))
        owner = checked_owner(who)
        begin, end = (moment_of(day, local) for day in (first, last + timedelta(days=1)))
        requests, labels = await self._store.read(lambda tx: load_requests(tx, owner, begin, end))
        if project is not None:
            kept = {log: each for log, each in labels.sessions.items() if each.project == project}
            labels = Labels(kept)
        found = await asyncio.to_thread(lambda: list(each_once(requests, labels.rank)))
        rows = await asyncio.to_thread(rows_of, found, labels, local, period, by)
        return UsageReport(
            since=first.isoformat(),
            until=last.isoformat(),
            zone=zone,
            rows=tuple(rows[:MOST_ROWS]),
            total=sum_of(found),
            sessions=len({request.log for request in found}),
            complete=complete and len(rows) <= MOST_ROWS,
        )

    async def _count_sessions(self, owner: str, ids: Sequence[str], until: float | None) -> bool:
        for start in range(0, len(ids), SOME):
            chosen = ids[start : start + SOME]
            while work := await self._store.read(lambda tx, some=chosen: count_logs(tx, owner, some)):  # type: ignore[misc]
                await self._store.write(lambda tx, done=work: keep_requests(tx, owner, done))  # type: ignore[misc]
                if until is not None and time.monotonic() >= until:
                    return False
            if not await self._keep_counts(owner, chosen, until):
                return False
        return True

    async def _keep_counts(self, owner: str, ids: Sequence[str], until: float | None) -> bool:
        """Count those of these sessions that changed, and keep the counts; False if the time was over before."""
        kept = await self._kept(owner, ids)
        behind = [name for name, each in kept.items() if not each.is_current]
        await self._keep(await self._count_some(owner, behind, kept, until))
        return until is None or time.monotonic() < until

    async def _kept(self, owner: str, ids: Sequence[str]) -> dict[str, _Known]:
        kept = await self._store.read(lambda tx: tx.session_usage(owner, ids))
        counts = {name: decoded_count(each.body) for name, each in kept.items()}
        return {name: _known(counts[name], kept[name]) for name in ids if name in kept}

    async def _count_some(
        self, owner: str, ids: Sequence[str], kept: Mapping[str, _Known], until: float | None
    ) -> list[CountedSession]:
        """Count these sessions until that time, from where they were counted before; a damaged one is left out."""
        found = []
        for session_id in ids:
            with suppress(StoreDamaged):
                found.append(await count_session(self._store, owner, session_id, kept[session_id].numbers))
            if until is not None and time.monotonic() >= until:
                break
        return [each for each in found if each is not None]

    async def _keep(self, found: Sequence[CountedSession]) -> None:
        async def work(tx: Writer) -> None:
            # In the same order everywhere: two that count the same sessions do not wait for each other.
            for record, count, _ in sorted(found, key=lambda each: each.record.num):
                await tx.put_session_usage(record, encode(count))

        if found:
            await self._store.write(work)
