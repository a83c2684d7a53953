"""Accounts on several channels that are one person's."""

from __future__ import annotations

from collections.abc import Iterable

from hitherto import model
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Message, Params, key_of, message
from hitherto.gateway.methods.memory import FactInfo, told_facts


class Peer(Params, frozen=True, kw_only=True):
    """An account: a channel, and the id that somebody has there."""

    channel: str
    peer_id: str


class Link(Peer, frozen=True, kw_only=True):
    """An account, and the one by which its person goes. Only for what was verified."""

    canonical: Peer


class Account(Answer, frozen=True, kw_only=True):
    """An account: a channel, and the id that somebody has there."""

    channel: str
    peer_id: str


class Accounts(Answer, frozen=True, kw_only=True):
    """All accounts of a person, the canonical one first."""

    accounts: tuple[Account, ...]


class ErasedPerson(Answer, frozen=True, kw_only=True):
    """How much was erased, of the person with these accounts."""

    accounts: tuple[Account, ...]
    sessions_deleted: int
    messages_erased: int
    facts_forgotten: int
    links_removed: int


class SessionOfPerson(Answer, frozen=True, kw_only=True):
    """All messages of a session that is `theirs`, or those that they wrote in one with others."""

    session_key: str
    session_id: str
    title: str | None
    theirs: bool
    messages: tuple[Message, ...]


class ExportedPerson(Answer, frozen=True, kw_only=True):
    """All that is kept of the person with these accounts."""

    accounts: tuple[Account, ...]
    sessions: tuple[SessionOfPerson, ...]
    facts: tuple[FactInfo, ...]


class Unlinked(Answer, frozen=True, kw_only=True):
    """Whether there was a link."""

    unlinked: bool


async def link(call: Call[Link]) -> Accounts:
    """Record that two accounts belong to one person. Repeating it changes nothing."""
    given = call.params
    person = (given.canonical.channel, given.canonical.peer_id)
    await call.sessions.identities.link(call.who, given.channel, given.peer_id, person)
    return await accounts(call)


async def unlink(call: Call[Peer]) -> Unlinked:
    """Remove the link of an account."""
    done = await call.sessions.identities.unlink(call.who, call.params.channel, call.params.peer_id)
    return Unlinked(unlinked=done)


async def accounts(call: Call[Peer]) -> Accounts:
    """List all accounts of the person who owns this account."""
    found = await call.sessions.identities.accounts(call.who, call.params.channel, call.params.peer_id)
    return Accounts(accounts=_told(found))


async def erase(call: Call[Peer]) -> ErasedPerson:
    """Erase everything of the person who owns this account: their chats, what they wrote in others, facts and links. For good."""
    done = await call.sessions.people.erase(call.who, call.params.channel, call.params.peer_id)
    return ErasedPerson(
        accounts=_told(done.accounts),
        sessions_deleted=done.sessions,
        messages_erased=done.messages,
        facts_forgotten=done.facts,
        links_removed=done.links,
    )


async def export(call: Call[Peer]) -> ExportedPerson:
    """Export everything of the person who owns this account: their chats, what they wrote in others, and facts."""
    found = await call.sessions.people.export(call.who, call.params.channel, call.params.peer_id)
    return ExportedPerson(
        accounts=_told(found.accounts),
        sessions=tuple(
            SessionOfPerson(
                session_key=key_of(each.session),
                session_id=each.session.id,
                title=each.session.title,
                theirs=each.theirs,
                messages=tuple(map(message, each.entries)),
            )
            for each in found.sessions
        ),
        facts=await told_facts(call, found.facts),
    )


def _told(accounts: Iterable[model.Account]) -> tuple[Account, ...]:
    return tuple(Account(channel=channel, peer_id=peer) for channel, peer in accounts)
