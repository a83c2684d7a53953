"""The sessions that mirrored transcripts are kept in: the one that sync reads from the same file, or one of their own."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from hitherto.model import MIRRORED, Json, Session, decode_entry, decode_json, encode
from hitherto.ports import Reader, Record, Writer
from hitherto.service.catalog.metadata import title_fields
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.mirrored import add_records, is_kept, mirror_entry
from hitherto.service.records import change_session, load_lists
from hitherto.sources.claude.mirror_key import PREFIX, TranscriptKey, key_of, mirrored_as

NAME = "claude"
AGENT_ID = "claude-code"
BESIDE = "beside"
"""In what a session's meta says of its mirror: records stand beside the conversation, not in its place."""
MOST = 100_000


async def find_mirror(tx: Reader, owner: str, key: TranscriptKey) -> Record | None:
    """The session that a transcript is mirrored in."""
    for name in filter(None, (key.file_id, key.own_id)):
        record = await tx.session(owner, name)
        if record is not None and key_of(record.session) == key:
            return record
    return None


async def require_mirror(tx: Writer, owner: str, key: TranscriptKey, now: int, secret: bytes) -> Record:
    """The same; what an earlier version of the program kept is brought into shape, and if there is none it is made."""
    known = await find_mirror(tx, owner, key)
    if known is not None:
        return await in_shape(tx, known, now, secret)
    return await _made(tx, owner, key, await _free_id(tx, owner, key), now)


class EarlierRecord(NamedTuple):
    """A record that was kept as if it were a message, and the id and time of that."""

    name: str
    at: int
    record: Json


async def records_in_place(tx: Reader, record: Record) -> list[EarlierRecord]:
    """The records of a session in which an earlier version of the program kept them as if they were messages."""
    if mirrored_as(record.session).get(BESIDE):
        return []
    payloads = await tx.payloads(record.owner, (await load_lists(tx, record)).conversation())
    entries = map(decode_entry, payloads)
    # Entries that were erased here, and summaries made here, are not the SDK's.
    return [EarlierRecord(each.id, each.at, each.meta[MIRRORED]) for each in entries if MIRRORED in each.meta]


async def in_shape(tx: Writer, record: Record, now: int, secret: bytes) -> Record:
    """A session in which an earlier version of the program kept records as if they were messages, as it is kept now: part of
    the session that sync reads from the same transcript, or would. Others stay as they are."""
    key = key_of(record.session)
    if key is None or mirrored_as(record.session).get(BESIDE):
        return record
    owner, was = record.owner, record.session
    earlier = await records_in_place(tx, record)
    facts = await tx.facts(owner, was.id)
    children = await tx.children(owner, was.id)
    erased = await tx.erasures(owner, was.id)
    await tx.bury(record, now)
    joined = await _made(tx, owner, key, await _free_id(tx, owner, key), now)
    joined = await _take_over(tx, was, joined)
    name = joined.session.id
    await tx.put_erasures(owner, name, sorted(erased), now)
    await tx.put_facts(owner, [replace(fact, session=name) for fact in facts])
    for child in children:
        if (locked := await tx.session(owner, child.session.id)) is not None and name != was.id:
            await change_session(tx, locked, "meta", parent=name)
    entries = [mirror_entry(each.record, each.name, each.at) for each in earlier]
    fresh = [entry for entry in entries if not await is_kept(tx, joined, entry)]
    if not fresh:
        return joined
    return await tx.rewrite(await add_records(tx, joined, fresh, now, secret), "append")


async def mirrors_out_of_shape(tx: Reader, owner: str) -> list[str]:
    """The ids of sessions that may have been kept by an earlier version of the program."""
    found = list[str]()
    for name in await tx.with_prefix(owner, PREFIX, MOST):
        record = await tx.session(owner, name)
        if record is not None and not mirrored_as(record.session).get(BESIDE):
            found.append(name)
    return found


async def mirrors_below(tx: Reader, owner: str, main: TranscriptKey) -> list[Record]:
    """The sessions of a session's further transcripts: all those that are mirrored, and subagents that sync has read."""
    prefixes = [f"{main.own_id}/", *([f"{main.file_id}:"] if main.file_id else [])]
    found = list[Record]()
    for prefix in prefixes:
        for name in await tx.with_prefix(owner, prefix, MOST):
            record = await tx.session(owner, name)
            key = None if record is None else key_of(record.session)
            if record is not None and (key is None or key.main == main):
                found.append(record)
    return found


async def _free_id(tx: Reader, owner: str, key: TranscriptKey) -> str:
    """The id of the session for a new transcript: the same as its file's, unless that mirrors another project's."""
    there = None if key.file_id is None else await tx.session(owner, key.file_id)
    if key.file_id is None or (there is not None and key_of(there.session) not in (None, key)):
        return key.own_id
    return key.file_id if there is None or there.session.source == NAME else key.own_id


async def _made(tx: Writer, owner: str, key: TranscriptKey, name: str, now: int) -> Record:
    """The session of this id, as the mirror of a transcript; made if there is none."""
    record = await tx.session(owner, name)
    if record is None:
        session = Session(
            id=name,
            revision=1,
            created_at=now,
            updated_at=now,
            agent_id=AGENT_ID,
            source=NAME,
            parent=await _parent(tx, owner, key),
        )
        record = await add_session(tx, owner, session)
        await tx.put_spans(owner, record.num, ())
    mirrored: Json = {**mirrored_as(record.session), **decode_json(encode(key)), BESIDE: True}
    meta = {**record.session.meta, MIRRORED: mirrored}
    return await change_session(tx, record, "meta", channel=key.channel, meta=meta)


async def _parent(tx: Reader, owner: str, key: TranscriptKey) -> str | None:
    """The session that a subagent belongs to."""
    if key.subpath is None:
        return None
    known = await find_mirror(tx, owner, key.main)
    return known.session.id if known else key.main.file_id or key.main.own_id


async def _take_over(tx: Writer, was: Session, new: Record) -> Record:
    """What the owner said of a session, now said of the one that it is part of."""
    session = new.session
    fields: Json = {
        "tags": tuple(sorted({*session.tags, *was.tags})),
        "pinned": session.pinned or was.pinned,
        "archived": session.archived or was.archived,
        "meta": {**was.meta, **session.meta, MIRRORED: {**mirrored_as(was), **mirrored_as(session)}},
    }
    if was.title_by == "user" and session.title_by != "user":
        fields |= title_fields(session, was.title, "user")
    return await change_session(tx, new, "meta", **fields)
