"""What is remembered of the caller's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from hitherto.errors import NotFound, SessionNotFound
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, Number, Params, Writing, key_of
from hitherto.gateway.methods.search import Query
from hitherto.limits import FACTS_PAGE
from hitherto.model import Fact

FactLimit = Annotated[int, Meta(ge=1, le=FACTS_PAGE)]


class Recall(Params, frozen=True, kw_only=True):
    """Only what is known to an agent, or of a person (`identity_id`)."""

    query: Query
    agent_id: str | None = None
    identity_id: str | None = None
    limit: FactLimit = 20


class ListFacts(Named, frozen=True, kw_only=True):
    """Only what is known to an agent, of a person, or from a session."""

    agent_id: str | None = None
    identity_id: str | None = None
    limit: FactLimit = 50
    offset: Number = 0


class Forget(Writing, frozen=True, kw_only=True):
    """Which fact."""

    id: str


class FactInfo(Answer, frozen=True, kw_only=True):
    """A fact that still holds; `created_at` is when it was said."""

    id: str
    content: str
    kind: str
    confidence: float | None
    session_key: str | None
    created_at: int


class Facts(Answer, frozen=True, kw_only=True):
    """Facts: the best first in a search, else the newest."""

    facts: tuple[FactInfo, ...]


class Forgotten(Answer, frozen=True, kw_only=True):
    """It is gone, and what it had taken the place of."""

    id: str
    forgotten: bool


async def search(call: Call[Recall]) -> Facts:
    """Search for facts with words of the query, best match first."""
    given = call.params
    found = await call.sessions.memory.search(
        call.who, given.query, agent_id=given.agent_id, identity_id=given.identity_id, limit=given.limit
    )
    return await _told(call, found)


async def list_facts(call: Call[ListFacts]) -> Facts:
    """List the current facts, newest first."""
    given = call.params
    found = await call.sessions.memory.search(
        call.who,
        agent_id=given.agent_id,
        identity_id=given.identity_id,
        session_id=None if call.found is None else call.found.id,
        limit=given.limit,
        offset=given.offset,
    )
    return await _told(call, found)


async def forget(call: Call[Forget]) -> Forgotten:
    """Delete a fact for good, with the facts that it replaced."""
    name = call.params.id

    def answer(was_there: bool) -> Forgotten:
        if not was_there:
            raise NotFound(f"no fact {name!r:.200}")
        return Forgotten(id=name, forgotten=True)

    return await call.once(lambda sessions: sessions.memory.forget(call.who, name), answer)


async def _told(call: Call[Recall] | Call[ListFacts], found: list[Fact]) -> Facts:
    return Facts(facts=await told_facts(call, found))


async def told_facts(call: Call[Any], found: Sequence[Fact]) -> tuple[FactInfo, ...]:
    """Facts, with the sessions that they come from."""
    keys = {fact.session: await _key(call, fact.session) for fact in found}
    return tuple(
        FactInfo(
            id=fact.id,
            content=fact.text,
            kind=fact.kind,
            confidence=fact.confidence,
            session_key=keys[fact.session],
            created_at=fact.at,
        )
        for fact in found
    )


async def _key(call: Call[Any], session_id: str | None) -> str | None:
    if session_id is None:
        return None
    try:
        return key_of(await call.sessions.get(call.who, session_id))
    except SessionNotFound:
        return None
