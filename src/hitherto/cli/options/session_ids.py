"""Session ids as people type and read them: shortened."""

from __future__ import annotations

from collections.abc import Iterable

from hitherto.errors import AmbiguousId, NotFound
from hitherto.model import LOCAL
from hitherto.service import Sessions

# The first 13 characters of an id are its creation time in ms; the rest is random.
LENGTHS = (13, 18, 23, 28)


async def full_ids(sessions: Sessions, names: Iterable[str]) -> list[str]:
    """The full ids of the named sessions, without duplicates. Raises for the first that does not exist."""
    return list(dict.fromkeys([await sessions.resolve(LOCAL, each) for each in names]))


async def short_id(sessions: Sessions, session_id: str) -> str:
    """A short prefix of the id that no other session shares."""
    for length in LENGTHS:
        beginning = session_id[:length]
        try:
            if await sessions.resolve(LOCAL, beginning) == session_id:
                return beginning
        except (AmbiguousId, NotFound):
            continue
    return session_id


async def short_ids(sessions: Sessions, session_ids: Iterable[str]) -> dict[str, str]:
    """The short id of each session."""
    return {each: await short_id(sessions, each) for each in session_ids}
