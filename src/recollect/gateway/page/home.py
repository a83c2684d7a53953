"""`/`: the sessions, newest activity first, or those in which something was found."""

from __future__ import annotations

from msgspec.structs import replace

from recollect.errors import InvalidCursor
from recollect.gateway.bearer import Caller
from recollect.gateway.page import templates
from recollect.gateway.page.addresses import SOURCES, Asked
from recollect.gateway.page.rows import Row, hit_row, row
from recollect.ids import now_ms

ROWS, HITS = 50, 20


async def home(caller: Caller, wanted: Asked) -> bytes:
    """The list that is asked for. A cursor that means nothing any more is as good as none."""
    # Read first: what changes while the list is read is told again by whoever follows from here.
    newest = await caller.sessions.newest_change(caller.who)
    try:
        rows, cursor = await _rows(caller, wanted)
    except InvalidCursor:
        rows, cursor = await _rows(caller, replace(wanted, cursor=None))
    return templates.page(
        "home.html",
        asked=wanted,
        rows=rows,
        following=None if cursor is None else wanted.but(cursor=cursor),
        sources=SOURCES,
        newest=newest,
        owner=caller.token.owner,
        writes=caller.may("write"),
    )


async def _rows(caller: Caller, wanted: Asked) -> tuple[list[Row], str | None]:
    now = now_ms()
    if wanted.query is not None:
        found = await caller.sessions.search(
            caller.who, wanted.query, given=wanted.filter, cursor=wanted.cursor, limit=HITS
        )
        return [hit_row(hit, now) for hit in found.hits], found.cursor
    page = await caller.sessions.find(caller.who, wanted.filter, cursor=wanted.cursor, limit=ROWS)
    return [row(session, now) for session in page.sessions], page.cursor
