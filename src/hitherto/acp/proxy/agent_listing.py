"""The agent's own sessions: those that it lists and that we do not have, and how one of them becomes ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.agent.open import placed_in
from hitherto.acp.protocol.times import milliseconds
from hitherto.acp.proxy.agent_process import Life, Refusal
from hitherto.acp.proxy.agent_session import STATE, Seat
from hitherto.acp.proxy.connection import ProxyDoor
from hitherto.acp.proxy.frames import Members, members_of, text_of, value_of, written
from hitherto.acp.proxy.recorder import part_of
from hitherto.acp.proxy.session import opens
from hitherto.engine import Event, Message, ToolEnded
from hitherto.errors import HithertoError, InvalidInput, SessionNotFound
from hitherto.ids import now_ms
from hitherto.model import Entry, Json, Part, Role, Session
from hitherto.service import Imported
from hitherto.sources.sync.recordings import note
from hitherto.values.filters import normal_cwd

LIST_SECONDS = 10.0
"""An agent that takes longer to list its sessions is left out."""
PAGES = 20
"""So many pages of an agent's list are looked at for one page of ours, or for one session."""


class Page(NamedTuple):
    """Rows of the agent's list, and where it goes on."""

    rows: list[Members]
    cursor: str | None


# Lists


async def unknown_rows(door: ProxyDoor, cwd: str | None, cursor: str | None) -> tuple[list[Json], str | None]:
    """A page of the sessions that the agent has and we have not, as a list of ours shows them, and where it goes on. An
    agent that cannot open them again, that refuses, or that takes too long has none."""
    life = door.agent.alive
    if life is None or not door.offer.imported or not opens(life):
        return [], None
    found: list[Json] = []
    with suppress(Refusal, HithertoError, TimeoutError):
        async with asyncio.timeout(LIST_SECONDS):
            async for page in _pages(life, cwd, cursor):
                found, cursor = await _unknown(door, page.rows), page.cursor
                if found:
                    return found, cursor
            return [], None
    return [], None


async def _pages(life: Life, cwd: str | None, cursor: str | None) -> AsyncIterator[Page]:
    """The agent's list from there, page by page. One that does not heed its own cursor ends."""
    asked: set[str | None] = set()
    while cursor not in asked and len(asked) < PAGES:
        asked.add(cursor)
        given = {"cwd": cwd, "cursor": cursor}
        params = {name: written(value) for name, value in given.items() if value is not None}
        result = await life.ask("session/list", params)
        cursor = text_of(result, "nextCursor")
        yield Page([row for row in _rows(result) if _is_in(row, cwd)], None if cursor in asked else cursor)
        if cursor is None:
            return


def _rows(result: Members) -> Iterator[Members]:
    listed = value_of(result.get("sessions"))
    for row in listed if isinstance(listed, list) else ():
        members = members_of(written(row))
        if members is not None and text_of(members, "sessionId") and _folder(members) is not None:
            yield members


def _folder(row: Members) -> str | None:
    with suppress(HithertoError):
        return normal_cwd(text_of(row, "cwd") or "")
    return None


def _is_in(row: Members, cwd: str | None) -> bool:
    """Whether a row is about a folder: not every agent heeds the filter."""
    return cwd is None or _folder(row) == cwd


async def _unknown(door: ProxyDoor, rows: list[Members]) -> list[Json]:
    named = {door.agent.named(text_of(row, "sessionId") or ""): row for row in rows}
    met = await door.sessions.catalog.known(door.who, list(named))
    return [
        {**{name: value_of(raw) for name, raw in row.items()}, "sessionId": id, "archived": False}
        for id, row in named.items()
        if id not in met
    ]


# One of them


async def noted(door: ProxyDoor, session_id: str) -> Session:
    """The session; one that only the agent has is noted first, without what was said in it. Raises `SessionNotFound`."""
    try:
        return await door.sessions.get(door.who, session_id)
    except SessionNotFound:
        life, own = door.agent.alive, door.agent.own(session_id)
        row = None if life is None or own is None or not opens(life) else await _row_of(life, own, None)
        if row is None:
            raise
    return await note(door.sessions, door.who, await _imported(door, session_id, row, _folder(row)))


async def adopted(door: ProxyDoor, session_id: str, setting: Members) -> tuple[Session, Members | None]:
    """The session, and what the agent answered if it had to open it for that: one that only the agent has is told by it,
    and kept as if it had been read from the agent's files. Raises `SessionNotFound`."""
    session: Session | None = None
    with suppress(SessionNotFound):
        session = await door.sessions.get(door.who, session_id)
        if session.source != door.agent.source or session.message_count:
            return session, None
    own = door.agent.own(session_id)
    if own is None:
        raise SessionNotFound(session_id)
    life = await door.agent.ready()
    if session is not None and not life.can("loadSession"):
        return session, None
    if not opens(life):
        raise SessionNotFound(session_id)
    return await _adopt(door, life, own, setting)


async def _adopt(door: ProxyDoor, life: Life, own: str, setting: Members) -> tuple[Session, Members]:
    session_id, cwd = door.agent.named(own), text_of(setting, "cwd")
    seat = Replayed(life, own, session_id)
    door.relay.seat(seat)
    method = "session/load" if life.can("loadSession") else "session/resume"
    try:
        params = {"mcpServers": Raw(b"[]"), **setting, "sessionId": written(own)}
        result = await life.ask(method, params)
    finally:
        seat.closed = True
    row = await _row_of(life, own, cwd) or {}
    imported = await _imported(door, session_id, row, _folder(row) or cwd)
    imported = replace(imported, title=imported.title or seat.title)
    entries = seat.entries(imported.updated_at)
    await door.sessions.transfer.sync(door.who, imported, entries, revive=True)
    return await door.sessions.get(door.who, session_id), result


async def _row_of(life: Life, own: str, cwd: str | None) -> Members | None:
    """What the agent lists of one of its sessions."""
    with suppress(Refusal, HithertoError, TimeoutError):
        async with asyncio.timeout(LIST_SECONDS):
            async for page in _pages(life, cwd, None):
                for row in page.rows:
                    if text_of(row, "sessionId") == own:
                        return row
    return None


async def _imported(door: ProxyDoor, session_id: str, row: Members, cwd: str | None) -> Imported:
    now = now_ms()
    at = now
    with suppress(InvalidInput, OverflowError):
        at = min(max(milliseconds(text_of(row, "updatedAt") or ""), 0), now)
    here = await placed_in(door, cwd) if cwd is not None else None
    return Imported(
        id=session_id,
        source=door.agent.source,
        created_at=at,
        updated_at=at,
        cwd=cwd,
        project=None if here is None else here["project"],
        title=text_of(row, "title"),
        agent_id=door.agent.name,
    )


USER = "user_message_chunk"
Told = tuple[Role, tuple[Part, ...]]


class Replayed(Seat):
    """See the module. The editor is told only how the session is: what was said in it comes from what is kept. `title` is
    what the agent calls it."""

    def __init__(self, life: Life, behind: str, ours: str) -> None:
        super().__init__(life, behind, ours)
        self.title: str | None = None
        self._told: list[Told] = []
        self._user: list[Part] = []
        self._message: Any = None

    def hear(self, update: Raw) -> Raw | None:
        if self.closed:
            return None
        fields = value_of(update)
        kind = fields.get("sessionUpdate") if isinstance(fields, dict) else None
        if kind == USER:
            self._hear_user(fields)
        elif kind in STATE:
            title = fields.get("title") if kind == "session_info_update" else None
            self.title = title if isinstance(title, str) else self.title
            return update
        else:
            self._end_user()
            self.collector.hear(update)
        return None

    def entries(self, at: int) -> list[Entry]:
        """All that was told. No agent says when; so it was at this time."""
        self._end_user()
        self._told += _told(self.collector.end())
        return [
            Entry(id=f"told-{number}", at=at, role=role, parts=parts)
            for number, (role, parts) in enumerate(self._told, 1)
        ]

    def _hear_user(self, fields: dict[str, Any]) -> None:
        message = fields.get("messageId")
        if message != self._message:
            self._end_user()
        self._told += _told(self.collector.end())
        self._message = message
        self._user.append(part_of(fields.get("content")))

    def _end_user(self) -> None:
        if self._user:
            self._told.append(("user", tuple(self._user)))
        self._user, self._message = [], None


def _told(events: Iterable[Event]) -> Iterator[Told]:
    for event in events:
        match event:
            case Message():
                yield "assistant", event.parts
            case ToolEnded():
                yield "tool", (event.result,)
