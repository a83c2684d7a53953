"""`/find` and `/jump`: finding the way in a session that is not in the page as a whole."""

from __future__ import annotations

from typing import cast

import msgspec

from hitherto.errors import NotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.list_query import Asked
from hitherto.service.search.within import Kind

HITS = 1_000


class Hits(msgspec.Struct, frozen=True):
    """The messages to go to, in order; `more`: there are older ones. `terms` are for setting off the words."""

    entries: tuple[str, ...] = ()
    more: bool = False
    terms: tuple[tuple[tuple[str, ...], bool], ...] = ()


class Target(msgspec.Struct, frozen=True):
    """The message to go to, if there is one."""

    entry: str | None


async def find(caller: Caller, session_id: str, text: str) -> Hits:
    """Where in a session these words are said; a last word that may still be typed stands for all that begin so."""
    query = Asked(q=text).query
    home = caller.sessions.at(session_id)
    if query is None:
        return Hits()
    found = await home.within(caller.who, session_id, query, limit=HITS)
    return Hits(found.entries, found.more, tuple((term.tokens, term.prefix) for term in found.terms))


async def jump(caller: Caller, session_id: str, entry_id: str | None, kind: str, *, back: bool) -> Target:
    """The next message of a kind, or the one before. From one that is there no more there is none."""
    home = caller.sessions.at(session_id)
    await home.get(caller.who, session_id)
    try:
        return Target(
            await home.conversation.beside(
                caller.who, session_id, entry_id, cast("Kind", kind), backwards=back
            )
        )
    except NotFound:
        return Target(None)
