"""Keeping the edits in entries as they are appended, within the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hitherto.edits.batches import EditBatch, batch_of, calls_in, late_results, results_in
from hitherto.edits.lines import call_mark
from hitherto.model import Entry, decode_entry
from hitherto.ports import Reader, Record, Writer
from hitherto.values.spans import Stretch


async def keep_edits(tx: Writer, key: bytes, record: Record, entries: Sequence[Entry]) -> None:
    """Keep the edits of entries that were put behind the head of `record`, and what they tell of edits before them."""
    placed = list(enumerate(entries, record.head + 1))
    if not any(calls_in(entry) for entry in entries) and not results_in(placed):
        return
    batch = batch_of(key, record.num, record.head + 1, placed)
    if batch is not None:
        await tx.put_edits(record.owner, batch)
    late = late_results(placed) if record.head else []
    wanted = frozenset(call_mark(key, call) for call in late)
    for earlier in await tx.edits_marked(record.owner, wanted, record.num) if late else ():
        if earlier.first <= record.head:
            await _amend(tx, key, record, earlier, placed)


async def _amend(
    tx: Writer, key: bytes, record: Record, batch: EditBatch, placed: Iterable[tuple[int, Entry]]
) -> None:
    """Make a batch again with the results that have come since."""
    known = {seq for each in batch.records() for seq in (each.seq, each.result) if 0 < seq <= record.head}
    entries = await load_placed(tx, record.owner, record.num, sorted(known))
    again = batch_of(key, record.num, batch.first, [*entries, *placed_results(placed)])
    if again is not None:
        await tx.put_edits(record.owner, again)


def placed_results(placed: Iterable[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    """Those of the entries that have results and make no edits of their own."""
    return [(seq, entry) for seq, entry in placed if not calls_in(entry)]


async def load_placed(tx: Reader, owner: str, log: int, seqs: Sequence[int]) -> list[tuple[int, Entry]]:
    """The entries at these places of a log, with their places."""
    payloads = await tx.payloads(owner, [Stretch(log, seq, seq) for seq in seqs])
    return [(seq, decode_entry(payload)) for seq, payload in zip(seqs, payloads, strict=True)]
