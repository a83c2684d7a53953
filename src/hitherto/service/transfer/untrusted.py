"""Imports from untrusted files keep only the conversation: what was said, by whom, and when. Pure.

Kept are the title, times, roles and the parts that are content. Dropped are owner, id, key, agent, channel, identity,
folder, permissions and other settings, facts, checkpoints, costs and a provider's signatures. Nothing kept has authority:
a system message of the file becomes a marked user message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec.structs import replace

from hitherto.errors import InvalidInput, TooLarge
from hitherto.exports.lines import Range
from hitherto.exports.messages import entry_of
from hitherto.exports.read import Foreign
from hitherto.ids import uuid7_of
from hitherto.limits import ENTRY_BYTES, IMPORT_BYTES, LOG_ENTRIES, checked_number, checked_size
from hitherto.model import (
    Audio,
    Entry,
    Image,
    Json,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    encode,
)
from hitherto.service.records import with_counts
from hitherto.service.transfer.parcel import KnownAs, Parcel, rows_of
from hitherto.service.validation import checked_entry, checked_title
from hitherto.values.token_count import ESTIMATED, tokens_of

NO_TIME = -1
"""Stands for a time that the file does not give."""
REPEATED = 4
"""A conversation may repeat its entries, but be at most this many times as long as they are."""

_TAKEN: dict[type[Part], tuple[str, ...]] = {
    Text: ("text",),
    Thought: ("text",),
    Image: ("mime_type", "data"),
    Audio: ("mime_type", "data"),
    Resource: ("uri", "mime_type", "text"),
    ResourceLink: ("uri", "name", "title", "description"),
    ToolCall: ("id", "name", "input", "title"),
    ToolResult: ("id", "is_error", "output"),
    Plan: ("steps",),
}


def check_import_size(lines: Iterable[bytes]) -> None:
    """Raise `TooLarge` if an untrusted import has more bytes than allowed."""
    total = sum(map(len, lines))
    if total > IMPORT_BYTES:
        raise TooLarge(f"an import may have at most {IMPORT_BYTES} bytes, this one has {total}")


def sanitize_untrusted(parcel: Parcel, now: int, *, with_roles: bool = False) -> Parcel:
    """The same conversation, without anything that an untrusted file may not set; system messages stay such `with_roles`."""
    if parcel.reached > REPEATED * (len(parcel.rows) + 1):
        raise InvalidInput("the export's spans repeat the same entries too often")
    session = parcel.session
    said = parcel.conversation()
    made = _parcel(session.title, session.created_at, said, now, with_roles)
    in_file = KnownAs(session.id, tuple(entry for entry in said if entry.parts))
    return replace(made, known_as=(in_file, *made.known_as))


def parcel_of_messages(foreign: Foreign, now: int, *, with_roles: bool = False) -> Parcel:
    """The messages of another program as a session; system messages stay such `with_roles`."""
    at = NO_TIME if foreign.created_at is None else foreign.created_at
    entries = [entry_of(message, id=str(number), at=at) for number, message in enumerate(foreign.messages, 1)]
    return _parcel(foreign.title, foreign.created_at, entries, now, with_roles)


def _parcel(title: str | None, began: int | None, said: list[Entry], now: int, with_roles: bool) -> Parcel:
    if len(said) > LOG_ENTRIES:
        raise TooLarge(f"a session may have at most {LOG_ENTRIES} messages")
    kept = [_entry(number, entry, with_roles) for number, entry in enumerate(said, 1) if entry.parts]
    if began is None:
        began = min((entry.at for entry in kept if entry.at != NO_TIME), default=NO_TIME)
    began = _checked_time(began)
    named = checked_title(title)
    # The same content has the same id, so it is recognised when it comes again: whatever the time is then.
    digest = hashlib.sha256(encode([named, began, [encode(entry).decode() for entry in kept]])).digest()
    entries = [_stored_entry(entry, now) for entry in kept]
    rows = rows_of((entry, checked_size(encode(entry), ENTRY_BYTES, "an entry")) for entry in entries)
    session = Session(
        id=uuid7_of(max(began, 0), digest),
        revision=1,
        created_at=_not_future(began, now),
        updated_at=max((entry.at for entry in entries), default=_not_future(began, now)),
        title=named,
        title_by="source" if named else None,
        meta={"imported": True},
    )
    own = (KnownAs(session.id, tuple(entries)),)
    if not rows:
        return Parcel(session=session, known_as=own)
    whole: Range = (1, len(rows), "plain", None)
    session = with_counts(session, len(rows), rows[-1].totals)
    return Parcel(session=session, rows=tuple(rows), spans=(whole,), reached=len(rows), known_as=own)


def _entry(number: int, entry: Entry, with_roles: bool) -> Entry:
    """What is kept of an entry, with the time from its file."""
    meta: Json = {"imported": True}
    demoted = entry.role == "system" and not with_roles
    if demoted:
        meta["said_as"] = "system"
    taken = Entry(
        id=f"imported-{number}",
        at=_checked_time(entry.at),
        role="user" if demoted else entry.role,
        parts=_parts(entry.parts),
        meta=meta,
    )
    return checked_entry(taken)


def _stored_entry(entry: Entry, now: int) -> Entry:
    """The entry as it is kept, with its tokens, which are estimated."""
    meta = {**entry.meta, ESTIMATED: True}
    return replace(entry, at=_not_future(entry.at, now), tokens=tokens_of(entry).number, meta=meta)


def _parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(_part(part) for part in parts if type(part) in _TAKEN)


def _part(part: Part) -> Part:
    """The part with what is taken of it."""
    fields = {name: getattr(part, name) for name in _TAKEN[type(part)]}
    if isinstance(part, ToolResult):
        fields["content"] = _parts(part.content)
    return type(part)(**fields)


def _checked_time(at: int) -> int:
    return at if at == NO_TIME else max(checked_number(at, "a time"), 0)


def _not_future(at: int, now: int) -> int:
    return now if at == NO_TIME else min(at, now)
