"""`/`: the sessions, newest activity first, or the results of a search."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidCursor, InvalidQuery, SessionNotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.list_query import RECENT, ListQuery, Sort
from hitherto.gateway.page.render.rows import Row, hit_row, row
from hitherto.gateway.page.views.list_facets import groups
from hitherto.ids import now_ms
from hitherto.limits import LIST_PAGE
from hitherto.model import Facets, Found, Session, is_subagent
from hitherto.values.filters import normal_filter, passes
from hitherto.values.usage.sessions import SessionUsage

ROWS, HITS = 50, 20
SORTED, COMPARED = 100, 2_000
"""So many of a sorted list are shown, of so many of the newest that match."""
GENERATIONS = 4
ORDERS: dict[Sort | None, str] = {
    None: "newest",
    "cost": "cost",
    "changes": "changes",
    "messages": "messages",
}


async def home(caller: Caller, wanted: ListQuery, *, in_parts: bool = False, bare: bool = False) -> bytes:
    """Render the list. An invalid cursor is ignored.

    `in_parts`: for a page that already shows the list, and its filters. `bare`: for a page that shows no filters.
    """
    # Read first: changes while the list is read come again with the changes after this number.
    newest = await caller.sessions.changes.newest(caller.who)
    refused = None
    try:
        listed = await _listed(caller, wanted)
    except InvalidCursor:
        listed = await _listed(caller, replace(wanted, cursor=None))
    except InvalidQuery as error:
        listed, refused = _Listed([]), f"{error.message[:1].upper()}{error.message[1:]}."
    is_more = bare or (in_parts and bool(wanted.cursor or wanted.ids))
    counted = ListQuery() if refused else wanted
    return templates.page(
        "home.html",
        query=wanted,
        rows=await _with_changes(caller, listed.rows),
        found=listed.found,
        compared=listed.compared,
        refused=refused,
        times=[
            (
                text,
                wanted.address_with(since=None if wanted.since == days else days, until=None),
                wanted.since == days,
            )
            for days, text in RECENT.items()
        ],
        sorts=[(text, wanted.address_with(sort=sort), wanted.sort == sort) for sort, text in ORDERS.items()],
        following=None if listed.cursor is None else wanted.address_with(cursor=listed.cursor),
        groups=[] if is_more else groups(await _facets(caller, counted), wanted),
        newest=newest,
        owner=caller.token.owner,
        writes=caller.may("write"),
    )


async def _with_changes(caller: Caller, rows: Sequence[Row]) -> list[Row]:
    """The rows with what each session changed, and how many subagents it started: forks of another agent are rows of their own."""
    counts = await caller.sessions.edits.counts(caller.who, [each.session.id for each in rows])
    forks = Counter(
        each.session.parent
        for each in rows
        if each.session.source is not None and not is_subagent(each.session)
    )
    return [
        each._replace(changes=known, agents=max(known.agents - forks[each.session.id], 0) if known else 0)
        for each in rows
        for known in [counts.get(each.session.id)]
    ]


class _Listed(NamedTuple):
    """Rows, the cursor of those that follow, how much a search finds in all, with its first page, and how many were sorted."""

    rows: list[Row]
    cursor: str | None = None
    found: Found | None = None
    compared: int = 0


async def _facets(caller: Caller, wanted: ListQuery) -> Facets:
    """The kinds of what is listed."""
    return await caller.sessions.index.facets(
        caller.who, wanted.search or "", given=wanted.filter, order=wanted.order
    )


async def _listed(caller: Caller, wanted: ListQuery) -> _Listed:
    now = now_ms()
    if wanted.ids:
        given = normal_filter(wanted.filter)
        known = [each for each in await _read(caller, wanted.ids) if passes(each, given)]
        used = await _numbers(caller, known)
        return _Listed([row(session, now, used.get(session.id)) for session in known])
    if wanted.search is not None:
        found = await caller.sessions.search(
            caller.who,
            wanted.search,
            given=wanted.filter,
            cursor=wanted.cursor,
            limit=HITS,
            order=wanted.order,
            count=wanted.cursor is None,
        )
        used = await _numbers(caller, [hit.session for hit in found.hits])
        rows = [hit_row(hit, now, used.get(hit.session.id)) for hit in found.hits]
        return _Listed(rows, found.cursor, found.found)
    if wanted.sort is not None:
        return await _sorted(caller, wanted, wanted.sort)
    page = await caller.sessions.find(caller.who, wanted.filter, cursor=wanted.cursor, limit=ROWS)
    shown = [*page.sessions, *await _origins(caller, wanted, page.sessions)]
    used = await _numbers(caller, shown)
    return _Listed(families([row(session, now, used.get(session.id)) for session in shown]), page.cursor)


async def _sorted(caller: Caller, wanted: ListQuery, sort: Sort) -> _Listed:
    """The first of the newest sessions that match, by what they cost, changed or have messages."""
    found, cursor = list[Session](), None
    while len(found) < COMPARED:
        page = await caller.sessions.find(caller.who, wanted.filter, cursor=cursor, limit=LIST_PAGE)
        found += page.sessions
        if (cursor := page.cursor) is None:
            break
    used, now = await _numbers(caller, found), now_ms()
    rows = [row(session, now, used.get(session.id)) for session in found]
    if sort == "changes":
        rows = await _with_changes(caller, rows)
    return _Listed(sorted(rows, key=SORTS[sort], reverse=True)[:SORTED], compared=len(rows))


def _cost(row: Row) -> float:
    return (row.used.usage.cost or 0.0) if row.used else 0.0


def _changes(row: Row) -> int:
    return row.changes.added + row.changes.removed if row.changes else 0


SORTS: Mapping[Sort, Callable[[Row], float]] = {
    "cost": _cost,
    "changes": _changes,
    "messages": lambda each: each.messages or 0,
}


async def _numbers(caller: Caller, shown: Sequence[Session]) -> dict[str, SessionUsage]:
    return await caller.sessions.spending.numbers(caller.who, [session.id for session in shown])


async def _origins(caller: Caller, wanted: ListQuery, sessions: Sequence[Session]) -> list[Session]:
    """The sessions these were forked from, if they match the query: they are listed above their forks."""
    if wanted.day is not None:
        return []  # the days of a session are known from its entries only
    given = normal_filter(wanted.filter)
    known, found = {session.id for session in sessions}, list[Session]()
    newest = list(sessions)
    for _ in range(GENERATIONS):
        parents = {session.parent for session in newest if session.parent is not None} - known
        known |= parents
        newest = [session for session in await _read(caller, sorted(parents)) if passes(session, given)]
        found += newest
    return found


async def _read(caller: Caller, ids: Iterable[str]) -> list[Session]:
    """Read these sessions, without those that do not exist."""
    reads = (caller.sessions.get(caller.who, each) for each in ids)
    answers = await asyncio.gather(*reads, return_exceptions=True)
    for each in answers:
        if isinstance(each, BaseException) and not isinstance(each, SessionNotFound):
            raise each
    return [each for each in answers if isinstance(each, Session)]


def families(rows: Sequence[Row]) -> list[Row]:
    """The rows, each fork below its origin if both are there. A family is placed by its newest member."""
    known = {each.session.id: each for each in rows}
    below: dict[str, list[Row]] = {}
    for each in rows:
        if each.session.parent in known:
            below.setdefault(each.session.parent, []).append(each)
    shown: dict[str, Row] = {}
    for each in rows:
        if each.session.id not in shown:
            shown |= {member.session.id: member for member in _descent(_eldest(each, known), below)}
    return list(shown.values())


def _eldest(row: Row, known: Mapping[str, Row]) -> Row:
    """The topmost of a row's origins in the list; in a cycle, which should not exist, any of its members."""
    seen: set[str] = set()
    while (parent := row.session.parent) is not None and parent in known and parent not in seen:
        seen.add(parent)
        row = known[parent]
    return row


def _descent(eldest: Row, below: Mapping[str, list[Row]]) -> Iterator[Row]:
    """A row and all its descendants, each once."""
    waiting, seen = [eldest], {eldest.session.id}
    while waiting:
        row = waiting.pop()
        yield row
        children = [each for each in below.get(row.session.id, ()) if each.session.id not in seen]
        seen.update(each.session.id for each in children)
        waiting += [each._replace(depth=row.depth + 1) for each in reversed(children)]
