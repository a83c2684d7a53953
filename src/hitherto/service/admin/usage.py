"""What sessions have used and cost: one session and its turns, or everything by day, project, model and agent.

What a report adds up are requests that were counted from stored messages beforehand, behind what is written: in the
background of a server, and before a report.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from hitherto.errors import InvalidInput, StoreUnavailable
from hitherto.limits import LARGEST_NUMBER
from hitherto.model import Principal, Session, Value, decode_entry
from hitherto.ports import Reader, Record
from hitherto.service.admin.requests import (
    BATCH,
    changed_sessions,
    count_logs,
    keep_requests,
    light,
    move_on,
    request_in,
)
from hitherto.service.admin.spending import (
    GROUPS,
    PERIODS,
    By,
    Labels,
    Period,
    UsageReport,
    charged,
    checked_day,
    checked_zone,
    families_of,
    load_requests,
    moment_of,
    rows_of,
)
from hitherto.service.core import Room
from hitherto.service.records import load_lists, measure, require_session
from hitherto.service.validation import checked_owner
from hitherto.values import prices
from hitherto.values import spans as algebra
from hitherto.values.requests import CountedEntry, Request, UsageSum, each_once, sum_of
from hitherto.values.spans import Stretch
from hitherto.values.token_count import last_reported, total

MOST_ROWS = 10_000
SOME = 20
RECENT = 100
MOST_TURNS = 1_000
"""Of how many of the newest turns a session's usage tells."""
MOST_DAYS = 36_600
BYTES_PER_TOKEN = 4
REPORT_SECONDS = 20.0
"""How long a report counts what was not counted yet before it answers with what there is."""


class TurnUsage(Value, frozen=True):
    """What one turn has used. `prompt` is the id of its prompt, `duration_ms` from there to its last message."""

    prompt: str
    at: int
    duration_ms: int
    messages: int
    tool_failures: int
    usage: UsageSum


class SessionUsage(Value, frozen=True):
    """What a session has used, with all that was compacted or rewound.

    `messages` are those of the conversation, `context_messages` those that the model sees. `context_tokens` is the size
    of the context now, `context_estimated` if some of it is estimated; `window` what the model sees at most, which is
    assumed if `window_assumed`. `duration_ms` is the time that its turns took together.
    """

    usage: UsageSum
    messages: int
    context_messages: int
    context_tokens: int
    context_estimated: bool
    window: int
    window_assumed: bool
    model: str | None
    duration_ms: int
    tool_failures: int
    tokens: int | None
    turns: tuple[TurnUsage, ...] = ()


class _Part(msgspec.Struct):
    type: str = ""
    is_error: bool = False


class _Meta(msgspec.Struct, frozen=True):
    meta: Any = None
    compaction: Any = None
    compact_summary: Any = None


class _Said(CountedEntry, frozen=True):
    """As much of an entry as is counted, and whether tools failed."""

    parts: tuple[_Part, ...] = ()
    tokens: int | None = None
    meta: _Meta = _Meta()

    @property
    def is_prompt(self) -> bool:
        """Whether it begins a turn: a program may write in the user's name too."""
        return self.role == "user" and not self.meta.meta

    @property
    def is_summary(self) -> bool:
        """Whether it stands for what was said before."""
        return bool(self.meta.compaction or self.meta.compact_summary)

    @property
    def failures(self) -> int:
        """How many tools failed."""
        return sum(part.type == "tool_result" and part.is_error for part in self.parts)


_said = msgspec.json.Decoder(_Said)


class Spending(Room):
    """Tokens and money."""

    async def usage(self, who: Principal, session_id: str) -> SessionUsage:
        """What a session has used, as a whole and turn by turn."""
        record, said, beside = await self._store.read(lambda tx: _everything(tx, who, session_id))
        return await asyncio.to_thread(_session_usage, record, said, beside)

    async def count(self, who: Principal, *, seconds: float | None = None) -> bool:
        """Count the requests of what was written since the last time; False if the time was over before all were."""
        owner, until = checked_owner(who), None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            before, position, ids = await self._store.read(lambda tx: changed_sessions(tx, owner))
            if not ids and position == before:
                return True
            if not await self._count_sessions(owner, ids, until):
                return False
            await self._store.write(lambda tx, to=position: move_on(tx, owner, to))  # type: ignore[misc]
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
        complete = await self._is_counted(who, min(max(seconds, 0.0), REPORT_SECONDS))
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

    async def costs(self, who: Principal, session_ids: Sequence[str]) -> dict[str, UsageSum]:
        """What each of these sessions has used in its own messages, as far as it was counted; foreign ids are left out."""
        owner = checked_owner(who)

        async def work(tx: Reader) -> dict[str, UsageSum]:
            records = [await tx.session(owner, session_id) for session_id in session_ids]
            nums = {record.num: record.session.id for record in records if record is not None}
            found: defaultdict[int, list[Request]] = defaultdict(list)
            for request in await tx.requests(owner, 0, LARGEST_NUMBER, list(nums)):
                found[request.log].append(request)
            return {nums[num]: sum_of(each_once(requests, {num: (0, "")})) for num, requests in found.items()}

        return await self._store.read(work)

    async def _is_counted(self, who: Principal, seconds: float) -> bool:
        """Count what is missing; False if it could not be counted, or not in time."""
        try:
            return await self.count(who, seconds=seconds)
        except StoreUnavailable:
            return False

    async def _count_sessions(self, owner: str, ids: Sequence[str], until: float | None) -> bool:
        for start in range(0, len(ids), SOME):
            chosen = ids[start : start + SOME]
            while work := await self._store.read(lambda tx, some=chosen: count_logs(tx, owner, some)):  # type: ignore[misc]
                await self._store.write(lambda tx, done=work: keep_requests(tx, owner, done))  # type: ignore[misc]
                if until is not None and time.monotonic() >= until:
                    return False
        return True


class _Beside(NamedTuple):
    """Of a session: what is behind its conversation, and the size of its context."""

    raw: list[bytes]
    context_messages: int
    context_tokens: int
    context_estimated: bool


async def _everything(tx: Reader, who: Principal, session_id: str) -> tuple[Record, list[bytes], _Beside]:
    record = await require_session(tx, who, session_id)
    lists = await load_lists(tx, record)
    conversation, context = lists.conversation(), lists.context()
    more = list(context)
    for checkpoint in await tx.checkpoints(record.owner, record.num):
        spans = await tx.spans(record.owner, record.num, checkpoint.id)
        more += algebra.context(spans, record.num, record.head)
    reached, beside = list(conversation), list[Stretch]()
    for stretch in more:
        new = algebra.without(stretch, reached)
        reached, beside = [*reached, *new], [*beside, *new]
    said = await _payloads(tx, record.owner, conversation)
    left = await _payloads(tx, record.owner, beside)
    size = await _context(tx, record, context)
    return record, said, _Beside(left, algebra.size(context), *size)


async def _payloads(tx: Reader, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
    found: list[bytes] = []
    for start in range(0, algebra.size(stretches), BATCH):
        found += map(_trimmed, await tx.payloads(owner, algebra.slice_of(stretches, start, start + BATCH)))
    return found


def _trimmed(payload: bytes) -> bytes:
    """As much of an entry as is counted: a long session is never in memory as a whole."""
    return msgspec.json.encode(light(payload, _said))


async def _context(tx: Reader, record: Record, context: Sequence[Stretch]) -> tuple[int, bool]:
    """How many tokens the context takes now, and whether some of that is estimated."""
    size = algebra.size(context)
    newest = await tx.payloads(record.owner, algebra.slice_of(context, max(size - RECENT, 0), size))
    entries = [decode_entry(payload) for payload in newest]
    reported = last_reported(entries)
    if reported is None:
        sums = await measure(tx, record.owner, context)
        return sums.bytes // BYTES_PER_TOKEN, bool(size)
    place, used = reported
    return used + total(entries[place + 1 :]).number, place + 1 < len(entries)


def _session_usage(record: Record, said: Sequence[bytes], beside: _Beside) -> SessionUsage:
    synced = record.session.source is not None
    entries = [light(raw, _said) for raw in said]
    answers = [*entries, *(light(raw, _said) for raw in beside.raw)]
    requests = [
        request for seq, entry in enumerate(answers) if (request := request_in(entry, 0, seq, synced=synced))
    ]
    once = list(each_once(requests, {0: (0, "")}))
    turns = _turns(entries, {request.seq: request for request in once})
    models = [entry.model for entry in entries if entry.model]
    window = prices.window_of(models[-1]) if models else None
    return SessionUsage(
        usage=_as_reported(record.session, once),
        messages=sum(not entry.is_summary for entry in entries),
        context_messages=beside.context_messages,
        context_tokens=beside.context_tokens,
        context_estimated=beside.context_estimated,
        window=window or prices.ASSUMED_WINDOW,
        window_assumed=window is None,
        model=models[-1] if models else None,
        duration_ms=sum(turn.duration_ms for turn in turns),
        tool_failures=sum(turn.tool_failures for turn in turns),
        tokens=_known(entry.tokens for entry in entries if not entry.is_summary),
        turns=tuple(turns[-MOST_TURNS:]),
    )


def _as_reported(session: Session, once: Sequence[Request]) -> UsageSum:
    """The sum, at what the agent said that the session cost."""
    labels = Labels({0: session})
    paid = {each.seq: each for each in charged(once, families_of(labels), labels)}
    return sum_of(paid.get(each.seq, each) for each in once)


def _turns(entries: Sequence[_Said], requests: Mapping[int, Request]) -> list[TurnUsage]:
    """A turn begins with a prompt; what comes before the first prompt is a turn of its own."""
    starts = [place for place, entry in enumerate(entries) if entry.is_prompt]
    bounds = [*([0] if entries and 0 not in starts else []), *starts, len(entries)]
    found = []
    for first, end in pairwise(bounds):
        turn = entries[first:end]
        used = [requests[place] for place in range(first, end) if place in requests]
        found.append(
            TurnUsage(
                prompt=turn[0].id,
                at=turn[0].at,
                duration_ms=max(max(entry.at for entry in turn) - turn[0].at, 0),
                messages=len(turn),
                tool_failures=sum(entry.failures for entry in turn),
                usage=sum_of(used),
            )
        )
    return found


def _known(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
