"""Adding entries to the end of a session, within a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import AlreadyExists, InvalidInput, StoreFull, TooLarge
from hitherto.limits import ENTRY_BYTES, LOG_ENTRIES, checked_number
from hitherto.model import Draft, Entry, Session, decode_entry, encode, plain_text
from hitherto.ports import Reader, Record, Row, Totals, Writer
from hitherto.service.catalog.metadata import listed_fields, title_fields
from hitherto.service.history.places import load_everything
from hitherto.service.kept_edits import keep_edits
from hitherto.service.records import totals_of
from hitherto.service.validation import MICROS, checked_entry, checked_name
from hitherto.summaries.kept_tail import is_prompt
from hitherto.values.days import DAY_MS
from hitherto.values.titles import title_from

AHEAD_MS = DAY_MS
"""Clocks differ, but not by more."""


class EncodedEntry(NamedTuple):
    """An entry and the bytes that it is kept as; the words that it is found by, if they are known."""

    entry: Entry
    payload: bytes
    words: str | None = None


def complete_draft(draft: Draft, now: int, new_id: Callable[[], str]) -> Entry:
    """The entry that a draft becomes: with an id, and a time that is not to come."""
    if draft.at is not None and checked_number(draft.at, "the time of an entry") > now + AHEAD_MS:
        raise InvalidInput(
            f"the time of a message cannot be in the future: give milliseconds since 1970, not {draft.at}"
        )
    entry = Entry(
        id=checked_name(draft.id, "an entry id") or new_id(),
        at=now if draft.at is None else draft.at,
        role=draft.role,
        parts=draft.parts,
        model=draft.model,
        usage=draft.usage,
        tokens=draft.tokens,
        meta=draft.meta,
        origin=draft.origin,
    )
    return checked_entry(entry)


async def append_entries(
    tx: Writer, record: Record, entries: Sequence[Entry], now: int, key: bytes
) -> Record:
    """Put entries at the head of the session's own log; counts, times and revision move with them. The edits in them are kept
    too, marked with the store's key."""
    return await append_encoded(tx, record, [encode_entry(entry) for entry in entries], now, key)


async def append_encoded(
    tx: Writer, record: Record, entries: Sequence[EncodedEntry], now: int, key: bytes
) -> Record:
    """The same for encoded entries."""
    if record.head + len(entries) > LOG_ENTRIES:
        raise StoreFull(f"a log holds at most {LOG_ENTRIES} entries: fork the session to continue")
    rows, sums = [], record.totals
    for seq, (entry, payload, words) in enumerate(entries, record.head + 1):
        sums = sums.plus(totals_of(entry, payload))
        rows.append(Row(entry=entry, payload=payload, seq=seq, totals=sums, words=words))
    updated = max(record.session.updated_at, *(each.entry.at for each in entries))
    session = _with_growth(record.session, len(entries), sums.minus(record.totals), updated)
    grown = await tx.extend(
        replace(
            record,
            session=session,
            order_at=max(record.order_at, min(updated, now)),
            head=record.head + len(entries),
            totals=sums,
            heard_at=_heard_at(record, entries),
        ),
        rows,
    )
    await keep_edits(tx, key, record, [each.entry for each in entries])
    return grown


def _heard_at(record: Record, entries: Sequence[EncodedEntry]) -> int | None:
    """When the user of a chat was last heard of; what is no chat is not looked at."""
    if record.session.key is None:
        return None
    prompts = (each.entry.at for each in reversed(entries) if is_prompt(each.entry))
    return next(prompts, record.heard_at)


def encode_entry(entry: Entry) -> EncodedEntry:
    """The entry with its bytes. Raises `InvalidInput` if it could not be read back from them."""
    try:
        payload = encode(entry)
        if len(payload) > ENTRY_BYTES:
            raise TooLarge(f"an entry may have at most {ENTRY_BYTES} bytes, this one has {len(payload)}")
        decode_entry(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the entry has a part or a value that cannot be stored: {error}") from None
    return EncodedEntry(entry, payload)


async def unarchive(tx: Writer, record: Record) -> Record:
    """Adding a message unarchives a session, and makes a draft a session like any other; part of the same change."""
    if not record.session.archived:
        return record
    return await tx.rewrite(
        replace(record, session=replace(record.session, **listed_fields(record.session))), "append"
    )


async def title_from_prompt(tx: Writer, record: Record, entries: Sequence[Entry]) -> Record:
    """Give a session without a title one from the first meaningful prompt; part of the same change."""
    if record.session.title is not None:
        return record
    prompts = (title_from(plain_text(entry)) for entry in entries if entry.role == "user")
    title = next(filter(None, prompts), None)
    if title is None:
        return record
    session = replace(record.session, **title_fields(record.session, title, "auto"))
    return await tx.rewrite(replace(record, session=session), "append")


async def expect_new(tx: Reader, record: Record, ids: Sequence[str]) -> None:
    """Raise if a log that the session shares with others has one of these ids; the store checks its own log."""
    if not ids:
        return
    shared = {stretch.log for stretch in await load_everything(tx, record)} - {record.num}
    for entry_id in ids if shared else ():
        if await tx.locate(record.owner, sorted(shared), entry_id):
            raise AlreadyExists(f"the session already has an entry {entry_id!r}")


def _with_growth(session: Session, messages: int, sums: Totals, updated: int) -> Session:
    tokens = (session.token_count or 0) + sums.tokens
    cost = round((session.cost or 0) * MICROS) + sums.cost
    return replace(
        session,
        revision=session.revision + 1,
        updated_at=updated,
        message_count=session.message_count + messages,
        token_count=tokens or None,
        error_count=session.error_count + sums.errors,
        cost=cost / MICROS if cost else None,
        bytes=session.bytes + sums.bytes,
    )
