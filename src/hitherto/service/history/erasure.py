"""Erasing an entry with everything derived from it, including every summary made with it in view.

Which words of a summary came from which entry is unknown, so the whole summary goes. Whoever wrote it was given the whole
context of that time, also what was kept beside it. The messages it replaced are back in
the context, without the entry, and the next compaction summarises them again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count

from msgspec.structs import replace

from hitherto.errors import EntryNotFound
from hitherto.model import Entry, decode_entry, encode
from hitherto.ports import Record, Writer
from hitherto.service.catalog.deletion import copies_of
from hitherto.service.catalog.quarantined import erase_quarantined, source_id, tells_the_same
from hitherto.service.history.erased import load_erased, note_erased, note_lost_titles
from hitherto.service.history.grounds import forget_unfounded, grounded_titles, titles_of
from hitherto.service.history.mirrored import erase_records
from hitherto.service.history.places import find_place, load_everything, payload_at
from hitherto.service.notes import forget_question
from hitherto.service.records import blank_entry, change_session, is_erased, recount_session
from hitherto.values import spans as algebra
from hitherto.values import words
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.words import Term

AT_ONCE = 100
COPIES = 1_000
"""How many sessions with the same title are looked at."""


async def erase_entry(tx: Writer, key: bytes, record: Record, entry_id: str) -> None:
    """Blank an entry, with the forms that it had before, and take what was derived from it out of every session that
    reaches it. It is remembered, by the store's key, so that reading it again leaves it out."""
    place = await find_place(tx, record, await load_everything(tx, record), entry_id)
    owner, lost, olds = record.owner, set[str](), list[Entry]()
    origin = await tx.by_num(owner, place.log)
    for form in await _forms(tx, owner, origin, place, entry_id):
        old = await _blank(tx, owner, form)
        if is_erased(old):
            continue
        if origin is not None:
            await note_erased(tx, key, origin, old)
        visited = set[int]()
        # Again for forks that were being made: once all that reach it are held, nobody can make another.
        while new := set(await tx.reaching(owner, form.log)) - visited:
            visited |= new
            # Always in the same order, so that two callers cannot deadlock.
            for num in sorted(new):
                lost |= await _forget_derived(tx, key, owner, num, form, old)
        await _bury_copies(tx, key, record, old)
        olds.append(old)
    if olds and origin is not None and (changed := await tx.session(owner, origin.session.id)) is not None:
        await erase_records(tx, changed, olds)
    await erase_quarantined(tx, owner, _these(olds))
    await note_lost_titles(tx, key, record, lost)
    for title in sorted(lost):
        await _forget_copies(tx, owner, title)


def _these(entries: Sequence[Entry]) -> Callable[[], Awaitable[Sequence[Entry]]]:
    async def load() -> Sequence[Entry]:
        return entries

    return load


async def erase_known(tx: Writer, key: bytes, record: Record) -> int:
    """Erase in a session whatever is known to have been erased in it, should that be there again; returns how many."""
    erased = await load_erased(tx, key, record.owner, record.session.id)
    view: list[Stretch] = []
    for stretch in await load_everything(tx, record) if erased else ():
        view += algebra.without(stretch, view)
    known: list[str] = []
    for start in range(0, algebra.size(view), AT_ONCE):
        for payload in await tx.payloads(record.owner, algebra.slice_of(view, start, start + AT_ONCE)):
            entry = decode_entry(payload)
            if not is_erased(entry) and erased.holds(entry):
                known.append(entry.id)
    await erase_entries(tx, key, record, known)
    return len(known)


async def erase_entries(tx: Writer, key: bytes, record: Record, entry_ids: Iterable[str]) -> Record:
    """Erase these entries of a session, as far as they are there; returns it as it is then."""
    for entry_id in entry_ids:
        with suppress(EntryNotFound):
            await erase_entry(tx, key, record, entry_id)
        record = await tx.session(record.owner, record.session.id) or record
    return record


async def _bury_copies(tx: Writer, key: bytes, record: Record, old: Entry) -> None:
    """Delete what sync has read of a session that was recorded: it tells the same, in its own words and files.

    Its messages that may be the erased one are remembered as such, should the session be read again.
    """
    for copy in await copies_of(tx, record):
        for payload in await tx.payloads(copy.owner, await load_everything(tx, copy)):
            entry = decode_entry(payload)
            if tells_the_same(old, entry):
                await note_erased(tx, key, copy, entry)
        await tx.bury(copy, await tx.now())


async def _forms(
    tx: Writer, owner: str, origin: Record | None, place: EntryPlace, entry_id: str
) -> list[EntryPlace]:
    """Where an entry stands, and the other forms that it has had if it is another agent's record."""
    known = [place]
    for number in count(1) if origin is not None and origin.session.source is not None else ():
        name = source_id(entry_id) + (f"~{number}" if number > 1 else "")
        found = await tx.locate(owner, [place.log], name)
        if not found and number > 1:
            break
        known += [each for each in found if each != place]
    return known


async def _forget_derived(
    tx: Writer, key: bytes, owner: str, num: int, place: EntryPlace, old: Entry
) -> set[str]:
    """Take what was derived from an erased entry out of a session that reaches it; the titles that it lost."""
    found = await tx.by_num(owner, num)
    record = None if found is None else await tx.session(owner, found.session.id)
    if record is None or algebra.ordinal(await load_everything(tx, record), place) is None:
        return set()
    await tx.drop_raw_copies(owner, num)
    await forget_question(tx, owner, record.session.id)
    record, blanked = await _drop_summaries(tx, record, place)
    for gone in (old, *blanked):
        await forget_unfounded(tx, record, gone)
        await note_erased(tx, key, record, gone)
    titles = await grounded_titles(tx, owner, await load_everything(tx, record), record.session)
    changed = await change_session(tx, record, "erase", **titles)
    return titles_of(record.session) - titles_of(changed.session)


async def _forget_copies(tx: Writer, owner: str, title: str) -> None:
    """Take a title out of forks that have it although they do not reach what it was made from: it used to be copied."""
    phrase = words.tokens(words.searchable(title))
    for found in await tx.titled(owner, [Term(tuple(phrase))], COPIES) or () if phrase else ():
        if found.session.parent is None or title not in titles_of(found.session):
            continue
        record = await tx.session(owner, found.session.id)
        if record is not None:
            titles = await grounded_titles(tx, owner, await load_everything(tx, record), record.session)
            if any(getattr(record.session, name) != value for name, value in titles.items()):
                await change_session(tx, record, "erase", **titles)


async def _drop_summaries(tx: Writer, record: Record, place: EntryPlace) -> tuple[Record, list[Entry]]:
    """The session without the summaries made with the entry at a place in view, and these; the caller stores the record, as a
    change."""
    owner, num, head = record.owner, record.num, record.head
    known = [checkpoint.id for checkpoint in await tx.checkpoints(owner, num)]
    lists = {name: await tx.spans(owner, num, name) for name in known}
    present = algebra.closed(await tx.spans(owner, num), num, head)
    made = algebra.checkpoints_holding(lists, place)
    blanked = [
        await _blank(tx, owner, EntryPlace(spans[at].log, spans[at].first))
        for spans in (present, *lists.values())
        for at in algebra.summaries_of(spans, made)
    ]
    if not algebra.summaries_of(present, made):
        return record, blanked
    spans = algebra.closed(algebra.unfold_summaries(present, made, lists.__getitem__), num, head)
    await tx.put_spans(owner, num, algebra.opened(spans, num, head))
    session = await recount_session(tx, record, spans, record.session)
    compacted = session.last_compaction if algebra.summaries(spans) else None
    return replace(record, session=replace(session, last_compaction=compacted)), blanked


async def _blank(tx: Writer, owner: str, place: EntryPlace) -> Entry:
    """Blank the entry at a place; returns it as it was."""
    payload = await payload_at(tx, owner, place)
    entry = decode_entry(payload)
    if not is_erased(entry):
        await tx.erase(owner, place, encode(blank_entry(entry, len(payload))))
    return entry
