"""Turns whose process has died: what they left open is closed, what they were saying is kept, and the session says so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from hitherto.holders import is_gone
from hitherto.model import Draft, Entry, Lease, Live, decode_json
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Core
from hitherto.service.history.append import append_entries, complete_draft
from hitherto.service.history.inbox import place_unanswered
from hitherto.service.notes import forget_question
from hitherto.service.records import RUNNING, change_session, context_entries
from hitherto.service.turns.context import CUT_OFF, INTERRUPTED, failed_results, unanswered_calls

GRACE_MS = 60_000
"""A holder that cannot be looked at may only be slow, or its machine asleep: for so long after its lease has run out."""


async def close_interrupted(core: Core) -> int:
    """Close every turn whose process has died, of every owner; returns how many. Doing it again changes nothing."""
    closed = 0
    for owner, session_id in await core.store.read(lambda tx: tx.running()):
        closed += await core.store.write(partial(_close, core, owner, session_id), session_id)
    return closed


async def left_open(tx: Reader, record: Record, context: Sequence[Entry]) -> list[Draft]:
    """What is missing in a context that a turn has left when its process died: results of its calls, and what it was
    saying."""
    return [*failed_results(unanswered_calls(context), INTERRUPTED), *await _half_said(tx, record)]


async def _close(core: Core, owner: str, session_id: str, tx: Writer) -> bool:
    record = await tx.session(owner, session_id)
    lease = None if record is None else record.lease
    if record is None or lease is None or record.session.status not in RUNNING:
        return False
    at, now = await tx.now(), core.now()
    if not _is_dead(lease, at):
        return False
    # Should it come back all the same, it must not go on where others do.
    over = replace(lease, fence=lease.fence + 1, expires_at=min(lease.expires_at, at))
    await tx.put_lease(record, over)
    record = replace(record, lease=over)
    drafts = await left_open(tx, record, await context_entries(tx, record))
    if drafts:
        entries = [complete_draft(draft, now, core.new_id) for draft in drafts]
        record = await append_entries(tx, record, entries, now, core.store.secret)
    await tx.put_live(record, None)
    await forget_question(tx, owner, session_id)
    record = await change_session(tx, record, "status", status="interrupted")
    await place_unanswered(tx, record, now, core.store.secret)
    return True


def _is_dead(lease: Lease, now: int) -> bool:
    return is_gone(lease.holder) or lease.expires_at + GRACE_MS <= now


async def _half_said(tx: Reader, record: Record) -> list[Draft]:
    """What a turn was saying when its process died, as far as everybody was shown it: it was never stored."""
    data = await tx.live(record.owner, record.num)
    try:
        live = None if data is None else msgspec.convert(decode_json(data), Live)
    except ValueError:
        return []  # nothing that a turn has shown
    if live is None or await tx.locate(record.owner, [record.num], live.entry):
        return []
    parts = tuple(part for part in (*live.earlier, *live.parts) if getattr(part, "text", ""))
    return [Draft(role="assistant", parts=parts, id=live.entry, meta={"partial": CUT_OFF})] if parts else []
