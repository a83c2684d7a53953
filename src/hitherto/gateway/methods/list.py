"""Lists of sessions, newest activity first: by cursor at any depth, or by offset, which costs what it skips."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.method import Call, Context
from hitherto.gateway.dispatch.schema import (
    Answer,
    ListLimit,
    Params,
    Row,
    RuntimeRow,
    Status,
    row,
    runtime_row,
)
from hitherto.gateway.methods.changes import with_changes
from hitherto.limits import LIST_PAGE
from hitherto.model import Condition, Filter, Session
from hitherto.model import Status as Doing
from hitherto.values.filters import metadata_condition
from hitherto.values.usage.sessions import SessionUsage

MOST_SKIPPED = 100_000
PAGES_LOOKED_AT = 1_000

Offset = Annotated[int, Meta(ge=0, le=MOST_SKIPPED)]
ChatKind = Literal["main", "directmessage", "group", "task", "subagent"]
_DOING: dict[Status, Doing] = {
    "idle": "idle",
    "running": "running",
    "error": "failed",
    "interrupted": "interrupted",
}


class ListFilter(Params, frozen=True, kw_only=True):
    """All that is given must hold. Archived sessions are listed only if asked for. `day` (`2026-11-15`, in UTC) asks for
    those in which something was said on that day; `project` may be the end of a name. `parent` is the key or id of the session
    that they come from, `kind` the kind of chat by their keys, and `metadata` what they have among their own, name by name."""

    agent_id: str | None = None
    channel: str | None = None
    status: Status | None = None
    project: str | None = None
    day: str | None = None
    parent: str | None = None
    kind: ChatKind | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class ListSessions(Params, frozen=True, kw_only=True):
    """`cursor` continues where an answer ended; it is bound to the filter."""

    filter: ListFilter | None = None
    limit: ListLimit = 50
    offset: Offset = 0
    cursor: str | None = None


class ListRuntime(Params, frozen=True, kw_only=True):
    """The same, with words of the title, a folder and tags to narrow by."""

    agent_id: str | None = None
    channel: str | None = None
    status: Status | None = None
    search: str | None = None
    cwd: str | None = None
    project: str | None = None
    day: str | None = None
    parent: str | None = None
    kind: ChatKind | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    limit: ListLimit = 50
    offset: Offset = 0
    cursor: str | None = None


class Rows(Answer, frozen=True, kw_only=True):
    """A page; `total` counts all that the filter finds, `cursor` is there if there is more."""

    sessions: tuple[Row, ...]
    total: int
    cursor: str | UnsetType = UNSET


class RuntimeRows(Answer, frozen=True, kw_only=True):
    """A page; `count` is its length."""

    sessions: tuple[RuntimeRow, ...]
    count: int
    total: int
    cursor: str | UnsetType = UNSET


async def list_sessions(call: Call[ListSessions]) -> Rows:
    """List your sessions, newest activity first."""
    given, wanted = call.params, call.params.filter or ListFilter()
    looked = await _filter(call, wanted)
    found, cursor = await _page(call.context, looked, given.limit, given.offset, given.cursor)
    total = await call.sessions.catalog.count(call.who, looked)
    used = await _numbers(call.context, found)
    rows = await with_changes(call, (row(session, used.get(session.id)) for session in found))
    return Rows(sessions=rows, total=total, cursor=cursor or UNSET)


async def list_runtime(call: Call[ListRuntime]) -> RuntimeRows:
    """List your sessions with all their fields, newest activity first."""
    given = call.params
    looked = replace(await _filter(call, given), text=given.search, cwd=given.cwd, tags=given.tags)
    found, cursor = await _page(call.context, looked, given.limit, given.offset, given.cursor)
    total = await call.sessions.catalog.count(call.who, looked)
    used = await _numbers(call.context, found)
    rows = await with_changes(call, (runtime_row(session, used.get(session.id)) for session in found))
    return RuntimeRows(sessions=rows, count=len(rows), total=total, cursor=cursor or UNSET)


async def _filter(call: Call[Any], given: ListFilter | ListRuntime) -> Filter:
    """What both lists narrow by."""
    project = given.project
    return Filter(
        agent_id=given.agent_id,
        channel=given.channel,
        status=None if given.status is None else _DOING.get(given.status),
        archived="only" if given.status == "archived" else "exclude",
        project=None if project is None else await call.sessions.projects.called(call.who, project),
        day=given.day,
        where=tuple([each async for each in _conditions(call, given)]),
    )


async def _conditions(call: Call[Any], given: ListFilter | ListRuntime) -> AsyncIterator[Condition]:
    """What is compared session by session."""
    if given.parent is not None:
        above = await call.sessions.channels.resolve(call.who, given.parent)
        yield Condition(field="parent", values=(above.id,))
    if given.kind is not None:
        yield Condition(field="kind", values=(given.kind,))
    for name, value in given.metadata.items():
        yield Condition(field="metadata", values=(metadata_condition(name, value),))


async def _numbers(context: Context, found: Sequence[Session]) -> dict[str, SessionUsage]:
    """What they used, as far as it was counted: a list counts nothing itself."""
    return await context.sessions.catalog.used(context.who, [each.id for each in found])


async def _page(
    context: Context, looked: Filter, limit: int, offset: int, cursor: str | None
) -> tuple[list[Session], str | None]:
    """As many as were asked for, unless there are no more: a page of the service may be shorter and not the last."""
    if offset and cursor is not None:
        raise InvalidInput("give offset or cursor, not both")
    found: list[Session] = []
    skipped = 0
    for _ in range(PAGES_LOOKED_AT):
        most = min(offset - skipped, LIST_PAGE) if skipped < offset else limit - len(found)
        page = await context.sessions.catalog.find(context.who, looked, cursor=cursor, limit=most)
        cursor = page.cursor
        if skipped < offset:
            skipped += len(page.sessions)
        else:
            found += page.sessions
        if cursor is None or len(found) == limit:
            break
    return found, cursor
