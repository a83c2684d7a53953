"""Finding sessions: by words, by the beginning of an id, by who writes to whom."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from hitherto.errors import SessionNotFound
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Params, key_of
from hitherto.limits import SEARCH_PAGE
from hitherto.model import Account, Found, Hit, Session
from hitherto.service.search.sessions import Order
from hitherto.values.keys import dm_scope, route

SearchLimit = Annotated[int, Meta(ge=1, le=SEARCH_PAGE)]
Query = Annotated[str, Meta(max_length=4_096)]
Name = Annotated[str, Meta(min_length=1, max_length=500)]


class Search(Params, frozen=True, kw_only=True):
    """Words, "phrases", prefix*, -words, `last week`, and fields such as `project:`, `tool:` or `after:` to narrow; `docs/search.md` has
    all of them. In the order `best` the query is a question: any of its words will do, in any form. With `count` the answer says
    how much there is in all."""

    query: Query
    limit: SearchLimit = 20
    cursor: str | None = None
    order: Order = "newest"
    count: bool = False


class Resolve(Params, frozen=True, kw_only=True):
    """A key, an id, or the beginning of an id."""

    session_key: str


class ResolveRoute(Params, frozen=True, kw_only=True):
    """Who writes to which agent, and where. `account_id` is your own account on the channel that it was sent to, if you have
    several there."""

    agent_id: Name
    channel: Name
    peer_id: Name
    group_id: Name | None = None
    account_id: Name | None = None
    thread_id: Name | None = None
    dm_scope: str | None = None


class SearchHit(Answer, frozen=True, kw_only=True):
    """The newest hit in one session, or its best; `more` counts the others, at most 99. A hit in a title has no message. `branch_id` is
    the checkpoint of the branch that has the message, if the conversation has it not."""

    session_key: str
    session_id: str
    title: str | None
    message_id: str | None
    snippet: str
    more: int
    branch_id: str | UnsetType = UNSET


class Total(Answer, frozen=True, kw_only=True):
    """How many messages and titles are found, and in how many sessions: exactly up to 1,000; with `more` there are more, or may be."""

    hits: int
    sessions: int
    more: bool


class Results(Answer, frozen=True, kw_only=True):
    """A page, which may be short and still have a cursor; `total` if you asked for it."""

    results: tuple[SearchHit, ...]
    cursor: str | UnsetType = UNSET
    total: Total | UnsetType = UNSET


class Resolved(Answer, frozen=True, kw_only=True):
    """The one session that was meant."""

    session_key: str
    session_id: str
    agent_id: str | None
    title: str | None


class Routed(Answer, frozen=True, kw_only=True):
    """Which session a message goes to, and why. Whether there is one yet is not said."""

    session_key: str
    dm_scope: str
    reason: str


async def search(call: Call[Search]) -> Results:
    """Search your sessions: the newest hit of each session, newest first; or the best of each, best match first."""
    given = call.params
    page = await call.sessions.search(
        call.who, given.query, cursor=given.cursor, limit=given.limit, order=given.order, count=given.count
    )
    return Results(
        results=tuple(map(_found, page.hits)),
        cursor=page.cursor or UNSET,
        total=UNSET if page.found is None else _total(page.found),
    )


async def resolve(call: Call[Resolve]) -> Resolved:
    """Find the session of yours with this key, id or prefix of an id."""
    session = await _meant(call)
    return Resolved(
        session_key=key_of(session), session_id=session.id, agent_id=session.agent_id, title=session.title
    )


async def resolve_route(call: Call[ResolveRoute]) -> Routed:
    """Get the key of the session that a message of this peer belongs to, and the reason."""
    given = call.params
    peer = Account(given.channel, given.peer_id)
    found = route(
        given.agent_id,
        peer,
        group=given.group_id,
        account=given.account_id,
        thread=given.thread_id,
        scope=None if given.dm_scope is None else dm_scope(given.dm_scope),
        scopes=call.context.dm_scopes,
        canonical=await call.sessions.identities.linked(call.who, *peer),
    )
    return Routed(session_key=str(found.key), dm_scope=str(found.scope), reason=found.reason)


async def _meant(call: Call[Resolve]) -> Session:
    name = call.params.session_key
    home = call.context.sessions.at(name)
    try:
        return await home.channels.resolve(call.who, name)
    except SessionNotFound:
        return await home.get(call.who, await home.resolve(call.who, name))


def _total(found: Found) -> Total:
    return Total(hits=found.hits, sessions=found.sessions, more=found.more)


def _found(hit: Hit) -> SearchHit:
    return SearchHit(
        session_key=key_of(hit.session),
        session_id=hit.session.id,
        title=hit.session.title,
        message_id=hit.entry,
        snippet=hit.snippet,
        more=hit.more,
        branch_id=hit.branch or UNSET,
    )
