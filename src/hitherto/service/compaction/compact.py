"""Compaction: a summary takes the place of what was said, for the model only. The conversation keeps all of it.

While a summariser works nothing is locked: the context is read, summarised, and read again when the summary is to take
its place. What was said meanwhile stays word for word; if anything else has changed, the summary is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from msgspec.structs import replace

from hitherto.errors import Busy, EngineError, InvalidInput, RevisionConflict
from hitherto.holders import is_gone, new_holder
from hitherto.model import Compaction as Done
from hitherto.model import Draft, Principal, Shrunk
from hitherto.ports import Reader, Record, Store, Writer
from hitherto.service.compaction.plan import (
    CHANGED,
    EMPTY,
    UNSETTLED,
    WHOLE,
    CompactionPlan,
    CompactionPreview,
    ContextSnapshot,
    plan,
)
from hitherto.service.core import Room
from hitherto.service.history.append import append_entries, complete_draft
from hitherto.service.history.checkpoints import add_checkpoint
from hitherto.service.memory.findings import remember_findings
from hitherto.service.notes import SUMMARISING, Note
from hitherto.service.records import load_context, recount_session, require_session, require_writable
from hitherto.service.validation import checked_drafts, checked_owner
from hitherto.summaries.builtin import Extractive
from hitherto.summariser import CompactionPolicy, Summariser
from hitherto.updates import Compacting, Emit
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace

ATTEMPTS = 10
"""How often a summary is retried in a session that others keep writing to."""


class Compaction(Room):
    """Making room in the context, in the way that holds unless a caller says otherwise."""

    async def compact(
        self, who: Principal, session_id: str, summary: Draft, *, keep: int = 0, fence: int | None = None
    ) -> Done:
        """Replace the context by a summary and its last `keep` entries. What it was becomes a checkpoint."""

        async def work(tx: Writer) -> Done:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, fence)
            if keep < 0:
                raise InvalidInput("keep cannot be negative")
            checked_drafts([summary])
            return await self._retire(tx, record, summary, keep)

        return await self._store.write(work, session_id)

    async def shrink(
        self,
        who: Principal,
        session_id: str,
        *,
        summariser: Summariser | None = None,
        policy: CompactionPolicy | None = None,
        fence: int | None = None,
        emit: Emit = lambda _: None,
    ) -> Shrunk:
        """Summarise all but the end of the context and remember the facts in it; without a summariser, the built-in.

        The built-in one also does it if another cannot, and the answer says why (`fallback`).

        The facts are stored with the summary, in one step. If there is nothing to leave out, if the summary is no
        smaller than what it stands for, or if the context was changed meanwhile (other than by what was added to it),
        nothing is changed and the answer says why. `Busy` while a turn runs, unless it is the turn's `fence`, and
        while another summariser is at work on the session. `emit` is told when it begins, what the summary says, and if
        nothing comes of it.
        """
        seen = await self._store.read(partial(load_writable_context, who, session_id, fence))
        shrinking = await asyncio.to_thread(plan, seen, policy or self._core.compaction)
        if not shrinking.retired:
            return shrinking.refused(WHOLE if seen.payloads else EMPTY)
        shrinking = replace(shrinking, id=self._new_id())
        work = partial(self._summarise_and_store, who, session_id, shrinking, summariser, fence, emit)
        if summariser is None or fence is not None:
            return await work()
        async with exclusive_summary(self._core.aside, who, session_id):
            return await work()

    async def _summarise_and_store(
        self,
        who: Principal,
        session_id: str,
        shrinking: CompactionPlan,
        summariser: Summariser | None,
        fence: int | None,
        emit: Emit,
    ) -> Shrunk:
        entry = shrinking.id or ""
        emit(Compacting(entry=entry))
        try:
            shrinking = await _summarise(shrinking, summariser, self._now)
            if shrinking.reason is None:
                emit(Compacting(entry=entry, text=shrinking.text))
            done = await self._store_or_refuse(who, session_id, shrinking, fence)
        except asyncio.CancelledError:
            emit(Compacting(entry=entry, status="cancelled"))
            raise
        except Exception as error:
            emit(Compacting(entry=entry, status="failed", error=str(error)))
            raise
        if not done.compacted:
            emit(Compacting(entry=entry, status="failed", error=done.reason))
        return done

    async def _store_or_refuse(
        self, who: Principal, session_id: str, shrinking: CompactionPlan, fence: int | None
    ) -> Shrunk:
        if shrinking.reason is not None:
            return shrinking.refused(shrinking.reason)
        for _ in range(ATTEMPTS):
            try:
                return await self._store.write(
                    partial(self._store_summary, who, session_id, fence, shrinking)
                )
            except RevisionConflict:
                seen = await self._store.read(partial(load_writable_context, who, session_id, fence))
                if not shrinking.is_beginning_of(seen):
                    return shrinking.refused(CHANGED)
                shrinking = shrinking.moved_to(seen)
        return shrinking.refused(UNSETTLED)

    async def preview(
        self, who: Principal, session_id: str, *, policy: CompactionPolicy | None = None
    ) -> CompactionPreview:
        """What `shrink` would do now with the built-in summariser. Nothing is written, and a running turn may continue."""
        seen = await self._store.read(partial(_load_context, who, session_id))
        shrinking = await asyncio.to_thread(plan, seen, policy or self._core.compaction)
        if not shrinking.retired:
            return shrinking.foreseen(WHOLE if seen.payloads else EMPTY)
        shrinking = await _summarise(shrinking, None, self._now)
        return shrinking.foreseen(shrinking.reason)

    async def _store_summary(
        self, who: Principal, session_id: str, fence: int | None, shrinking: CompactionPlan, tx: Writer
    ) -> Shrunk:
        """The summary and the facts, if the session is still as it was seen."""
        record = await require_session(tx, who, session_id)
        await require_writable(tx, record, fence)
        seen = shrinking.seen
        if (record.num, record.session.revision) != (seen.num, seen.revision):
            raise RevisionConflict(seen.revision, record.session.revision)
        added = await self._remember(tx, record, shrinking)
        done = await self._retire(tx, record, shrinking.draft, shrinking.keep)
        return shrinking.done(done, added)

    async def _remember(self, tx: Writer, record: Record, shrinking: CompactionPlan) -> int:
        """Put the facts that were found into the memory; returns how many are new."""
        if not self._core.home.remembers:
            return 0
        return await remember_findings(tx, record, shrinking.findings, shrinking.entries, self._new_id)

    async def _retire(self, tx: Writer, record: Record, summary: Draft, keep: int) -> Done:
        """Put the summary in place of the present spans, all but the last `keep` entries of them."""
        before, now = record.session, self._now()
        present = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
        checkpoint = await add_checkpoint(self._core, tx, record, "compaction")
        if checkpoint is None:
            raise InvalidInput("the session is empty: there is nothing to compact")
        marked = replace(summary, meta={**summary.meta, "compaction": checkpoint})
        entry = complete_draft(marked, now, self._new_id)
        record = await append_entries(tx, record, [entry], now, self._store.secret)
        spans = algebra.compacted(present, EntryPlace(record.num, record.head), checkpoint, keep)
        await tx.put_spans(record.owner, record.num, algebra.opened(spans, record.num, record.head))
        session = await recount_session(tx, record, spans, replace(record.session, last_compaction=now))
        await tx.rewrite(replace(record, session=session), "compact")
        return Done(
            checkpoint=checkpoint,
            summary=entry.id,
            messages_before=before.message_count,
            messages_after=session.message_count,
            tokens_before=before.token_count,
            tokens_after=session.token_count,
        )


async def _summarise(
    shrinking: CompactionPlan, summariser: Summariser | None, now: Callable[[], int]
) -> CompactionPlan:
    """With a summary by this summariser, else by the built-in one."""
    retired, kept, policy = shrinking.retired, shrinking.kept, shrinking.policy
    try:
        given = None if summariser is None else await summariser.summarise(retired, kept, policy)
    except EngineError as error:
        given, shrinking = None, replace(shrinking, fallback=error.message)
    if given is None:
        given = await Extractive(shrinking.found).summarise(retired, kept, policy)
    return await asyncio.to_thread(shrinking.with_summary, given, now())


async def load_writable_context(
    who: Principal, session_id: str, fence: int | None, tx: Reader
) -> ContextSnapshot:
    """The context as it is now, if the caller may change it."""
    record = await require_session(tx, who, session_id)
    await require_writable(tx, record, fence)
    return await load_snapshot(tx, record)


async def _load_context(who: Principal, session_id: str, tx: Reader) -> ContextSnapshot:
    """The context as it is now, whoever may change it."""
    return await load_snapshot(tx, await require_session(tx, who, session_id))


async def load_snapshot(tx: Reader, record: Record) -> ContextSnapshot:
    """The context of a session."""
    payloads = await tx.payloads(record.owner, await load_context(tx, record))
    return ContextSnapshot(record.num, record.session.revision, payloads)


LONGEST_MS = 10 * 60_000
"""A summary that takes longer is considered dead."""


@asynccontextmanager
async def exclusive_summary(store: Store, who: Principal, session_id: str) -> AsyncIterator[None]:
    """While this runs, no other summary of the session is begun. Raises `Busy` if one is being made."""
    holder, owner = new_holder(), checked_owner(who)

    async def begin(tx: Writer) -> None:
        await _check(tx, owner, session_id)
        await SUMMARISING.put(tx, owner, session_id, Note(holder, await tx.now()))

    async def end(tx: Writer) -> None:
        note = await SUMMARISING.get(tx, owner, session_id)
        if note is not None and note.value == holder:
            await SUMMARISING.put(tx, owner, session_id, note._replace(value=None))

    await store.write(begin)
    try:
        yield
    finally:
        await store.write(end)


async def _check(tx: Reader, owner: str, session_id: str) -> None:
    note = await SUMMARISING.get(tx, owner, session_id)
    if note is None or note.value is None:
        return
    age = await tx.now() - note.at
    if age < LONGEST_MS and not is_gone(note.value):
        raise Busy(note.value, age)
