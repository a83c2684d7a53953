"""What sessions changed in files."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.edits.changes import EditCounts, SessionChanges, changes_of
from hitherto.errors import StoreUnavailable
from hitherto.model import Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.edits.load import counted, made_in, remake_edits, session_records, with_subagents
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner

LOGS_AT_ONCE = 20


class Edits(Room):
    """The edits of sessions."""

    async def refresh(self, who: Principal) -> int:
        """Read again the edits of which the store lacks some: those of sessions that were stored before it kept edits, and of
        sessions in which something was erased. Returns of how many logs."""
        owner, key, done = checked_owner(who), self._store.secret, 0

        async def some(tx: Writer) -> int:
            logs = await tx.edits_due(owner, LOGS_AT_ONCE)
            for log in logs:
                await remake_edits(tx, key, owner, log)
            return len(logs)

        async def is_due(tx: Reader) -> bool:
            return bool(await tx.edits_due(owner, 1))

        while await self._store.read(is_due):
            try:
                done += await self._store.write(some)
            except StoreUnavailable:
                break  # it may be read only: what it has is what there is
        return done

    async def rebuild(self, who: Principal) -> int:
        """Drop all edits and read them again from the sessions. Returns of how many logs."""
        owner = checked_owner(who)
        await self._store.write(lambda tx: tx.forget_edits(owner))
        return await self.refresh(who)

    async def changes(self, who: Principal, session_id: str, *, file: str | None = None) -> SessionChanges:
        """The files that a session and its subagents changed, of which the path ends with `file` if that is given."""
        await self.refresh(who)

        async def work(tx: Reader) -> SessionChanges:
            record = await require_session(tx, who, session_id)
            return changes_of(record.session.id, await made_in(tx, record), file)

        return await self._store.read(work)

    async def counts(self, who: Principal, session_ids: Sequence[str]) -> dict[str, EditCounts]:
        """How much each of these sessions changed, its subagents included; a session that is not there is left out."""
        owner = checked_owner(who)

        async def work(tx: Reader) -> dict[str, EditCounts]:
            found: dict[str, EditCounts] = {}
            for session_id in session_ids:
                record = await tx.session(owner, session_id)
                if record is not None:
                    family = await with_subagents(tx, record)
                    found[session_id] = counted(
                        [pair for each in family for pair in await session_records(tx, each)]
                    )
            return found

        return await self._store.read(work)
