"""Stored sessions: who may read and write them, the spans of their conversation, and its counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from hitherto.errors import (
    Busy,
    CheckpointNotFound,
    LeaseLost,
    ReadOnly,
    SessionNotFound,
    StoreDamaged,
)
from hitherto.holders import is_gone
from hitherto.limits import ENTRY_BYTES
from hitherto.model import EPISODE, Entry, Json, Lease, Principal, Session, Status, decode_entry, is_error
from hitherto.ports import Reader, Record, Totals, Writer
from hitherto.service.validation import MICROS, checked_owner, is_clean
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Expand, Spans, Stretch

RUNNING: tuple[Status, ...] = ("running", "waiting")
"""What a session is said to be doing while a turn of it runs."""
_EARLIER_ID = re.compile(
    r"claude-sdk:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):[0-9a-f]{32}"
    r"(?:/subagents/(?:[^/]+/)*(agent-[^/]+))?",
    re.IGNORECASE | re.DOTALL,
)
"""What `claude-agent-sdk` mirrors was a session of its own, beside the one that sync reads from the same transcript."""


async def require_session(tx: Reader, who: Principal, session_id: str) -> Record:
    """The caller's session, by its id or by one that it had before; foreign, malformed and missing ids are the same
    `SessionNotFound`."""
    owner = checked_owner(who)
    record = await tx.session(owner, session_id) if is_clean(session_id) else None
    if record is None and is_clean(session_id) and (now := _present_id(session_id)) is not None:
        record = await tx.session(owner, now)
    if record is None:
        raise SessionNotFound(session_id)
    return record


def _present_id(session_id: str) -> str | None:
    """The id that a session of this earlier id has now; None if the id is no earlier one."""
    found = _EARLIER_ID.fullmatch(session_id)
    if found is None:
        return None
    uuid, agent = found.groups()
    return f"claude:{uuid}:{agent}" if agent else f"claude:{uuid}"


async def require_writable(tx: Reader, record: Record, fence: int | None) -> None:
    """Raise unless the caller, with its fencing number or without one, may write to the session now."""
    if record.session.source is not None:
        raise ReadOnly(record.session.id)
    if record.lease is None and fence is None:
        return
    now = await tx.now()
    held = active_lease(record.lease, now)
    if fence is not None and (held is None or held.fence != fence):
        raise LeaseLost
    if fence is None and held is not None:
        raise Busy(held.holder, now - held.acquired_at)


def active_lease(lease: Lease | None, now: int) -> Lease | None:
    """The lease, unless its time is over or its holder has died."""
    if lease is None or lease.expires_at <= now or is_gone(lease.holder):
        return None
    return lease


async def change_session(tx: Writer, record: Record, kind: str, **fields: Any) -> Record:
    """Store changed fields of a session; every change raises its revision."""
    session = replace(record.session, revision=record.session.revision + 1, **fields)
    return await tx.rewrite(replace(record, session=session), kind)


class Lists:
    """The span lists of one session that its conversation is made of."""

    def __init__(self, record: Record, present: Spans, expansions: dict[str, Spans]) -> None:
        self.record = record
        self.present = present
        self.expansions = expansions

    @property
    def expand(self) -> Expand:
        """The spans a checkpoint holds."""
        return lambda checkpoint: self.expansions.get(checkpoint, ())

    def context(self) -> list[Stretch]:
        """What the model sees."""
        return algebra.context(self.present, self.record.num, self.record.head)

    def conversation(self) -> list[Stretch]:
        """All that was said."""
        return algebra.conversation(self.present, self.record.num, self.record.head, self.expand)

    def checkpoint_of(self, place: EntryPlace) -> str | None:
        """The checkpoint that the summary, or heading, at this place stands for."""
        spans = (span for each in (self.present, *self.expansions.values()) for span in each)
        return next((span.expands for span in spans if span.expands and span.holds(place)), None)

    def check(self) -> None:
        """Raise `StoreDamaged` if the context holds less than the session is known to."""
        missing = self.record.session.message_count - algebra.size(self.context())
        if missing > 0:
            raise StoreDamaged(f"{missing} messages of the session cannot be reached; run `hitherto doctor`")

    def closed(self) -> Spans:
        """The present spans, ended at the head."""
        return algebra.closed(self.present, self.record.num, self.record.head)


async def load_lists(tx: Reader, record: Record) -> Lists:
    """The present spans and, transitively, those of the checkpoints that summaries among them stand for.

    `StoreDamaged` if they hold less than the session is known to.
    """
    present = await tx.spans(record.owner, record.num)
    expansions = await load_expansions(tx, record, present)
    lists = Lists(record, present, expansions)
    lists.check()
    return lists


async def load_context(tx: Reader, record: Record) -> list[Stretch]:
    """What the model sees: the present spans alone, however much was said before. `StoreDamaged` likewise."""
    lists = Lists(record, await tx.spans(record.owner, record.num), {})
    lists.check()
    return lists.context()


async def context_entries(tx: Reader, record: Record) -> tuple[Entry, ...]:
    """The entries that the model sees."""
    payloads = await tx.payloads(record.owner, await load_context(tx, record))
    return tuple(map(decode_entry, payloads))


async def load_checkpoint(tx: Reader, record: Record, checkpoint: str) -> Lists:
    """The spans that a checkpoint holds, as if they were the present ones. Raises `CheckpointNotFound`, and `StoreDamaged` if
    they are gone."""
    known = {each.id: each for each in await tx.checkpoints(record.owner, record.num)}
    if checkpoint not in known:
        raise CheckpointNotFound(checkpoint)
    spans = await tx.spans(record.owner, record.num, checkpoint)
    if not spans and known[checkpoint].message_count:
        raise StoreDamaged("the spans of a checkpoint are gone; run `hitherto doctor`")
    return Lists(record, spans, await load_expansions(tx, record, spans))


async def load_expansions(tx: Reader, record: Record, spans: Sequence[algebra.Span]) -> dict[str, Spans]:
    """The checkpoints that these spans stand for, transitively."""
    found: dict[str, Spans] = {}
    waiting = algebra.summaries(spans)
    # All in one question: a chat that starts anew every day has hundreds.
    lists = await tx.span_lists(record.owner, record.num) if waiting else {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = lists.get(name, ())
            waiting.extend(algebra.summaries(found[name]))
    return found


async def count_said(tx: Reader, record: Record) -> int:
    """How many messages the session has: in its context and in its checkpoints, each once, without summaries."""
    lists = [(await load_lists(tx, record)).closed(), *await _checkpointed(tx, record)]
    summaries = {name for spans in lists for name in algebra.summaries(spans)}
    return algebra.size(_each_once(lists)) - len(summaries)


async def _checkpointed(tx: Reader, record: Record) -> list[Spans]:
    """The spans of each checkpoint of a session."""
    names = [known.id for known in await tx.checkpoints(record.owner, record.num)]
    return [await tx.spans(record.owner, record.num, name) for name in names]


def _each_once(lists: Iterable[Iterable[algebra.Span]]) -> list[Stretch]:
    """All that these closed spans reach, each entry once."""
    reached: list[Stretch] = []
    for span in (span for spans in lists for span in spans):
        reached.extend(algebra.without(Stretch(span.log, span.first, span.last or 0), reached))
    return reached


async def measure(tx: Reader, owner: str, stretches: Sequence[Stretch]) -> Totals:
    """The sums over a view: a few reads for each stretch, however long.

    What the first entry adds is taken from the entry itself: the one before it may have been collected.
    """
    sums = Totals()
    for stretch in stretches:
        upto = await tx.totals(owner, stretch.log, stretch.last)
        first = await tx.totals(owner, stretch.log, stretch.first)
        (payload,) = await tx.payloads(owner, [stretch._replace(last=stretch.first)])
        sums = sums.plus(upto.minus(first)).plus(totals_of(decode_entry(payload), payload))
    return sums


def totals_of(entry: Entry, payload: bytes) -> Totals:
    """What one entry adds to the sums; an erased one what it added before."""
    cost = entry.usage.cost if entry.usage and entry.usage.cost else 0.0
    size = entry.meta.get("bytes", len(payload)) if is_erased(entry) else len(payload)
    return Totals(
        tokens=entry.tokens or 0, errors=int(is_error(entry)), cost=round(cost * MICROS), bytes=size
    )


def is_erased(entry: Entry) -> bool:
    """Whether the entry's content was erased: what `blank_entry` has made."""
    size = entry.meta.get("bytes")
    blank = entry.meta.get("erased") is True and not entry.parts
    return blank and isinstance(size, int) and 0 <= size <= ENTRY_BYTES


def blank_entry(entry: Entry, size: int) -> Entry:
    """What stays of an entry: its place in the history, and what it adds to the sums."""
    meta: Json = {"erased": True, "bytes": size}
    if is_error(entry):
        meta["error"] = True
    if EPISODE in entry.meta:
        meta[EPISODE] = entry.meta[EPISODE]
    return Entry(
        id=entry.id,
        at=entry.at,
        role=entry.role,
        model=entry.model,
        usage=entry.usage,
        tokens=entry.tokens,
        meta=meta,
    )


def with_counts(session: Session, messages: int, sums: Totals) -> Session:
    """The session with the counts of its context; what is not known stays None."""
    return replace(
        session,
        message_count=messages,
        token_count=sums.tokens or None,
        error_count=sums.errors,
        cost=sums.cost / MICROS if sums.cost else None,
        bytes=sums.bytes,
    )


async def recount_session(
    tx: Reader, record: Record, spans: Sequence[algebra.Span], session: Session, *, forked: bool = False
) -> Session:
    """The session with the counts of these closed spans.

    Its cost is that of all that was ever said in it: of every checkpoint too, or, if it was `forked` from the record, of
    what its summaries stand for.
    """
    stretches = algebra.context(spans, record.num, record.head)
    sums = await measure(tx, record.owner, stretches)
    if record.totals.cost or record.session.cost:
        if forked:
            lists = [*(await load_expansions(tx, record, spans)).values()]
        else:
            present = await tx.spans(record.owner, record.num)
            lists = [algebra.closed(present, record.num, record.head), *await _checkpointed(tx, record)]
        whole = await measure(tx, record.owner, _each_once([spans, *lists]))
        sums = sums._replace(cost=whole.cost)
    return with_counts(session, algebra.size(stretches), sums)
