"""`/s/ID`: a session and a page of what was said in it; `/message`: one message by itself."""

from __future__ import annotations

import asyncio
import json

import msgspec

from recollect.exports.markdown import blocks
from recollect.gateway.bearer import Caller
from recollect.gateway.page import templates
from recollect.gateway.page.rows import row
from recollect.gateway.page.transcript import Message, messages
from recollect.ids import now_ms
from recollect.model import Entry, HistoryPage, Live, Session, Text, Value, decode_entry, decode_json, encode
from recollect.service import Sessions

MESSAGES, AROUND = 40, 30
PAGE_BYTES = 500_000


class Place(Value, frozen=True):
    """Which stretch of a session: around a message, before or after one, or else the newest."""

    session: str
    at: str | None = None
    before: str | None = None
    after: str | None = None


async def session_page(caller: Caller, place: Place, *, answers: bool = False) -> bytes:
    """The page. However long the session is, a bounded stretch of it is read, and sent.

    `answers`: there is something that answers prompts.
    """
    home = caller.sessions.at(place.session)
    newest = await home.newest_change(caller.who)
    session = await home.get(caller.who, place.session)
    page = await _stretch(home, caller, place)
    live = await _saying(home, caller, session) if page.next is None else None
    may = {"writes": caller.may("write"), "runs": answers and caller.may("run") and session.source is None}
    return await asyncio.to_thread(_rendered, session, page, place, live, newest, may)


async def message(caller: Caller, session_id: str, entry_id: str, form: str) -> bytes:
    """A message as it is kept, or as the Markdown that its texts are."""
    entry = await caller.sessions.at(session_id).entry(caller.who, session_id, entry_id)
    if form == "markdown":
        return _markdown(entry).encode("utf-8", "replace")
    kept = decode_json(encode(entry))
    return json.dumps(kept, ensure_ascii=False, indent=2).encode("utf-8", "replace")


async def _stretch(home: Sessions, caller: Caller, place: Place) -> HistoryPage:
    who, name = caller.who, place.session
    if place.at is not None:
        return await home.history(who, name, view="conversation", around=place.at, limit=AROUND)
    return await home.history(
        who,
        name,
        view="conversation",
        before=place.before,
        after=None if place.before is not None else place.after,
        last=place.before is None and place.after is None,
        limit=MESSAGES,
        max_bytes=PAGE_BYTES,
    )


async def _saying(home: Sessions, caller: Caller, session: Session) -> Entry | None:
    """What a running turn has said so far of its next message."""
    data = await home.live(caller.who, session.id)
    if data is None:
        return None
    live = msgspec.convert(decode_json(data), Live)
    return Entry(id=live.entry, at=now_ms(), role="assistant", parts=live.parts)


def _rendered(
    session: Session, page: HistoryPage, place: Place, live: Entry | None, newest: int, may: dict[str, bool]
) -> bytes:
    shown: list[Message] = messages(page.entries, page.marks)
    return templates.page(
        "session.html",
        row=row(session, now_ms()),
        session=session,
        messages=shown,
        saying=None if live is None else messages([live])[0],
        first=decode_entry(page.raw[0]).id if page.raw else None,
        last=decode_entry(page.raw[-1]).id if page.raw else None,
        previous=page.previous,
        following=page.next,
        total=page.total,
        target=place.at,
        newest=newest,
        **may,
    )


def _markdown(entry: Entry) -> str:
    """Texts as they were written; what is no text as an export writes it."""
    pieces = [
        piece for part in entry.parts for piece in ((part.text,) if isinstance(part, Text) else blocks(part))
    ]
    return "\n\n".join(pieces)
