"""Which sessions are open, as reported by the processes that have them open; and the end of drafts that nobody has open.

Presence is kept in notes and does not change a session. A process that died without reporting is no longer counted: on
the same machine at once, on another machine after a while.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter

from hitherto.holders import is_gone
from hitherto.model import DRAFT, Principal
from hitherto.ports import Reader, Writer
from hitherto.service.catalog.deletion import bury_session, collect
from hitherto.service.core import Room, clean_afterwards
from hitherto.service.notes import DRAFTS, PRESENCE, Note
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner, checked_required, is_clean

PRESENT_MS = 600_000
"""How long a holder counts as present without reporting again."""


DRAFT_MS = 3_600_000
"""How long a draft stays that nobody has open: a client may begin it in one process and go on in the next."""
DRAFTS_NOTED = 1_000
"""So many drafts of an owner are looked after; the oldest are removed before their time."""
ALL = "all"


class Presence(Room):
    """Who has what open."""

    async def attend(
        self, who: Principal, holder: str, *, opened: Collection[str] = (), left: Collection[str] = ()
    ) -> None:
        """Report that the holder has the `opened` sessions open, and no longer the `left` ones; repeat it before
        `PRESENT_MS` have passed. Unknown sessions are ignored."""
        owner = checked_owner(who)
        checked_required(holder, "a holder")

        async def work(tx: Writer) -> None:
            now = await tx.now()
            drafts: dict[str, int] = {}
            # Always in the same order, so that two callers cannot deadlock.
            for session_id in sorted({*opened, *left}):
                record = await tx.session(owner, session_id) if is_clean(session_id) else None
                if record is None:
                    continue
                if DRAFT in record.session.meta:
                    drafts[session_id] = now
                there = await _holders_present(tx, owner, session_id, now)
                there.pop(holder, None)
                if session_id in opened:
                    there[holder] = now
                await PRESENCE.put(tx, owner, session_id, Note(there, now))
            if drafts:
                await DRAFTS.put(tx, owner, ALL, Note(await _drafts(tx, owner) | drafts, now))

        await self._store.write(work)

    async def remove_drafts(self, who: Principal) -> int:
        """Delete the owner's drafts that nobody has open, an hour after they were left; returns how many."""
        owner = checked_owner(who)

        async def work(tx: Writer) -> int:
            now, noted, removed = await tx.now(), await _drafts(tx, owner), 0
            kept: dict[str, int] = {}
            for place, (session_id, at) in enumerate(sorted(noted.items(), key=itemgetter(1), reverse=True)):
                record = await tx.session(owner, session_id)
                if record is None or DRAFT not in record.session.meta:
                    continue
                is_due = now - at >= DRAFT_MS or place >= DRAFTS_NOTED
                if is_due and not await _holders_present(tx, owner, session_id, now):
                    await bury_session(tx, record, self._now())
                    removed += 1
                else:
                    kept[session_id] = at
            if kept != noted:
                await DRAFTS.put(tx, owner, ALL, Note(kept, now))
            return removed

        if not await self._store.read(lambda tx: _drafts(tx, owner)):
            return 0
        removed = await self._store.write(work)
        if removed:
            await clean_afterwards(collect(self._store))
        return removed

    async def attended(self, who: Principal, session_id: str, *, besides: str | None = None) -> bool:
        """Whether anybody has the session open, in any process; `besides` is a holder who does not count."""

        async def work(tx: Reader) -> bool:
            record = await require_session(tx, who, session_id)
            there = await _holders_present(tx, record.owner, record.session.id, await tx.now())
            return bool(there.keys() - {besides})

        return await self._store.read(work)


async def _drafts(tx: Reader, owner: str) -> dict[str, int]:
    note = await DRAFTS.get(tx, owner, ALL)
    return {} if note is None else note.value


async def _holders_present(tx: Reader, owner: str, session_id: str, now: int) -> dict[str, int]:
    """Those who have the session open, and when each said so."""
    note = await PRESENCE.get(tx, owner, session_id)
    reported = {} if note is None else note.value
    return {holder: at for holder, at in reported.items() if now - at < PRESENT_MS and not is_gone(holder)}
