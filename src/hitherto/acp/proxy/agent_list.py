"""Sessions that only the agent has: how they are listed, and how one is imported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.agent.open import folder_project
from hitherto.acp.protocol.times import milliseconds
from hitherto.acp.proxy.agent_process import AgentProcess, Refusal
from hitherto.acp.proxy.agent_session import AgentSession
from hitherto.acp.proxy.connection import ProxyConnection
from hitherto.acp.proxy.frames import Members, members_of, raw_json, text_of, value_of
from hitherto.acp.proxy.recorder import STATE_UPDATES
from hitherto.acp.proxy.session import can_reopen
from hitherto.engine import Event, Heard, Message, ToolEnded
from hitherto.errors import HithertoError, InvalidInput, SessionNotFound
from hitherto.ids import now_ms
from hitherto.model import Entry, Json, Part, Role, Session
from hitherto.service import Imported
from hitherto.sources.sync.recordings import ensure_session
from hitherto.values.filters import normal_cwd

LIST_SECONDS = 10.0
"""An agent that takes longer to list its sessions is treated as having none."""
PAGES = 20
"""How many pages of the agent's list are read for one page of ours, or to find one session."""


class Page(NamedTuple):
    """Rows of the agent's list, and the cursor of the next page."""

    rows: list[Members]
    cursor: str | None


# Lists


async def unknown_rows(
    connection: ProxyConnection, cwd: str | None, cursor: str | None
) -> tuple[list[Json], str | None]:
    """A page of the sessions that only the agent has, as rows of our list, and the next cursor. Empty if the agent cannot
    open them again, refuses, or takes too long."""
    process = connection.agent.running
    if process is None or not connection.offer.imported or not can_reopen(process):
        return [], None
    found: list[Json] = []
    with suppress(Refusal, HithertoError, TimeoutError):
        async with asyncio.timeout(LIST_SECONDS):
            async for page in _pages(process, cwd, cursor):
                found, cursor = await _unknown_rows(connection, page.rows), page.cursor
                if found:
                    return found, cursor
            return [], None
    return [], None


async def _pages(process: AgentProcess, cwd: str | None, cursor: str | None) -> AsyncIterator[Page]:
    """The agent's list from this cursor, page by page. Stops if the agent repeats a cursor."""
    asked: set[str | None] = set()
    while cursor not in asked and len(asked) < PAGES:
        asked.add(cursor)
        given = {"cwd": cwd, "cursor": cursor}
        params = {name: raw_json(value) for name, value in given.items() if value is not None}
        result = await process.call("session/list", params)
        cursor = text_of(result, "nextCursor")
        yield Page([row for row in _rows(result) if _is_in(row, cwd)], None if cursor in asked else cursor)
        if cursor is None:
            return


def _rows(result: Members) -> Iterator[Members]:
    listed = value_of(result.get("sessions"))
    for row in listed if isinstance(listed, list) else ():
        members = members_of(raw_json(row))
        if members is not None and text_of(members, "sessionId") and _folder(members) is not None:
            yield members


def _folder(row: Members) -> str | None:
    with suppress(HithertoError):
        return normal_cwd(text_of(row, "cwd") or "")
    return None


def _is_in(row: Members, cwd: str | None) -> bool:
    """Whether a row is in this folder: not every agent applies the filter."""
    return cwd is None or _folder(row) == cwd


async def _unknown_rows(connection: ProxyConnection, rows: list[Members]) -> list[Json]:
    named = {connection.agent.session_id_of(text_of(row, "sessionId") or ""): row for row in rows}
    met = await connection.sessions.catalog.known(connection.who, list(named))
    return [
        {**{name: value_of(raw) for name, raw in row.items()}, "sessionId": id, "archived": False}
        for id, row in named.items()
        if id not in met
    ]


# One of them


async def ensure_noted(connection: ProxyConnection, session_id: str) -> Session:
    """The session. One that only the agent has is stored first, without its messages. Raises `SessionNotFound`."""
    try:
        return await connection.sessions.get(connection.who, session_id)
    except SessionNotFound:
        process, own_id = connection.agent.running, connection.agent.own_id_of(session_id)
        row = (
            None
            if process is None or own_id is None or not can_reopen(process)
            else await _row_of(process, own_id, None)
        )
        if row is None:
            raise
    return await ensure_session(
        connection.sessions, connection.who, await _imported(connection, session_id, row, _folder(row))
    )


async def ensure_imported(
    connection: ProxyConnection, session_id: str, setting: Members
) -> tuple[Session, Members | None]:
    """The session, and the agent's answer if it had to open it. A session that only the agent has is imported from its
    replay, as if it had been synced. Raises `SessionNotFound`."""
    session: Session | None = None
    with suppress(SessionNotFound):
        session = await connection.sessions.get(connection.who, session_id)
        if session.source != connection.agent.source or session.message_count:
            return session, None
    own_id = connection.agent.own_id_of(session_id)
    if own_id is None:
        raise SessionNotFound(session_id)
    process = await connection.agent.ready()
    if session is not None and not process.supports("loadSession"):
        return session, None
    if not can_reopen(process):
        raise SessionNotFound(session_id)
    return await _import_session(connection, process, own_id, setting)


async def _import_session(
    connection: ProxyConnection, process: AgentProcess, own_id: str, setting: Members
) -> tuple[Session, Members]:
    session_id, cwd = connection.agent.session_id_of(own_id), text_of(setting, "cwd")
    agent_session = ReplayRecorder(process, own_id, session_id)
    connection.relay.register(agent_session)
    method = "session/load" if process.supports("loadSession") else "session/resume"
    try:
        params = {"mcpServers": Raw(b"[]"), **setting, "sessionId": raw_json(own_id)}
        result = await process.call(method, params)
    finally:
        agent_session.closed = True
    row = await _row_of(process, own_id, cwd) or {}
    imported = await _imported(connection, session_id, row, _folder(row) or cwd)
    imported = replace(imported, title=imported.title or agent_session.title)
    entries = agent_session.entries(imported.updated_at)
    await connection.sessions.transfer.sync(connection.who, imported, entries, revive=True)
    return await connection.sessions.get(connection.who, session_id), result


async def _row_of(process: AgentProcess, own_id: str, cwd: str | None) -> Members | None:
    """The row of one of the agent's sessions."""
    with suppress(Refusal, HithertoError, TimeoutError):
        async with asyncio.timeout(LIST_SECONDS):
            async for page in _pages(process, cwd, None):
                for row in page.rows:
                    if text_of(row, "sessionId") == own_id:
                        return row
    return None


async def _imported(connection: ProxyConnection, session_id: str, row: Members, cwd: str | None) -> Imported:
    now = now_ms()
    at = now
    with suppress(InvalidInput, OverflowError):
        at = min(max(milliseconds(text_of(row, "updatedAt") or ""), 0), now)
    here = await folder_project(connection, cwd) if cwd is not None else None
    return Imported(
        id=session_id,
        source=connection.agent.source,
        created_at=at,
        updated_at=at,
        cwd=cwd,
        project=None if here is None else here["project"],
        title=text_of(row, "title"),
        agent_id=connection.agent.name,
    )


Replayed = tuple[Role, tuple[Part, ...], Json]


class ReplayRecorder(AgentSession):
    """Records the agent's replay of a session. The editor gets only updates of the session's state: messages are replayed
    from the store. `title` is the agent's title."""

    def __init__(self, process: AgentProcess, agent_session_id: str, session_id: str) -> None:
        super().__init__(process, agent_session_id, session_id)
        self.title: str | None = None

    def take_update(self, update: Raw, beside: Json | None = None) -> Raw | None:
        if self.closed:
            return None
        fields = self.collector.record(update, beside)
        kind = None if fields is None else fields.get("sessionUpdate")
        if fields is None or kind not in STATE_UPDATES:
            return None
        title = fields.get("title") if kind == "session_info_update" else None
        self.title = title if isinstance(title, str) else self.title
        return update

    def entries(self, at: int) -> list[Entry]:
        """All replayed entries, dated with this time: agents do not send times."""
        return [
            Entry(id=f"told-{number}", at=at, role=role, parts=parts, meta=meta)
            for number, (role, parts, meta) in enumerate(_replayed(self.collector.end()), 1)
        ]


def _replayed(events: Iterable[Event]) -> Iterator[Replayed]:
    for event in events:
        match event:
            case Message():
                yield "assistant", event.parts, event.meta
            case Heard():
                yield "user", event.parts, event.meta
            case ToolEnded():
                yield "tool", (event.result,), event.meta
