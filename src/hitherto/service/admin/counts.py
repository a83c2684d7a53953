"""Counts of sessions: what each has used, as a whole and turn by turn, from its stored messages.

A count is kept beside its session and continued where the session only grew. Otherwise all of it is read again, in pieces:
a long session is never in memory as a whole, and keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec
from msgspec.structs import replace

from hitherto.model import Session, decode_entry
from hitherto.ports import Reader, Record, Store
from hitherto.service.admin.requests import BATCH, request_in
from hitherto.service.admin.spending import Labels, charged, families_of
from hitherto.service.records import load_lists
from hitherto.values import spans as algebra
from hitherto.values.spans import Span, Stretch
from hitherto.values.token_count import total
from hitherto.values.usage.requests import Request, each_once
from hitherto.values.usage.sessions import (
    ContextSize,
    Said,
    SessionCount,
    TurnUsage,
    counted,
    grown,
    newest_report,
    said,
    turns_of,
)

_ALONE = {0: (0, "")}
"""The rank of requests that are all of one session."""


class _View(NamedTuple):
    """What a session consists of: its conversation, what was said beside it, and what the model sees."""

    record: Record
    shape: int
    conversation: list[Stretch]
    beside: list[Stretch]
    context: list[Stretch]


class _Whole(NamedTuple):
    """As much of all that was said in a session as is counted."""

    entries: list[Said]
    beside: list[Said]
    context: ContextSize


class CountedSession(NamedTuple):
    """A session, the count of it as it was then, and its turns if all of it was read."""

    record: Record
    numbers: SessionCount
    turns: list[TurnUsage]


async def count_session(
    store: Store, owner: str, session_id: str, known: SessionCount | None
) -> CountedSession | None:
    """Count a session, from what was known of it before; None if it is not there. Raises `StoreDamaged`."""
    if known is not None and known.shape:
        continued = await _continued(store, owner, session_id, known)
        if continued is not None:
            return continued
    view = await store.read(lambda tx: _view(tx, owner, session_id))
    if view is None:
        return None
    entries = await _said(store, owner, view.conversation)
    beside = await _said(store, owner, view.beside)
    whole = _Whole(entries, beside, await _context(store, view, entries))
    return await asyncio.to_thread(_counted, view, whole)


async def _continued(store: Store, owner: str, session_id: str, known: SessionCount) -> CountedSession | None:
    """The count of a session that only grew; None if it did not, or that cannot be told from its end."""

    async def begin(tx: Reader) -> tuple[Record, int] | None:
        record = await tx.session(owner, session_id)
        return None if record is None else (record, _shape(record, await tx.spans(owner, record.num)))

    found = await store.read(begin)
    if found is None or found[1] != known.shape or known.head > found[0].head:
        return None
    record = found[0]
    synced, until = record.session.source is not None, _paid_until(record.session)
    count: SessionCount | None = known
    while count is not None and count.head < record.head:
        after = count.head
        rows = await store.read(lambda tx, at=after: tx.log_after(owner, record.num, at, BATCH))  # type: ignore[misc]
        rows = [row for row in rows if row[0] <= record.head]
        # Beside the event loop: the first price that is asked for takes a moment.
        count = await asyncio.to_thread(grown, count, rows, synced=synced, until=until) if rows else None
        count = None if count is None else replace(count, head=rows[-1][0])
    return None if count is None else CountedSession(record, _of_state(count, record.session), [])


async def _view(tx: Reader, owner: str, session_id: str) -> _View | None:
    record = await tx.session(owner, session_id)
    if record is None:
        return None
    lists = await load_lists(tx, record)
    conversation, context = lists.conversation(), lists.context()
    more = list(context)
    for checkpoint in await tx.checkpoints(owner, record.num):
        spans = await tx.spans(owner, record.num, checkpoint.id)
        more += algebra.context(spans, record.num, record.head)
    reached, beside = list(conversation), list[Stretch]()
    for stretch in more:
        new = algebra.without(stretch, reached)
        reached, beside = [*reached, *new], [*beside, *new]
    return _View(record, _shape(record, lists.present), conversation, beside, context)


async def _said(store: Store, owner: str, stretches: Sequence[Stretch]) -> list[Said]:
    found: list[Said] = []
    for start in range(0, algebra.size(stretches), BATCH):
        some = algebra.slice_of(stretches, start, start + BATCH)
        found += map(said, await store.read(lambda tx, part=some: tx.payloads(owner, part)))  # type: ignore[misc]
    return found


async def _context(store: Store, view: _View, entries: list[Said]) -> ContextSize:
    owner, context = view.record.owner, view.context
    seen = entries if context == view.conversation else await _said(store, owner, context)
    summary_at = max((entry.at for entry in seen if entry.is_summary), default=0)
    place = newest_report(seen, summary_at)
    first, after = 0 if place is None else place + 1, 0
    for start in range(first, len(seen), BATCH):
        some = algebra.slice_of(context, start, start + BATCH)
        payloads = await store.read(lambda tx, part=some: tx.payloads(owner, part))  # type: ignore[misc]
        after += await asyncio.to_thread(_tokens, payloads)
    reported = 0 if place is None else seen[place].context or 0
    return ContextSize(reported, after, len(seen) - first, summary_at)


def _tokens(payloads: Sequence[bytes]) -> int:
    return total(map(decode_entry, payloads)).number


def _counted(view: _View, whole: _Whole) -> CountedSession:
    session = view.record.session
    synced = session.source is not None
    answers = enumerate([*whole.entries, *whole.beside])
    requests = [request for seq, entry in answers if (request := request_in(entry, 0, seq, synced=synced))]
    once = list(each_once(requests, _ALONE))
    turns = list(turns_of(whole.entries, {request.seq: request for request in once}))
    count = counted(whole.entries, _as_reported(session, once), turns, whole.context)
    count = replace(count, shape=view.shape, head=view.record.head)
    return CountedSession(view.record, _of_state(count, session), turns)


def _of_state(count: SessionCount, session: Session) -> SessionCount:
    """The count with what the session itself says."""
    return replace(count, context_messages=session.message_count, failed=session.status == "failed")


def _as_reported(session: Session, once: Sequence[Request]) -> Iterable[Request]:
    """The requests, at what the agent said that the session cost."""
    labels = Labels({0: session})
    paid = {each.seq: each for each in charged(once, families_of(labels), labels)}
    return [paid.get(each.seq, each) for each in once]


def _paid_until(session: Session) -> int:
    """Until when the agent says what all requests together cost; -1 if it does not."""
    return max((each.until for each in families_of(Labels({0: session})).values()), default=-1)


def _shape(record: Record, spans: Sequence[Span]) -> int:
    """A digest of what a session consists of but its end, and of what its agent says that it cost; 0 if it does not just end
    with all of its own log."""
    last = spans[-1] if spans else None
    if last is None or last.log != record.num or last.last not in (None, record.head):
        return 0
    paid = (record.session.meta.get("cost"), record.session.meta.get("cost_at"))
    return crc32(msgspec.json.encode(([*spans[:-1], last._replace(last=None)], paid))) | 1
