"""Looking at one session: what is known of it, what was said, what it cost."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import (
    Answer,
    Details,
    HistoryLimit,
    Message,
    Named,
    RuntimeRow,
    details,
    key_of,
    message,
    runtime_row,
)
from hitherto.model import HistoryPage, View

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


class SessionUsage(Answer, frozen=True, kw_only=True):
    """`cost_status`: `complete` if every answer has a price, `partial_missing_price` if some have, else `unknown`."""

    session_key: str
    tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    messages: int
    created_at: int
    last_active_at: int
    cost_usd: float | None
    cost_status: str


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


async def usage(call: Call[Named]) -> SessionUsage:
    """Get the total usage of a session, including messages that were compacted."""
    session = call.session
    used = await call.sessions.usage(call.who, session.id)
    return SessionUsage(
        session_key=key_of(session),
        tokens=used.tokens,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        messages=used.messages,
        created_at=session.created_at,
        last_active_at=session.updated_at,
        cost_usd=used.cost,
        cost_status=used.cost_status,
    )


async def _newest(call: Call[RuntimeHistory] | Call[GetPreview], limit: int, most: int) -> HistoryPage:
    return await call.sessions.history(call.who, call.session.id, last=True, limit=limit, max_bytes=most)


def _short(given: Message) -> Message:
    text = given.content
    if len(text) > PREVIEW_CHARS:
        text = text[: PREVIEW_CHARS - 1] + "…"
    return Message(role=given.role, content=text, timestamp=given.timestamp, message_id=given.message_id)
