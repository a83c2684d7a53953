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
    Params,
    RuntimeRow,
    details,
    key_of,
    message,
    runtime_row,
)
from hitherto.model import HistoryPage, View
from hitherto.service.admin import spending
from hitherto.service.admin.usage import TurnUsage
from hitherto.values.requests import UsageSum

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


class Used(Answer, frozen=True, kw_only=True):
    """`input_tokens` includes `cache_read_tokens` and `cache_write_tokens`. `cost_usd` is what is known: `reported_usd` by agents
    and providers, `estimated_usd` by the prices of the day; it is null if nothing is. `unpriced_requests` have no known price."""

    requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    reported_usd: float
    estimated_usd: float
    unpriced_requests: int


class TurnUsed(Used, frozen=True, kw_only=True):
    """A turn: the id of its prompt, when it began, and how long it took."""

    prompt: str
    at: int
    duration_ms: int
    messages: int
    tool_failures: int


class SessionUsage(Answer, frozen=True, kw_only=True):
    """What the whole session used, with what was compacted or rewound; `input_tokens` includes the cache.

    `cost_status`: `complete` if the cost of every request was reported, `estimated` if some of it is an estimate,
    `partial_missing_price` if some requests have no known price, else `unknown`. `messages` are those of the
    conversation, `context_messages` those that the model sees. `context_tokens` is the size of the context now,
    an estimate if `context_estimated`; `window` what the model sees at most, assumed if `window_assumed`.
    """

    session_key: str
    tokens: int | None
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    messages: int
    context_messages: int
    context_tokens: int
    context_estimated: bool
    model: str | None
    window: int
    window_assumed: bool
    tool_failures: int
    duration_ms: int
    created_at: int
    last_active_at: int
    cost_usd: float | None
    reported_usd: float
    estimated_usd: float
    unpriced_requests: int
    cost_status: str
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
    return details(call.session)


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
        meta=runtime_row(call.session),
        messages=tuple(_short(message(entry)) for entry in page.entries),
        message_count=call.session.message_count,
    )


async def usage(call: Call[UsageOf]) -> SessionUsage:
    """Get what a session used and cost, including what was compacted or rewound, and the size of its context."""
    session = call.session
    found = await call.sessions.usage(call.who, session.id)
    fields = _used(found.usage)
    if not found.usage.requests:
        fields |= dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"))
    return SessionUsage(
        session_key=key_of(session),
        tokens=found.tokens if found.messages else 0,
        messages=found.messages,
        context_messages=found.context_messages,
        context_tokens=found.context_tokens,
        context_estimated=found.context_estimated,
        model=found.model,
        window=found.window,
        window_assumed=found.window_assumed,
        tool_failures=found.tool_failures,
        duration_ms=found.duration_ms,
        created_at=session.created_at,
        last_active_at=session.updated_at,
        cost_status=found.usage.cost_status,
        turns=tuple(map(_turn, found.turns)) if call.params.turns else UNSET,
        **fields,
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
        total=Used(**_used(found.total)),
        sessions=found.sessions,
        complete=found.complete,
    )


def _used(found: UsageSum) -> dict[str, Any]:
    return {
        "requests": found.requests,
        "input_tokens": found.input,
        "output_tokens": found.output,
        "cache_read_tokens": found.cache_read,
        "cache_write_tokens": found.cache_write,
        "cost_usd": found.cost,
        "reported_usd": found.reported,
        "estimated_usd": found.estimated,
        "unpriced_requests": found.unpriced,
    }


def _turn(found: TurnUsage) -> TurnUsed:
    return TurnUsed(
        prompt=found.prompt,
        at=found.at,
        duration_ms=found.duration_ms,
        messages=found.messages,
        tool_failures=found.tool_failures,
        **_used(found.usage),
    )


def _row(found: spending.UsageRow, *, named: bool) -> UsageRow:
    return UsageRow(
        period=found.period or UNSET,
        name=found.name if named else UNSET,
        title=found.title or UNSET,
        sessions=found.sessions,
        **_used(found.usage),
    )


async def _newest(call: Call[RuntimeHistory] | Call[GetPreview], limit: int, most: int) -> HistoryPage:
    return await call.sessions.history(call.who, call.session.id, last=True, limit=limit, max_bytes=most)


def _short(given: Message) -> Message:
    text = given.content
    if len(text) > PREVIEW_CHARS:
        text = text[: PREVIEW_CHARS - 1] + "…"
    return Message(role=given.role, content=text, timestamp=given.timestamp, message_id=given.message_id)
