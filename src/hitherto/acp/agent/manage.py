"""Methods about sessions that need not be open: lists, titles, archives, deletion."""

from __future__ import annotations

from contextlib import suppress
from typing import TypedDict

from hitherto.acp.agent.connection import Connection
from hitherto.acp.agent.open import folder_project
from hitherto.acp.protocol.params import ListSessions, NamedSession, SetTitle
from hitherto.acp.protocol.session_rows import row
from hitherto.acp.protocol.times import milliseconds
from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Filter, Json, Page
from hitherto.rpc import frames
from hitherto.values.titles import clean_title

PAGE = 50
PAGE_BYTES = 256 * 1024
PAGES_LOOKED_AT = 20


class _Place(TypedDict):
    cwd: str | None
    project: str | None


async def list_sessions(connection: Connection, params: ListSessions) -> bytes:
    """`session/list`: a page of sessions, newest activity first, bounded in rows and in bytes."""
    given = Filter(
        **await _place(connection, params),
        native=connection.offer.native,
        text=params.search,
        archived=params.archived or "exclude",
        subagents=False,
        created_after=None if params.created_after is None else milliseconds(params.created_after),
    )
    page = await _page(connection, given, params.cursor, PAGE)
    rows = await _rows(connection, page)
    if (fitting := _fitting(rows)) < len(rows):
        page = await _page(connection, given, params.cursor, fitting)
        rows = await _rows(connection, page)
    more = b"" if page.cursor is None else b',"nextCursor":' + frames.encode(page.cursor)
    return b'{"sessions":[%b]%b}' % (b",".join(rows), more)


async def _place(connection: Connection, params: ListSessions) -> _Place:
    """The folder and the project that a list is narrowed to. With `worktrees`, all that belong to the folder's repository."""
    project = params.project and await connection.sessions.projects.called(connection.who, params.project)
    if params.cwd is None:
        return _Place(cwd=None, project=project)
    folder = await connection.folder(params.cwd)
    if params.worktrees and connection.is_here:
        return _Place(cwd=None, project=(await folder_project(connection, folder))["project"])
    return _Place(cwd=folder, project=project)


async def delete_session(connection: Connection, params: NamedSession) -> Json:
    """`session/delete`: delete for good; an unknown id succeeds. A turn of it in another process ends by itself, because
    nothing of it can be stored."""
    sessions = connection.sessions
    async with connection.session_lock(params.session_id):
        await connection.detach(params.session_id)
        with suppress(SessionNotFound):
            await sessions.delete(connection.who, params.session_id)
    return {}


async def archive_session(connection: Connection, params: NamedSession) -> Json:
    """`session/archive`: close it and leave it out of lists. A running turn ends first, in whichever process it runs."""
    sessions = connection.sessions
    async with connection.session_lock(params.session_id):
        await sessions.get(connection.who, params.session_id)
        await connection.detach(params.session_id)
        await sessions.turns.end(connection.who, params.session_id)
        await sessions.archive(connection.who, params.session_id)
    return {}


async def unarchive_session(connection: Connection, params: NamedSession) -> Json:
    """`session/unarchive`: back in lists, not opened."""
    await connection.sessions.archive(connection.who, params.session_id, archived=False)
    return {}


async def set_title(connection: Connection, params: SetTitle) -> Json:
    """`session/set_title`: the user's title, which no automatic one replaces."""
    sessions = connection.sessions
    await sessions.get(connection.who, params.session_id)
    if not clean_title(params.title):
        raise InvalidInput("a title cannot be empty")
    session = await sessions.rename(connection.who, params.session_id, params.title)
    return {"title": session.title}


async def session_status(connection: Connection, params: NamedSession) -> Json:
    """`session/status`: open if anybody has it open or a turn of it runs, in any process; else saved. That its last turn was
    interrupted stands beside that."""
    sessions, who, session_id = connection.sessions, connection.who, params.session_id
    is_open = (
        await sessions.leases.current(who, session_id) is not None
        or session_id in connection.attached
        # This process knows its own sessions.
        or await sessions.presence.attended(who, session_id, besides=connection.holder)
    )
    cut_off = (await sessions.get(who, session_id)).status == "interrupted"
    meta = {"_meta": {"hitherto/status": "interrupted"}} if cut_off else {}
    return {"status": "open" if is_open else "saved", **meta}


async def _page(connection: Connection, given: Filter, cursor: str | None, limit: int) -> Page:
    """A page with at least one row, unless the next pages have none either."""
    page = await connection.sessions.find(connection.who, given, cursor=cursor, limit=limit)
    for _ in range(PAGES_LOOKED_AT):
        if page.cursor is None or page.sessions:
            break
        page = await connection.sessions.find(connection.who, given, cursor=page.cursor, limit=limit)
    return page


async def _rows(connection: Connection, page: Page) -> list[bytes]:
    ids = [session.id for session in page.sessions]
    used = await connection.sessions.spending.numbers(connection.who, ids)
    return [frames.encode(row(session, used.get(session.id))) for session in page.sessions]


def _fitting(rows: list[bytes]) -> int:
    """How many of the first rows fit a page; one always does."""
    size = 0
    for count, each in enumerate(rows):
        size += len(each)
        if size > PAGE_BYTES and count:
            return count
    return len(rows)
