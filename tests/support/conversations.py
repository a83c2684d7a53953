"""Short ways for tests to say something and to look at what was said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from hitherto.model import (
    Draft,
    Entry,
    Filter,
    HistoryPage,
    Hit,
    Principal,
    Role,
    Session,
    Text,
    View,
    plain_text,
)
from hitherto.service import Sessions


def say(text: str, role: Role = "user", **fields: Any) -> Draft:
    """A message of one text."""
    return Draft(role=role, parts=(Text(text=text),), **fields)


def said(entries: HistoryPage | Sequence[Entry]) -> list[str]:
    """The texts of entries."""
    found = entries.entries if isinstance(entries, HistoryPage) else entries
    return [plain_text(entry) for entry in found]


async def talk(sessions: Sessions, who: Principal, session_id: str, *texts: str) -> list[str]:
    """Append each text as a message of its own; returns the ids of the entries."""
    ids: list[str] = []
    for text in texts:
        ids += (await sessions.append(who, session_id, say(text))).entries
    return ids


async def started(
    sessions: Sessions, who: Principal, *texts: str, **fields: Any
) -> tuple[Session, list[str]]:
    """A new session in which these texts were said, and the ids of the entries."""
    session = await sessions.create(who, **fields)
    ids = await talk(sessions, who, session.id, *texts)
    return await sessions.get(who, session.id), ids


async def told(sessions: Sessions, who: Principal, session_id: str, view: View = "context") -> list[str]:
    """All texts of a view."""
    return said(await sessions.history(who, session_id, view=view, limit=10_000))


async def walk(
    sessions: Sessions, who: Principal, given: Filter | None = None, *, limit: int = 50
) -> AsyncIterator[tuple[Session, ...]]:
    """The pages of a list, to its end."""
    cursor: str | None = None
    while True:
        page = await sessions.find(who, given, cursor=cursor, limit=limit)
        yield page.sessions
        if (cursor := page.cursor) is None:
            return


async def listed(
    sessions: Sessions, who: Principal, given: Filter | None = None, *, limit: int = 50
) -> list[str]:
    """The ids of all sessions that a filter finds, in the order of the list."""
    return [session.id async for page in walk(sessions, who, given, limit=limit) for session in page]


async def hits(
    sessions: Sessions, who: Principal, text: str, *, given: Filter | None = None, limit: int = 20
) -> list[Hit]:
    """All hits of a search, page by page to its end."""
    found: list[Hit] = []
    cursor: str | None = None
    while True:
        page = await sessions.search(who, text, given=given, cursor=cursor, limit=limit)
        found += page.hits
        if (cursor := page.cursor) is None:
            return found


async def finds(sessions: Sessions, who: Principal, text: str, given: Filter | None = None) -> list[str]:
    """The ids of the sessions that a search finds."""
    return [hit.session.id for hit in await hits(sessions, who, text, given=given)]


async def exported(sessions: Sessions, who: Principal, session_id: str) -> list[bytes]:
    """The lines of an export."""
    return [line async for line in sessions.export(who, session_id)]


async def filed(
    sessions: Sessions, who: Principal, session_id: str, format: str = "json", *, raw: bool = False
) -> bytes:
    """An export as one file."""
    return b"".join(
        [piece async for piece in sessions.transfer.export_file(who, session_id, format, raw=raw)]
    )


async def everything(sessions: Sessions, *owners: Principal) -> list[Any]:
    """All that these owners have, to be compared: nothing was written if it is the same afterwards."""
    seen: list[Any] = []
    for who in owners:
        ids = await listed(sessions, who, Filter(archived="include"), limit=500)
        seen.append(await sessions.changes.newest(who))
        seen.append(await sessions.statistics.stats(who))
        seen.append(await sessions.statistics.facets(who))
        seen.append(await sessions.changes.since(who, limit=1_000))
        seen.append([await exported(sessions, who, session_id) for session_id in ids])
        seen.append([await sessions.leases.current(who, session_id) for session_id in ids])
        seen.append([await sessions.changes.live(who, session_id) for session_id in ids])
    return seen
