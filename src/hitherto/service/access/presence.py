"""Which sessions are open, as reported by the processes that have them open.

Presence is kept in notes and does not change a session. A process that died without reporting is no longer counted: on
the same machine at once, on another machine after a while.
"""

from __future__ import annotations

from collections.abc import Collection

from hitherto.holders import is_gone
from hitherto.model import Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.notes import PRESENCE, Note
from hitherto.service.records import require_session
from hitherto.service.validation import checked_owner, checked_required, is_clean

PRESENT_MS = 600_000
"""How long a holder counts as present without reporting again."""


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
            # Always in the same order, so that two callers cannot deadlock.
            for session_id in sorted({*opened, *left}):
                if not is_clean(session_id) or await tx.session(owner, session_id) is None:
                    continue
                there = await _holders_present(tx, owner, session_id, now)
                there.pop(holder, None)
                if session_id in opened:
                    there[holder] = now
                await PRESENCE.put(tx, owner, session_id, Note(there, now))

        await self._store.write(work)

    async def attended(self, who: Principal, session_id: str, *, besides: str | None = None) -> bool:
        """Whether anybody has the session open, in any process; `besides` is a holder who does not count."""

        async def work(tx: Reader) -> bool:
            record = await require_session(tx, who, session_id)
            there = await _holders_present(tx, record.owner, record.session.id, await tx.now())
            return bool(there.keys() - {besides})

        return await self._store.read(work)


async def _holders_present(tx: Reader, owner: str, session_id: str, now: int) -> dict[str, int]:
    """Those who have the session open, and when each said so."""
    note = await PRESENCE.get(tx, owner, session_id)
    reported = {} if note is None else note.value
    return {holder: at for holder, at in reported.items() if now - at < PRESENT_MS and not is_gone(holder)}
