"""What is remembered of the caller's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from hitherto.errors import InvalidInput, NotFound, SessionNotFound
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, NamedWriting, Number, Params, Writing, key_of
from hitherto.gateway.methods.search import Query
from hitherto.limits import FACT_CHARS, FACTS_PAGE, NAME_CHARS
from hitherto.model import Fact
from hitherto.service.memory.facts import NewFact, Noted

FactLimit = Annotated[int, Meta(ge=1, le=FACTS_PAGE)]
FactText = Annotated[str, Meta(min_length=1, max_length=FACT_CHARS)]
FactName = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]


class Recall(Params, frozen=True, kw_only=True):
    """Only what is known to an agent, or of a person (`identity_id`)."""

    query: Query
    agent_id: str | None = None
    identity_id: str | None = None
    limit: FactLimit = 20


class ListFacts(Named, frozen=True, kw_only=True):
    """Only what is known to an agent, of a person, or from a session. With `superseded`, also what was replaced."""

    agent_id: str | None = None
    identity_id: str | None = None
    superseded: bool = False
    limit: FactLimit = 50
    offset: Number = 0


class Forget(Writing, frozen=True, kw_only=True):
    """Which fact."""

    id: str


class AddFact(NamedWriting, frozen=True, kw_only=True):
    """With a session, it is about whoever speaks there; `message_id` says which message it is from. Else `agent_id` and
    `identity_id` say who knows it and whom it is about: `*` is everybody. `subject` is what it is about, if only one thing can
    be true of that."""

    content: FactText
    kind: FactName = "fact"
    subject: FactName | None = None
    agent_id: str | None = None
    identity_id: str | None = None
    message_id: str | None = None


class UpdateFact(Writing, frozen=True, kw_only=True):
    """Which fact, and what is true instead."""

    id: str
    content: FactText


class FactInfo(Answer, frozen=True, kw_only=True):
    """A fact: who knows it (`agent_id`), about whom (`identity_id`) and what (`subject`), since when (`created_at`), from which
    messages, and which fact has replaced it; null if it still holds."""

    id: str
    content: str
    kind: str
    confidence: float | None
    session_key: str | None
    created_at: int
    agent_id: str | None
    identity_id: str | None
    subject: str | None
    message_ids: tuple[str, ...]
    superseded_by: str | None


class Remembered(Answer, frozen=True, kw_only=True):
    """The fact that holds now, and those whose place it took."""

    id: str
    session_key: str | None
    created_at: int
    replaced: tuple[str, ...]


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
        superseded=given.superseded,
        limit=given.limit,
        offset=given.offset,
    )
    return await _told(call, found)


async def add(call: Call[AddFact]) -> Remembered:
    """Remember a fact. It takes the place of what was known about the same."""
    given = call.params
    session = call.found
    if session is not None and (given.agent_id, given.identity_id) != (None, None):
        raise InvalidInput("give a session, or an agent and a person: a session has both")
    if session is None and given.message_id is not None:
        raise InvalidInput("a message needs the session that it is in")
    new = NewFact(
        text=given.content,
        kind=given.kind,
        subject=given.subject,
        agent_id=given.agent_id,
        identity_id=given.identity_id,
        session=None if session is None else session.id,
        entries=() if given.message_id is None else (given.message_id,),
    )
    key = None if session is None else key_of(session)
    return await call.once(
        lambda sessions: sessions.memory.note(call.who, new), lambda noted: _remembered(noted, key)
    )


async def update(call: Call[UpdateFact]) -> Remembered:
    """Correct a fact: the new one takes its place, and the old one is kept as replaced."""
    given = call.params
    return await call.once(
        lambda sessions: sessions.memory.update(call.who, given.id, given.content),
        lambda noted: _remembered(noted, None),
    )


def _remembered(noted: Noted, key: str | None) -> Remembered:
    fact, replaced = noted
    return Remembered(id=fact.id, session_key=key, created_at=fact.at, replaced=replaced)


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
    return tuple(_info(fact, keys[fact.session]) for fact in found)


def _info(fact: Fact, key: str | None) -> FactInfo:
    return FactInfo(
        id=fact.id,
        content=fact.text,
        kind=fact.kind,
        confidence=fact.confidence,
        session_key=key,
        created_at=fact.at,
        agent_id=fact.agent_id,
        identity_id=fact.identity_id,
        subject=fact.subject,
        message_ids=fact.entries,
        superseded_by=fact.invalidated_by,
    )


async def _key(call: Call[Any], session_id: str | None) -> str | None:
    if session_id is None:
        return None
    try:
        return key_of(await call.sessions.get(call.who, session_id))
    except SessionNotFound:
        return None
