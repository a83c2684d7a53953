"""Making sessions: empty ones, forks, branches, and a fresh one in the place of another."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, NamedWriting, Overwriting, Writing, key_of
from hitherto.limits import TITLE_CHARS
from hitherto.model import Session
from hitherto.service import Address, address_of
from hitherto.values.keys import parse_key

Title = Annotated[str, Meta(max_length=TITLE_CHARS)]


class Create(Writing, frozen=True, kw_only=True):
    """A session without a key goes by its id. `name` is a title; `parent` names the session that this one works for."""

    session_key: str | None = None
    name: Title | None = None
    agent_id: str | None = None
    channel: str | None = None
    cwd: str | None = None
    title: Title | None = None
    parent: str | None = None


class Fork(NamedWriting, frozen=True, kw_only=True):
    """Up to and including a message, with `before` up to the one before it; or all of it."""

    message_id: str | None = None
    before: bool = False
    title: Title | None = None
    new_session_key: str | None = None


class NewSession(Overwriting, frozen=True, kw_only=True):
    """`topic` is the title of the fresh one."""

    topic: Title | None = None


class Branch(NamedWriting, frozen=True, kw_only=True):
    """From which checkpoint, and to which key."""

    checkpoint_id: str
    new_session_key: str | None = None
    title: Title | None = None


class Created(Answer, frozen=True, kw_only=True):
    """The session that was made; its name is its title, or the key."""

    session_key: str
    session_id: str
    name: str


class Forked(Answer, frozen=True, kw_only=True):
    """The fork; `parent` is the id of the session it comes from."""

    session_key: str
    session_id: str
    parent: str


class MovedKey(Answer, frozen=True, kw_only=True):
    """The fresh session under the key, and the old one, which now goes by its id."""

    session_key: str
    session_id: str
    old_session_key: str
    new_session_key: str
    topic: str | None


class Branched(Answer, frozen=True, kw_only=True):
    """The session that was made from the checkpoint of another."""

    session_key: str
    checkpoint_id: str
    new_session_key: str
    session_id: str
    message_count: int
    created: bool


async def create(call: Call[Create]) -> Created:
    """Create an empty session, with or without a key."""
    given = call.params
    if given.name is not None and given.title is not None:
        raise InvalidInput("give name or title, not both: they mean the same")
    address = addressed(call, given.session_key, given.agent_id, given.channel)

    def answer(session: Session) -> Created:
        name = session.title or key_of(session)
        return Created(session_key=key_of(session), session_id=session.id, name=name)

    home = call.context.sessions if address.key is None else call.context.sessions.at(address.key)
    return await call.once(
        lambda sessions: sessions.channels.begin(
            call.who, address, cwd=given.cwd, title=given.title or given.name, parent=given.parent
        ),
        answer,
        at=home,
    )


async def fork(call: Call[Fork]) -> Forked:
    """Create a session that shares this one's history, up to a message or all of it. Nothing is copied."""
    given, source = call.params, call.session
    address = None if given.new_session_key is None else addressed(call, given.new_session_key)

    def answer(made: Session) -> Forked:
        return Forked(session_key=key_of(made), session_id=made.id, parent=source.id)

    return await call.once(
        lambda sessions: sessions.channels.fork_to(
            call.who, source.id, address, at=given.message_id, before=given.before, title=given.title
        ),
        answer,
    )


async def move_key(call: Call[NewSession]) -> MovedKey:
    """Move the key to a new session. The old session keeps its id and its messages."""

    def answer(both: tuple[Session, Session]) -> MovedKey:
        old, fresh = both
        return MovedKey(
            session_key=key_of(fresh),
            session_id=fresh.id,
            old_session_key=key_of(old),
            new_session_key=key_of(fresh),
            topic=fresh.title,
        )

    return await call.once(
        lambda sessions: sessions.channels.start_anew(call.who, call.session.id, title=call.params.topic),
        answer,
    )


async def branch(call: Call[Branch]) -> Branched:
    """Create a session from a checkpoint."""
    given, source = call.params, call.session
    address = None if given.new_session_key is None else addressed(call, given.new_session_key)

    def answer(made: Session) -> Branched:
        return Branched(
            session_key=key_of(source),
            checkpoint_id=given.checkpoint_id,
            new_session_key=key_of(made),
            session_id=made.id,
            message_count=made.message_count,
            created=True,
        )

    return await call.once(
        lambda sessions: sessions.channels.fork_to(
            call.who, source.id, address, checkpoint=given.checkpoint_id, title=given.title
        ),
        answer,
    )


def addressed(
    call: Call[object], text: str | None, agent_id: str | None = None, channel: str | None = None
) -> Address:
    """Where a new session is to stand."""
    key = None if text is None else parse_key(text)
    return address_of(key, call.context.token.role, agent_id=agent_id, channel=channel)
