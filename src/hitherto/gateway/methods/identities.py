"""Accounts on several channels that are one person's."""

from __future__ import annotations

from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Params


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
    return Accounts(accounts=tuple(Account(channel=channel, peer_id=peer) for channel, peer in found))
