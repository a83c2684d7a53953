"""Edits with their text, from the entries that they are in, within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hitherto.edits.batches import EditRecord, batch_of, calls_in, results_in
from hitherto.edits.calls import edits_of
from hitherto.edits.changes import Made, shown_path
from hitherto.edits.edit import Edit
from hitherto.errors import StoreDamaged
from hitherto.model import Entry, decode_entry
from hitherto.ports import Reader, Record, Writer
from hitherto.service.history.places import load_everything
from hitherto.service.kept_edits import load_placed
from hitherto.service.records import load_lists
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Stretch

AT_ONCE = 500
SUBAGENTS = 1_000
"""So many subagents of a session are looked at."""


class LoadedEdit(NamedTuple):
    """An edit with its text, the entry that it is in, and what is kept of it."""

    log: int
    record: EditRecord
    entry: Entry
    edit: Edit


async def remake_edits(tx: Writer, key: bytes, owner: str, log: int) -> None:
    """Read the edits of a log again from all of its entries that any session reaches."""
    reached: list[Stretch] = []
    for num in await tx.reaching(owner, log):
        record = await tx.by_num(owner, num)
        for stretch in await load_everything(tx, record) if record is not None else ():
            if stretch.log == log:
                reached.extend(algebra.without(stretch, reached))
    batches = []
    for stretch in sorted(reached, key=lambda each: each.first):
        for first in range(stretch.first, stretch.last + 1, AT_ONCE):
            part = Stretch(log, first, min(first + AT_ONCE - 1, stretch.last))
            try:
                payloads = await tx.payloads(owner, [part])
            except StoreDamaged:
                continue  # `doctor` tells of it
            batches.append((first, [decode_entry(payload) for payload in payloads]))
    made = [batch_of(key, log, first, list(enumerate(entries, first))) for first, entries in batches]
    await tx.settle_edits(owner, log, [batch for batch in made if batch is not None])


async def with_subagents(tx: Reader, record: Record) -> list[Record]:
    """A session and its subagents, theirs included. A fork is a session of its own."""
    found, waiting = [record], [record]
    while waiting and len(found) < SUBAGENTS:
        for child in await tx.children(record.owner, waiting.pop().session.id):
            if child.session.source is not None and all(child.num != each.num for each in found):
                found.append(child)
                waiting.append(child)
    return found


async def session_records(tx: Reader, record: Record) -> list[tuple[int, EditRecord]]:
    """What is kept of the edits of a session's conversation, each with its log, in order."""
    stretches = (await load_lists(tx, record)).conversation()
    kept: dict[int, list[EditRecord]] = {}
    for batch in await tx.edits(record.owner, sorted({stretch.log for stretch in stretches})):
        kept.setdefault(batch.log, []).extend(batch.records())
    return [
        (stretch.log, each)
        for stretch in stretches
        for each in kept.get(stretch.log, ())
        if stretch.first <= each.seq <= stretch.last
    ]


async def load_edits(tx: Reader, owner: str, wanted: Sequence[tuple[int, EditRecord]]) -> list[LoadedEdit]:
    """These edits with their text, in the same order; those whose entries are gone are left out."""
    entries: dict[EntryPlace, Entry] = {}
    for log in {log for log, _ in wanted}:
        seqs = {seq for at, each in wanted if at == log for seq in (each.seq, each.result) if seq}
        for seq, entry in await load_placed(tx, owner, log, sorted(seqs)):
            entries[EntryPlace(log, seq)] = entry
    made: dict[EntryPlace, list[Edit]] = {}
    loaded: list[LoadedEdit] = []
    for log, each in wanted:
        place = EntryPlace(log, each.seq)
        if place not in made:
            made[place] = _edits(
                entries, place, [other.result for at, other in wanted if (at, other.seq) == place]
            )
        if each.part < len(made[place]):
            loaded.append(LoadedEdit(log, each, entries[place], made[place][each.part]))
    return loaded


def _edits(entries: dict[EntryPlace, Entry], place: EntryPlace, seqs: Iterable[int]) -> list[Edit]:
    """All edits of an entry, with the results at these places."""
    behind = [(seq, entries[EntryPlace(place.log, seq)]) for seq in {*seqs} if seq]
    results = results_in([(place.seq, entries[place]), *behind])
    return [
        edit
        for call in calls_in(entries[place])
        for edit in edits_of(call, results[call.id][1] if call.id in results else None)
    ]


async def made_in(tx: Reader, record: Record) -> list[Made]:
    """The edits of a session and its subagents, in the order of their time."""
    found: list[Made] = []
    for each in await with_subagents(tx, record):
        for loaded in await load_edits(tx, record.owner, await session_records(tx, each)):
            path = shown_path(loaded.edit.path, each.session.cwd or record.session.cwd)
            found.append(
                Made(
                    each.session.id, loaded.entry.id, loaded.entry.at, path, loaded.record.failed, loaded.edit
                )
            )
    return sorted(found, key=lambda made: made.at)
