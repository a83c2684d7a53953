"""Records that another program mirrors here: kept exactly as they came, beside the conversation that is read from them.

They stand in the session's log under a span list of their own, so that they are no part of what was said: not shown, not
searched, not counted. When an entry is erased, so are the records that tell of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitherto.model import MIRROR_RECORD, MIRRORED, Entry, Json, decode_entry, encode, plain_text
from hitherto.ports import Reader, Record, Writer
from hitherto.service.catalog.quarantined import source_id
from hitherto.service.history.append import append_entries
from hitherto.service.records import blank_entry, change_session
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Span, Stretch

MIRROR = "mirror"
"""The name of the span list; no checkpoint has such an id."""
SUMMARY = "summary"
"""In what a session's meta says of its mirror: what lists of that program show of it."""
LINKS = "links"
"""In the meta of a record that was erased: what is left of it, by which the records around it hold together."""
LINK_FIELDS = ("type", "uuid", "parentUuid", "logicalParentUuid", "timestamp", "isSidechain", "isMeta")
QUOTED_CHARS = 100
"""Records quote messages by their beginnings: a text of so many characters tells that one does."""
AT_ONCE = 500


class _Kept(NamedTuple):
    """A record as it is kept, and where."""

    place: EntryPlace
    entry: Entry
    payload: bytes


def mirror_entry(record: Json, name: str, at: int) -> Entry:
    """The entry that keeps a record; `name` is what it is known by among the others."""
    return Entry(id=f"{MIRROR_RECORD}{name}", at=at, role="system", meta={MIRRORED: record})


async def add_records(tx: Writer, record: Record, entries: Sequence[Entry], now: int, key: bytes) -> Record:
    """Keep records behind those that are there; the caller stores the returned session, as a change.

    `AlreadyExists` if one is there.
    """
    grown = await append_entries(tx, record, entries, now, key)
    spans = await tx.spans(record.owner, record.num, MIRROR)
    added = Span(record.num, record.head + 1, grown.head)
    await tx.put_spans(
        record.owner, record.num, algebra.closed([*spans, added], record.num, grown.head), MIRROR
    )
    session = replace(record.session, revision=grown.session.revision)
    return replace(grown, session=session, order_at=record.order_at)


async def count_records(tx: Reader, record: Record) -> int:
    """How many records are kept, erased ones too."""
    return algebra.size(await _stretches(tx, record))


async def load_records(tx: Reader, record: Record, start: int = 0, *, links: bool = False) -> list[Json]:
    """The records from a place on, in the order in which they came; with `links` also what is left of erased ones."""
    metas = [kept.entry.meta async for kept in _kept(tx, record, start)]
    found = [meta.get(MIRRORED) or (meta.get(LINKS) if links else None) for meta in metas]
    return [each for each in found if each is not None]


async def is_kept(tx: Reader, record: Record, entry: Entry) -> bool:
    """Whether a record is kept, be it erased or not."""
    return bool(await tx.locate(record.owner, [record.num], entry.id))


def record_name(entry: Entry) -> str:
    """What a record is known by among the others."""
    return entry.id.removeprefix(MIRROR_RECORD)


async def erase_records(tx: Writer, record: Record, erased: Sequence[Entry]) -> None:
    """Erase the records that tell of these entries of a session, and the summary that was made from them."""
    mirrored = record.session.meta.get(MIRRORED)
    if mirrored is None:
        return
    names = {source_id(entry.id) for entry in erased}
    texts = [text for entry in erased for text in (_beginning(plain_text(entry)),) if len(text) > 1]
    kept = [each async for each in _kept(tx, record)]
    groups = {_group(each) for each in kept if record_name(each.entry) in names}
    for each in kept:
        own = each.entry.meta.get(MIRRORED)
        if own is not None and (_group(each) in groups or ("uuid" not in own and _quotes(own, texts))):
            await _blank(tx, record.owner, each)
    bare = {name: value for name, value in mirrored.items() if name != SUMMARY}
    await change_session(tx, record, "erase", meta={**record.session.meta, MIRRORED: bare})


async def _blank(tx: Writer, owner: str, kept: _Kept) -> None:
    record = kept.entry.meta[MIRRORED]
    links = {name: record[name] for name in LINK_FIELDS if name in record}
    message = record.get("message")
    if isinstance(message, dict):
        links["message"] = {name: message[name] for name in ("id", "role") if name in message}
    blank = blank_entry(kept.entry, len(kept.payload))
    await tx.erase(owner, kept.place, encode(replace(blank, meta={**blank.meta, LINKS: links})))


def _group(kept: _Kept) -> str:
    """What a record has in common with those that are read as one entry with it: the answer that it is part of."""
    meta = kept.entry.meta
    message = (meta.get(MIRRORED) or meta.get(LINKS) or {}).get("message")
    answer = message.get("id") if isinstance(message, dict) else None
    return answer if isinstance(answer, str) else kept.entry.id


def _beginning(text: str) -> str:
    return " ".join(text.split())[:QUOTED_CHARS]


def _quotes(value: Any, texts: Sequence[str]) -> bool:
    """Whether any of these texts is in a text of a JSON value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            plain = " ".join(item.split())
            if any(text in plain for text in texts):
                return True
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False


async def _stretches(tx: Reader, record: Record) -> list[Stretch]:
    spans = await tx.spans(record.owner, record.num, MIRROR)
    return algebra.context(spans, record.num, record.head)


async def _kept(tx: Reader, record: Record, start: int = 0) -> AsyncIterator[_Kept]:
    view = await _stretches(tx, record)
    for first in range(start, algebra.size(view), AT_ONCE):
        part = algebra.slice_of(view, first, first + AT_ONCE)
        places = (EntryPlace(each.log, seq) for each in part for seq in range(each.first, each.last + 1))
        for place, payload in zip(places, await tx.payloads(record.owner, part), strict=True):
            yield _Kept(place, decode_entry(payload), payload)
