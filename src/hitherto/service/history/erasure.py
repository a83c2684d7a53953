"""What has to go with an entry that is erased: every summary that was made with it in view.

Nobody can tell which words of a summary came from which entry, so all of them go. What they stood for is the context
again, without the entry, and the next compaction summarises it anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from hitherto import spans as algebra
from hitherto.model import decode_entry, encode
from hitherto.ports import Record, Writer
from hitherto.service.records import counted, erased, is_erased, measure
from hitherto.spans import Place, Spans, Stretch


async def untold(tx: Writer, record: Record, place: Place) -> Record:
    """The session without the summaries that tell of a place; the caller stores the record, as a change."""
    owner, num, head = record.owner, record.num, record.head
    known = [checkpoint.id for checkpoint in await tx.checkpoints(owner, num)]
    lists = {name: await tx.spans(owner, num, name) for name in known}
    present = algebra.closed(await tx.spans(owner, num), num, head)
    made = algebra.made_of(lists, place)
    for spans in (present, *lists.values()):
        for at in algebra.telling(spans, place, made):
            await _blank(tx, owner, Place(spans[at].log, spans[at].first))
    if not algebra.telling(present, place, made):
        return record
    spans = algebra.closed(algebra.unfolded(present, place, made, lists.__getitem__), num, head)
    await tx.put_spans(owner, num, algebra.opened(spans, num, head))
    return await _recounted(tx, record, spans)


async def _recounted(tx: Writer, record: Record, spans: Spans) -> Record:
    stretches = algebra.context(spans, record.num, record.head)
    sums = await measure(tx, record.owner, stretches)
    session = counted(record.session, algebra.size(stretches), sums)
    compacted = session.last_compaction if algebra.summaries(spans) else None
    return replace(record, session=replace(session, last_compaction=compacted))


async def _blank(tx: Writer, owner: str, place: Place) -> None:
    (payload,) = await tx.payloads(owner, [Stretch(place.log, place.seq, place.seq)])
    entry = decode_entry(payload)
    if not is_erased(entry):
        await tx.erase(owner, place, encode(erased(entry, len(payload))))
