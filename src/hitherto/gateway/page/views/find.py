"""`/find` and `/jump`: search within a session, most of which is not loaded in the page."""

from __future__ import annotations

from typing import cast

import msgspec

from hitherto.errors import NotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.list_query import ListQuery
from hitherto.service.search.within import Kind

HITS = 1_000


class Hits(msgspec.Struct, frozen=True):
    """The messages that match, in order; `more`: there are older ones. `terms` are the words to highlight."""

    entries: tuple[str, ...] = ()
    more: bool = False
    terms: tuple[tuple[tuple[str, ...], bool], ...] = ()


class Target(msgspec.Struct, frozen=True):
    """The message to go to, if there is one."""

    entry: str | None


async def find(caller: Caller, session_id: str, text: str) -> Hits:
    """Find words in a session; the last word, which may be incomplete, matches as a prefix."""
    query = ListQuery(q=text).search
    home = caller.sessions.at(session_id)
    if query is None:
        return Hits()
    found = await home.within(caller.who, session_id, query, limit=HITS)
    return Hits(found.entries, found.more, tuple((term.tokens, term.prefix) for term in found.terms))


async def jump(caller: Caller, session_id: str, entry_id: str | None, kind: str, *, back: bool) -> Target:
    """The next or previous message of a kind; none if the message to start from no longer exists."""
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
