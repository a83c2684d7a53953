"""Going back to an earlier point of a session: cheap changes of its span list that lose nothing."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.model import Checkpoint, Principal, Session
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Core, Room
from hitherto.service.history.places import cut_at
from hitherto.service.records import (
    change_session,
    load_checkpoint,
    load_lists,
    recount_session,
    require_session,
    require_writable,
)
from hitherto.values import spans as algebra
from hitherto.values.spans import Spans


class Timeline(Room):
    """Going back and forth in a session. What was there before each step stays, as a checkpoint."""

    async def rewind(
        self, who: Principal, session_id: str, to: str, *, before: bool = False, fence: int | None = None
    ) -> Session:
        """Go back to the entry `to`, which becomes the newest; with `before`, the one before it does. What was there
        becomes a checkpoint."""

        async def work(tx: Writer) -> Session:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, fence)
            spans = await cut_at(tx, await load_lists(tx, record), to, before=before)
            return await reshape_session(self._core, tx, record, spans, "rewind")

        return await self._store.write(work, session_id)

    async def checkpoints(self, who: Principal, session_id: str) -> list[Checkpoint]:
        """The session's checkpoints, oldest first."""

        async def work(tx: Reader) -> list[Checkpoint]:
            record = await require_session(tx, who, session_id)
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
            record = await require_session(tx, who, session_id)
            then = await load_checkpoint(tx, record, checkpoint)
            await require_writable(tx, record, fence)
            spans = then.present
            if since:
                now = (await load_lists(tx, record)).conversation()
                spans = (*spans, *algebra.said_since(now, then.conversation()))
            return await reshape_session(self._core, tx, record, spans, "restore")

        return await self._store.write(work, session_id)


async def reshape_session(core: Core, tx: Writer, record: Record, spans: Spans, kind: str) -> Session:
    """Replace the session's spans; what they were becomes a checkpoint."""
    await add_checkpoint(core, tx, record, kind)
    spans = algebra.closed(spans, record.num, record.head)
    await tx.put_spans(record.owner, record.num, algebra.opened(spans, record.num, record.head))
    session = await recount_session(tx, record, spans, record.session)
    now = core.now()
    moved = replace(record, session=session, order_at=max(record.order_at, now), heard_at=None)
    return (await change_session(tx, moved, kind, updated_at=max(session.updated_at, now))).session


async def add_checkpoint(core: Core, tx: Writer, record: Record, reason: str) -> str | None:
    """Keep the present spans as a checkpoint and return its id; None if the session is empty."""
    present = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
    if not present:
        return None
    checkpoint = Checkpoint(
        id=core.new_id(),
        at=core.now(),
        reason=reason,
        message_count=record.session.message_count,
        token_count=record.session.token_count,
    )
    await tx.put_checkpoint(record.owner, record.num, checkpoint, present)
    return checkpoint.id
