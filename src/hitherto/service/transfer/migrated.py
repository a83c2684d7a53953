"""Migration: an export becomes a session equal to the one it was made of, without what a file alone may not decide. Pure.

Taken is what whoever imports it could also set by other methods: messages with their roles, senders, models and costs,
checkpoints and episodes, facts, titles, tags and metadata. Never taken are folders, a place in a chat gateway, permissions,
what another program's files say, and a provider's signatures: `left_out` names those that the file had.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.ids import uuid7_of
from hitherto.limits import ENTRY_BYTES, checked_size
from hitherto.model import (
    EPISODE,
    OWN,
    RESERVED,
    Address,
    Entry,
    Fact,
    Json,
    Part,
    Session,
    Status,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    encode,
    is_mirror_record,
)
from hitherto.service.records import is_erased, with_counts
from hitherto.service.transfer.parcel import KnownAs, Parcel, context_sums, rows_of
from hitherto.service.transfer.untrusted import REPEATED, sanitize_untrusted
from hitherto.values.spans import HEADINGS, STANDING, Kind
from hitherto.values.token_count import ESTIMATED

COPIED_FROM = f"{OWN}copied_from"
"""In a session's meta: the digest of the export that it was imported from."""
NATIVE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RESTED: tuple[Status, ...] = ("failed", "interrupted")
"""What a session may be found as, beside idle: nothing runs in one that was just imported."""
REASONS = ("daily", "idle", "manual")
"""Why an episode ends."""
NOTED = (ESTIMATED, "partial", "error", "said_as", "imported", "body", "meta", "synthetic")
"""Of what is noted with an entry, that which says how it came about: a word or a yes."""


class Migration(NamedTuple):
    """A session to be written, the digest of its file, another id if its own is taken, and what the file may not set."""

    parcel: Parcel
    digest: str
    other_id: str
    left_out: tuple[str, ...]


def migration_of(parcel: Parcel, lines: Iterable[bytes], now: int) -> Migration:
    """What is taken of an export. Of one that holds what another program's files say, only the conversation is."""
    if parcel.reached > REPEATED * (len(parcel.rows) + 1):
        raise InvalidInput("the export's spans repeat the same entries too often")
    digest = hashlib.sha256(b"\n".join(bare for line in lines if (bare := line.strip())))
    session = parcel.session
    if session.source is not None or any(is_mirror_record(row.entry) for row in parcel.rows):
        made = sanitize_untrusted(parcel, now, with_roles=True)
        left = {"source", "checkpoints", "facts", "tags", "metadata"} | _left_of_session(session, parcel)
        return Migration(made, digest.hexdigest(), made.session.id, tuple(sorted(left)))
    left = _left_of_session(session, parcel)
    rows = rows_of(_repacked(parcel, now, left))
    entries = tuple(row.entry for row in rows)
    other_id = uuid7_of(max(session.created_at, 0), digest.digest())
    kept = _session(session, digest.hexdigest(), now)
    if not NATIVE_ID.fullmatch(session.id):
        left.add("id")
        kept = replace(kept, id=other_id)
    made = replace(
        parcel,
        session=with_counts(kept, *context_sums(parcel.spans, rows)),
        rows=tuple(rows),
        facts=_own_facts(parcel),
        copies=(),
        known_as=(*parcel.known_as, KnownAs(kept.id, entries)),
    )
    return Migration(made, digest.hexdigest(), other_id, tuple(sorted(left)))


def placed(parcel: Parcel, there: Address, new_id: Callable[[], str]) -> Parcel:
    """The session at the caller's address, where its facts are about whoever speaks there. Without a key it stays with its
    agent and channel."""
    given = parcel.session
    named = there.key is None and given.agent_id is not None
    session = replace(
        given,
        key=there.key,
        agent_id=given.agent_id if named else there.agent_id,
        channel=given.channel if named else there.channel,
        identity=there.identity,
    )
    ids: dict[str | None, str] = {fact.id: new_id() for fact in parcel.facts}
    facts = (
        replace(
            fact,
            id=ids[fact.id],
            invalidated_by=ids.get(fact.invalidated_by, fact.invalidated_by),
            agent_id=session.agent_id,
            identity_id=_person(session),
            cwd=None,
        )
        for fact in parcel.facts
    )
    return replace(parcel, session=session, facts=tuple(facts))


def under_id(parcel: Parcel, session_id: str) -> Parcel:
    """The same under another id, by which its entries are known too."""
    entries = tuple(row.entry for row in parcel.rows)
    known_as = (*parcel.known_as, KnownAs(session_id, entries))
    return replace(parcel, session=replace(parcel.session, id=session_id), known_as=known_as)


# What is taken of a session


def _own_facts(parcel: Parcel) -> tuple[Fact, ...]:
    """The facts about the session's own person, without those that something outside the file has replaced."""
    ids = {None, *(fact.id for fact in parcel.facts)}
    own = (fact for fact in parcel.facts if fact.identity_id == _person(parcel.session))
    return tuple(fact for fact in own if fact.invalidated_by in ids)


def _left_of_session(session: Session, parcel: Parcel) -> set[str]:
    """What the file has and may not set."""
    found = {
        "folders": session.cwd or session.earlier_cwds or session.additional_directories or session.project,
        "key": session.key,
        "identity": session.identity,
        "raw_copies": parcel.copies,
        "facts_about_others": any(fact.identity_id != _person(session) for fact in parcel.facts),
    }
    return {name for name, value in found.items() if value}


def _session(session: Session, digest: str, now: int) -> Session:
    meta = {name: value for name, value in session.meta.items() if not name.startswith(RESERVED)}
    created = min(max(session.created_at, 0), now)
    return Session(
        id=session.id,
        revision=session.revision,
        created_at=created,
        updated_at=min(max(session.updated_at, created), now),
        title=session.title,
        title_by=session.title_by,
        earlier_titles=session.earlier_titles,
        tags=session.tags,
        status=session.status if session.status in RESTED else "idle",
        archived=session.archived,
        pinned=session.pinned,
        agent_id=session.agent_id,
        channel=session.channel,
        last_compaction=session.last_compaction,
        parent=session.parent,
        parent_entry=session.parent_entry,
        meta={**meta, COPIED_FROM: digest},
    )


def _person(session: Session) -> str | None:
    return None if session.identity is None else session.identity.identity_id


# What is taken of an entry


def _repacked(parcel: Parcel, now: int, left: set[str]) -> Iterator[tuple[Entry, bytes]]:
    """The entries with what is taken of them; those of which that is all keep their bytes."""
    standing = _standing(parcel)
    for row in parcel.rows:
        kept = _entry(row.entry, standing.get(row.seq), now, left)
        payload = row.payload if kept == row.entry else encode(kept)
        yield kept, checked_size(payload, ENTRY_BYTES, "an entry")


def _standing(parcel: Parcel) -> dict[int, tuple[Kind, str | None]]:
    """The entries that are summaries and headings, by their numbers, and the checkpoints that they stand for."""
    lists = (parcel.spans, *(ranges for _, ranges in parcel.checkpoints))
    return {
        number: (kind, expands)
        for ranges in lists
        for first, last, kind, expands in ranges
        if kind in STANDING
        for number in range(first, last + 1)
    }


def _entry(entry: Entry, stands: tuple[Kind, str | None] | None, now: int, left: set[str]) -> Entry:
    at = min(max(entry.at, 0), now)
    if is_erased(entry):
        return replace(entry, at=at)
    meta: Json = {
        name: entry.meta[name]
        for name in NOTED
        if isinstance(entry.meta.get(name), bool | str | None) and name in entry.meta
    }
    if stands is not None:
        kind, expands = stands
        reason = entry.meta.get(EPISODE)
        if kind in HEADINGS:
            meta[EPISODE] = reason if reason in REASONS else "manual"
        if kind == "summary" or ("compaction" in entry.meta and expands is not None):
            meta["compaction"] = expands
    if not meta.keys() >= entry.meta.keys():
        left.add("notes_of_programs")
    return replace(entry, at=at, parts=_parts(entry.parts, left), meta=meta)


def _parts(parts: Sequence[Part], left: set[str]) -> tuple[Part, ...]:
    kept = (_part(part, left) for part in parts)
    return tuple(part for part in kept if part is not None)


def _part(part: Part, left: set[str]) -> Part | None:
    match part:
        case Thought(signature=signature, provider=provider) if signature or provider:
            left.add("signatures")
            return replace(part, signature=None, provider=None)
        case ToolCall(locations=locations) if locations:
            left.add("locations")
            return replace(part, locations=())
        case ToolResult(content=content):
            return replace(part, content=_parts(content, left))
        case Unknown():
            left.add("unknown_parts")
            return None
    return part
