"""Compaction: a summary takes the place of what was said, for the model only. The conversation keeps all of it."""

from __future__ import annotations

from msgspec.structs import replace

from recollect import spans as algebra
from recollect.errors import InvalidInput
from recollect.model import Compaction as Done
from recollect.model import Draft, Principal
from recollect.ports import Writer
from recollect.service.core import required, writable
from recollect.service.forking import Forking, recounted
from recollect.service.history import History, append_entries, checked_drafts
from recollect.spans import Place


class Compaction(History, Forking):
    """Making room in the context."""

    async def compact(
        self, who: Principal, session_id: str, summary: Draft, *, keep: int = 0, fence: int | None = None
    ) -> Done:
        """Replace the context by a summary and its last `keep` entries. What it was becomes a checkpoint."""

        async def work(tx: Writer) -> Done:
            record = await required(tx, who, session_id)
            await writable(tx, record, fence)
            if keep < 0:
                raise InvalidInput("keep cannot be negative")
            checked_drafts([summary])
            before, now = record.session, self._now()
            present = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
            checkpoint = await self._checkpoint(tx, record, "compaction")
            if checkpoint is None:
                raise InvalidInput("there is nothing to compact in an empty session")
            entry = self._complete(replace(summary, meta={**summary.meta, "compaction": checkpoint}), now)
            record = await append_entries(tx, record, [entry], now)
            spans = algebra.compacted(present, Place(record.num, record.head), checkpoint, keep)
            await tx.put_spans(record.owner, record.num, algebra.opened(spans, record.num, record.head))
            session = await recounted(tx, record, spans, replace(record.session, last_compaction=now))
            await tx.rewrite(replace(record, session=session), "compact")
            return Done(
                checkpoint=checkpoint,
                summary=entry.id,
                messages_before=before.message_count,
                messages_after=session.message_count,
                tokens_before=before.token_count,
                tokens_after=session.token_count,
            )

        return await self._store.write(work)
