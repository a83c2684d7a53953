"""Forks, rewinds, resets and checkpoints: cheap changes of a session's span list. Nothing said is ever lost by one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitherto import spans as algebra
from hitherto.errors import EntryNotFound
from hitherto.filters import normal_cwd
from hitherto.model import RECORDED_IN, RECORDS, Checkpoint, Principal, Session
from hitherto.permissions import REMEMBERED
from hitherto.ports import Reader, Record, Writer
from hitherto.service.catalog.sessions import add_session, vouched
from hitherto.service.history.entries import find_place
from hitherto.service.records import (
    Core,
    Lists,
    counted,
    load_checkpoint,
    load_expansions,
    load_lists,
    measure,
    required,
    writable,
)
from hitherto.service.validation import checked_name, checked_title
from hitherto.spans import Spans

OWN_ALONE = (REMEMBERED, RECORDS, RECORDED_IN)
"""What is kept of a session and says nothing of its forks."""


class Forking(Core):
    """Going another way from an earlier point."""

    async def fork(
        self,
        who: Principal,
        session_id: str,
        *,
        at: str | None = None,
        before: bool = False,
        title: str | None = None,
        cwd: str | None = None,
        new_id: str | None = None,
    ) -> Session:
        """A new session that shares this one's history up to and including the entry `at` (None: all of it), or with
        `before` up to the one before it.

        Nothing is copied, so it costs the same for a long session as for a short one, and the fork stays whole when
        its source is deleted. An entry from before a compaction gives the context of that time. `new_id` is the id
        of the fork, if it must have a certain one.
        """

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            lists = await load_lists(tx, record)
            spans = lists.closed() if at is None else await _cut(tx, lists, at, before=before)
            placed = _placed(who, record.session, cwd)
            return await self._branch(tx, record, spans, at, title, placed, new_id)

        return await self._store.write(work)

    async def rewind(
        self, who: Principal, session_id: str, to: str, *, before: bool = False, fence: int | None = None
    ) -> Session:
        """Go back to the entry `to`, which becomes the newest; with `before`, the one before it does. What was there
        becomes a checkpoint."""

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            await writable(tx, record, fence)
            spans = await _cut(tx, await load_lists(tx, record), to, before=before)
            return await self._reshape(tx, record, spans, "rewind")

        return await self._store.write(work)

    async def reset(self, who: Principal, session_id: str, *, fence: int | None = None) -> Session:
        """Start the session anew, empty. What was there becomes a checkpoint."""

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            await writable(tx, record, fence)
            return await self._reshape(tx, record, (), "reset")

        return await self._store.write(work)

    async def checkpoints(self, who: Principal, session_id: str) -> list[Checkpoint]:
        """The session's checkpoints, oldest first."""

        async def work(tx: Reader) -> list[Checkpoint]:
            record = await required(tx, who, session_id)
            return await tx.checkpoints(record.owner, record.num)

        return await self._store.read(work)

    async def restore(
        self,
        who: Principal,
        session_id: str,
        checkpoint: str,
        *,
        since: bool = False,
        fence: int | None = None,
    ) -> Session:
        """Go back to a checkpoint, exactly; with `since`, followed by all that was said after it.

        The present state becomes a checkpoint first.
        """

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            then = await load_checkpoint(tx, record, checkpoint)
            await writable(tx, record, fence)
            spans = then.present
            if since:
                now = (await load_lists(tx, record)).conversation()
                spans = (*spans, *algebra.said_since(now, then.conversation()))
            return await self._reshape(tx, record, spans, "restore")

        return await self._store.write(work)

    async def branch(
        self,
        who: Principal,
        session_id: str,
        checkpoint: str,
        *,
        title: str | None = None,
        cwd: str | None = None,
    ) -> Session:
        """A new session that starts from a checkpoint."""

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            spans = (await load_checkpoint(tx, record, checkpoint)).present
            placed = _placed(who, record.session, cwd)
            return await self._branch(tx, record, spans, None, title, placed, None)

        return await self._store.write(work)

    async def _reshape(self, tx: Writer, record: Record, spans: Spans, kind: str) -> Session:
        """Replace the session's spans; what they were becomes a checkpoint."""
        await self._checkpoint(tx, record, kind)
        spans = algebra.closed(spans, record.num, record.head)
        await tx.put_spans(record.owner, record.num, algebra.opened(spans, record.num, record.head))
        session = await recounted(tx, record, spans, record.session)
        now = self._now()
        moved = replace(record, session=session, order_at=max(record.order_at, now))
        return (await self._change(tx, moved, kind, updated_at=max(session.updated_at, now))).session

    async def _checkpoint(self, tx: Writer, record: Record, reason: str) -> str | None:
        """Keep the present spans as a checkpoint, unless the session is empty."""
        present = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
        if not present:
            return None
        checkpoint = Checkpoint(
            id=self._new_id(),
            at=self._now(),
            reason=reason,
            message_count=record.session.message_count,
            token_count=record.session.token_count,
        )
        await tx.put_checkpoint(record.owner, record.num, checkpoint, present)
        return checkpoint.id

    async def _branch(
        self,
        tx: Writer,
        source: Record,
        spans: Spans,
        at: str | None,
        title: str | None,
        placed: Session,
        new_id: str | None,
    ) -> Session:
        """A new session over the source's entries, with the checkpoints that its summaries stand for."""
        now, old = self._now(), source.session
        given = checked_title(title)
        made = Session(
            id=checked_name(new_id, "a session id") or self._new_id(),
            revision=1,
            created_at=now,
            updated_at=now,
            cwd=placed.cwd,
            additional_directories=placed.additional_directories,
            project=old.project,
            branch=old.branch,
            title=given or old.title,
            title_by="user" if given else old.title_by,
            agent_id=old.agent_id,
            channel=old.channel,
            identity=old.identity,
            last_compaction=old.last_compaction if algebra.summaries(spans) else None,
            parent=old.id,
            parent_entry=at,
            meta={name: value for name, value in placed.meta.items() if name not in OWN_ALONE},
        )
        record = await add_session(tx, source.owner, await recounted(tx, source, spans, made))
        expansions = await load_expansions(tx, source, spans)
        for checkpoint in await tx.checkpoints(source.owner, source.num):
            if checkpoint.id in expansions:
                await tx.put_checkpoint(source.owner, record.num, checkpoint, expansions[checkpoint.id])
        await tx.put_spans(source.owner, record.num, algebra.opened(spans, record.num, record.head))
        return record.session


def _placed(who: Principal, source: Session, cwd: str | None) -> Session:
    """The source as it would be in the folder of its fork."""
    return source if cwd is None else replace(source, **vouched(who, source, {"cwd": normal_cwd(cwd)}))


async def recounted(tx: Reader, record: Record, spans: Sequence[algebra.Span], session: Session) -> Session:
    """The session with the counts of these closed spans."""
    stretches = algebra.context(spans, record.num, record.head)
    return counted(session, algebra.size(stretches), await measure(tx, record.owner, stretches))


async def _cut(tx: Reader, lists: Lists, entry_id: str, *, before: bool) -> Spans:
    conversation = lists.conversation()
    place = await find_place(tx, lists.record, conversation, entry_id)
    if before:
        at = algebra.ordinal(conversation, place) or 0
        if not at:
            return ()
        (last,) = algebra.slice_of(conversation, at - 1, at)
        place = algebra.Place(last.log, last.first)
    spans = algebra.cut(lists.closed(), place, lists.expand)
    if spans is None:
        raise EntryNotFound(entry_id)
    return spans
