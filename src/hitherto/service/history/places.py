"""Where an entry stands in a session."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.errors import EntryNotFound, HithertoError
from hitherto.ports import Reader, Record
from hitherto.service.records import Lists, load_lists
from hitherto.service.validation import checked_name
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Spans, Stretch


async def find_place(tx: Reader, record: Record, stretches: Sequence[Stretch], entry_id: str) -> EntryPlace:
    """Where the entry stands in these stretches; the last place, should a fork have the id twice."""
    if isinstance(entry_id, str):
        logs = sorted({stretch.log for stretch in stretches})
        places = await tx.locate(record.owner, logs, entry_id) if _usable(entry_id) else []
        known = [(at, place) for place in places if (at := algebra.ordinal(stretches, place)) is not None]
        if known:
            return max(known)[1]
    raise EntryNotFound(entry_id)


async def find_ordinal(tx: Reader, record: Record, stretches: Sequence[Stretch], entry_id: str) -> int:
    """The entry's number in these stretches, from 0 on."""
    place = await find_place(tx, record, stretches, entry_id)
    found = algebra.ordinal(stretches, place)
    if found is None:
        raise EntryNotFound(entry_id)
    return found


async def cut_at(tx: Reader, lists: Lists, entry_id: str, *, before: bool) -> Spans:
    """The spans that end with the entry, or with `before` with the one before it."""
    conversation = lists.conversation()
    place = await find_place(tx, lists.record, conversation, entry_id)
    if before:
        at = algebra.ordinal(conversation, place) or 0
        if not at:
            return ()
        (last,) = algebra.slice_of(conversation, at - 1, at)
        place = algebra.EntryPlace(last.log, last.first)
    spans = algebra.cut(lists.closed(), place, lists.expand)
    if spans is None:
        raise EntryNotFound(entry_id)
    return spans


async def load_everything(tx: Reader, record: Record) -> list[Stretch]:
    """All that the session reaches: its conversation and every checkpoint's."""
    found = (await load_lists(tx, record)).conversation()
    for checkpoint in await tx.checkpoints(record.owner, record.num):
        spans = await tx.spans(record.owner, record.num, checkpoint.id)
        found.extend(algebra.context(spans, record.num, record.head))
    return found


async def payload_at(tx: Reader, owner: str, place: EntryPlace) -> bytes:
    """The stored bytes of the entry at this place."""
    return (await tx.payloads(owner, [Stretch(place.log, place.seq, place.seq)]))[0]


def _usable(entry_id: str) -> bool:
    try:
        return bool(checked_name(entry_id, "an entry id"))
    except HithertoError:
        return False
