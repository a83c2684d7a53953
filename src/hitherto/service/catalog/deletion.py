"""Deleting sessions, and what nothing reaches any more."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from hitherto.errors import StoreDamaged
from hitherto.model import RECORDED_IN, RECORDS, Entry, Session, decode_entry
from hitherto.ports import Reader, Record, Store, Writer
from hitherto.service.catalog.quarantined import erase_quarantined
from hitherto.service.core import whole
from hitherto.service.notes import forget_question
from hitherto.service.records import change_session, count_said, load_lists
from hitherto.values import spans as algebra

COLLECT_BATCH = 500


async def bury_session(tx: Writer, record: Record, now: int) -> int:
    """Delete a session, and what sync has read of it if it is a recording; returns how many messages it had. What it only
    continued is listed again."""
    messages = await count_said(tx, record)
    await _list_continued(tx, record)
    await _part_from(whole(tx), record)
    await erase_quarantined(tx, record.owner, partial(_entries_of, tx, record))
    for doomed in (*await copies_of(tx, record), record):
        await tx.bury(doomed, now)
        await forget_question(tx, record.owner, doomed.session.id)
    return messages


async def _part_from(tx: Writer, record: Record) -> None:
    """What was forked from a session, or works for it, no longer names it. What another agent's files say stays."""
    for found in await tx.children(record.owner, record.session.id):
        child = await tx.session(record.owner, found.session.id)  # what is changed is read for that
        if child is not None and child.session.source is None:
            await change_session(tx, child, "parent", parent=None, parent_entry=None)


async def _entries_of(tx: Reader, record: Record) -> list[Entry]:
    """All that a session reaches, in checkpoints too."""
    view = (await load_lists(tx, record)).conversation()
    for checkpoint in await tx.checkpoints(record.owner, record.num):
        spans = await tx.spans(record.owner, record.num, checkpoint.id)
        view += algebra.context(spans, record.num, record.head)
    return [decode_entry(payload) for payload in await tx.payloads(record.owner, view)]


async def collect(store: Store) -> int:
    """Remove entries that nothing reaches any more, batch by batch, and what logs and free space have of them.

    Returns how many. While the store is damaged, no entry is removed.
    """
    removed = 0
    with suppress(StoreDamaged):
        while batch := await store.write(lambda tx: tx.collect(COLLECT_BATCH)):
            removed += batch
    await store.clean()
    return removed


def recording_of(session: Session) -> str | None:
    """The session that stands for this one in lists and searches; None if it stands for itself."""
    return session.meta.get(RECORDED_IN) if session.archived and session.source is not None else None


async def _list_continued(tx: Writer, record: Record) -> None:
    """List what a session continued, unless it goes with it."""
    own = record.session
    continued = None if own.parent is None else await tx.session(record.owner, own.parent)
    if continued is None or recording_of(continued.session) != own.id:
        return
    if continued.session.id not in own.meta.get(RECORDS, ()):
        meta = {name: value for name, value in continued.session.meta.items() if name != RECORDED_IN}
        await change_session(tx, continued, "archive", archived=False, meta=meta)


async def copies_of(tx: Reader, record: Record) -> list[Record]:
    """What sync has read of a session that was recorded, as far as it has nothing else."""
    found = [await tx.session(record.owner, id) for id in record.session.meta.get(RECORDS, ())]
    return [copy for copy in found if copy is not None and recording_of(copy.session) == record.session.id]
