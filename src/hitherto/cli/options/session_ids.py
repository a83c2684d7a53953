"""Ids as people type and read them."""

from __future__ import annotations

from collections.abc import Iterable

from hitherto.errors import AmbiguousId, NotFound
from hitherto.model import LOCAL
from hitherto.service import Sessions

# An id begins with the time it was made, in ms: 13 characters of it. What follows is chance.
LENGTHS = (13, 18, 23, 28)


async def full_ids(sessions: Sessions, named: Iterable[str]) -> list[str]:
    """The ids that were meant, each once; an error for the first that is not there, before anything is done."""
    return list(dict.fromkeys([await sessions.resolve(LOCAL, each) for each in named]))


async def short_id(sessions: Sessions, session_id: str) -> str:
    """A beginning of the id that fits only this session, so that it can be typed."""
    for length in LENGTHS:
        beginning = session_id[:length]
        try:
            if await sessions.resolve(LOCAL, beginning) == session_id:
                return beginning
        except (AmbiguousId, NotFound):
            continue
    return session_id


async def short_ids(sessions: Sessions, session_ids: Iterable[str]) -> dict[str, str]:
    """Such a beginning for each id."""
    return {each: await short_id(sessions, each) for each in session_ids}
