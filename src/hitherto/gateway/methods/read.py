"""Looking at one session: what is known of it, what was said, what it cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import (
    Answer,
    Details,
    HistoryLimit,
    Message,
    Named,
    Numbers,
    Params,
    RuntimeRow,
    Used,
    details,
    key_of,
    message,
    runtime_row,
)
from hitherto.gateway.methods.changes import with_changes
from hitherto.model import HistoryPage, View
from hitherto.service.admin import spending
from hitherto.values.usage import sessions as values

PAGE_BYTES = 16 * 1024 * 1024
"""An answer holds no more than about this of stored messages, however many were asked for; at least one."""
PREVIEW_BYTES = 4 * 1024 * 1024
"""So much is read for a preview, of which little is shown."""
PREVIEW_CHARS = 200


class GetHistory(Named, frozen=True, kw_only=True):
    """`before` and `after` are ids of messages; without them, the newest come. With `checkpoint_id`, as it was then."""

    limit: HistoryLimit = 100
    before: str | None = None
    after: str | None = None
    view: View = "context"
    checkpoint_id: str | None = None


class RuntimeHistory(Named, frozen=True, kw_only=True):
    """How many of the newest."""

    limit: HistoryLimit = 100


class GetPreview(Named, frozen=True, kw_only=True):
    """How many of the newest."""

    limit: HistoryLimit = 10


class History(Answer, frozen=True, kw_only=True):
    """Messages in the order in which they were said; `previous` and `next` are there if there are more that way, to be
    given as `before` and `after`."""

    session_key: str
    messages: tuple[Message, ...]
    total: int
    token_count: int | None
    previous: str | UnsetType = UNSET
    next: str | UnsetType = UNSET


class CountedHistory(Answer, frozen=True, kw_only=True):
    """The newest messages."""

    session_key: str
    messages: tuple[Message, ...]
    count: int


class Preview(Answer, frozen=True, kw_only=True):
    """The newest messages, each shortened, and what is known of the session."""

    session_key: str
    meta: RuntimeRow
    messages: tuple[Message, ...]
    message_count: int


class UsageOf(Named, frozen=True, kw_only=True):
    """With `turns`, also the usage of each turn, of at most the newest 1,000."""

    turns: bool = False


class TurnUsed(Used, frozen=True, kw_only=True):
    """A turn: the id of its prompt, when it began, how long it took, and whether it failed."""

    prompt: str
    at: int
    duration_ms: int
    messages: int
    tool_failures: int
    failed: bool


class SessionUsage(Numbers, frozen=True, kw_only=True):
    """What the whole session used. `tokens` is a sum of what was said in the conversation."""

    session_key: str
    tokens: int | None
    created_at: int
    last_active_at: int
    turns: tuple[TurnUsed, ...] | UnsetType = UNSET


class GetReport(Params, frozen=True, kw_only=True):
    """Days are written like `2026-11-15`, both included, in `zone`: `Europe/Berlin` or `+02:00`. One row for each `period`, each `by`, or both."""

    since: str
    until: str
    period: Literal["day", "week", "month"] | None = "day"
    by: Literal["project", "agent", "model", "branch", "session"] | None = None
    zone: Annotated[str, Meta(max_length=64)] = "UTC"
    project: str | None = None


class UsageRow(Used, frozen=True, kw_only=True):
    """`name` is null for what belongs to none that is known."""

    period: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET
    title: str | UnsetType = UNSET
    sessions: int


class UsageReport(Answer, frozen=True, kw_only=True):
    """`complete` is false while messages are not counted yet: ask again."""

    since: str
    until: str
    zone: str
    rows: tuple[UsageRow, ...]
    total: Used
    sessions: int
    complete: bool


async def get(call: Call[Named]) -> Details:
    """Get one session, without its messages."""
    (found,) = await with_changes(call, [details(call.session, await _numbers(call))])
    return found


async def history(call: Call[GetHistory]) -> History:
    """Get the newest messages of the context (what the model sees) or, with `view`, of the whole conversation."""
    given = call.params
    page = await call.sessions.history(
        call.who,
        call.session.id,
        view=given.view,
        checkpoint=given.checkpoint_id,
        before=given.before,
        after=given.after,
        last=given.before is None and given.after is None,
        limit=given.limit,
        max_bytes=PAGE_BYTES,
    )
    return History(
        session_key=key_of(call.session),
        messages=tuple(map(message, page.entries)),
        total=page.total,
        token_count=page.token_count if page.total else 0,
        previous=page.previous or UNSET,
        next=page.next or UNSET,
    )


async def runtime_history(call: Call[RuntimeHistory]) -> CountedHistory:
    """Get the newest messages of the context."""
    page = await _newest(call, call.params.limit, PAGE_BYTES)
    messages = tuple(map(message, page.entries))
    return CountedHistory(session_key=key_of(call.session), messages=messages, count=len(messages))


async def preview(call: Call[GetPreview]) -> Preview:
    """Get the newest messages, each shortened, and the session as lists show it."""
    page = await _newest(call, call.params.limit, PREVIEW_BYTES)
    return Preview(
        session_key=key_of(call.session),
        meta=runtime_row(call.session, await _numbers(call)),
        messages=tuple(_short(message(entry)) for entry in page.entries),
        message_count=call.session.message_count,
    )


async def usage(call: Call[UsageOf]) -> SessionUsage:
    """Get what a session used and cost, including what was compacted or rewound, and the size of its context."""
    session = call.session
    found = await call.sessions.usage(call.who, session.id)
    return SessionUsage(
        session_key=key_of(session),
        tokens=found.tokens if found.messages else 0,
        created_at=session.created_at,
        last_active_at=session.updated_at,
        turns=tuple(TurnUsed(**turn.fields) for turn in found.turns) if call.params.turns else UNSET,
        **found.fields,
    )


async def report(call: Call[GetReport]) -> UsageReport:
    """Get what all your sessions used and cost, by day, week or month and by project, agent, model, branch or session."""
    given = call.params
    found = await call.sessions.spending.report(
        call.who,
        since_day=given.since,
        until_day=given.until,
        period=given.period,
        by=given.by,
        zone=given.zone,
        project=given.project,
    )
    return UsageReport(
        since=found.since,
        until=found.until,
        zone=found.zone,
        rows=tuple(_row(row, named=given.by is not None) for row in found.rows),
        total=Used(**found.total.fields),
        sessions=found.sessions,
        complete=found.complete,
    )


def _row(found: spending.UsageRow, *, named: bool) -> UsageRow:
    return UsageRow(
        period=found.period or UNSET,
        name=found.name if named else UNSET,
        title=found.title or UNSET,
        sessions=found.sessions,
        **found.usage.fields,
    )


async def _numbers(call: Call[Any]) -> values.SessionUsage | None:
    """What the session used, counted now if that takes no long time."""
    found = await call.sessions.spending.numbers(call.who, [call.session.id])
    return found.get(call.session.id)


async def _newest(call: Call[RuntimeHistory] | Call[GetPreview], limit: int, most: int) -> HistoryPage:
    return await call.sessions.history(call.who, call.session.id, last=True, limit=limit, max_bytes=most)


def _short(given: Message) -> Message:
    text = given.content
    if len(text) > PREVIEW_CHARS:
        text = text[: PREVIEW_CHARS - 1] + "…"
    return Message(role=given.role, content=text, timestamp=given.timestamp, message_id=given.message_id)
