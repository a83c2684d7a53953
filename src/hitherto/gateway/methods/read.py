"""Looking at one session: what is known of it, what was said, what it cost."""

from __future__ import annotations

import msgspec
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
from hitherto.limits import HISTORY_PAGE
from hitherto.model import Entry, HistoryPage, Usage, View, decode_entry

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


class Spent(Answer, frozen=True, kw_only=True):
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
    """All about one session but what was said."""
    return details(call.session)


async def history(call: Call[GetHistory]) -> History:
    """The newest messages of the context, which is what a model sees, or with `view` of the whole conversation."""
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
    """The newest messages of the context."""
    page = await _newest(call, call.params.limit, PAGE_BYTES)
    messages = tuple(map(message, page.entries))
    return CountedHistory(session_key=key_of(call.session), messages=messages, count=len(messages))


async def preview(call: Call[GetPreview]) -> Preview:
    """The newest messages, each shortened, and what a list shows of the session."""
    page = await _newest(call, call.params.limit, PREVIEW_BYTES)
    return Preview(
        session_key=key_of(call.session),
        meta=runtime_row(call.session),
        messages=tuple(_short(message(entry)) for entry in page.entries),
        message_count=call.session.message_count,
    )


async def usage(call: Call[Named]) -> Spent:
    """What the session has used: all of it, also what was compacted since."""
    spent = _Sums()
    last: str | None = None
    while True:
        page = await call.sessions.history(
            call.who,
            call.session.id,
            view="conversation",
            after=last,
            limit=HISTORY_PAGE,
            max_bytes=PAGE_BYTES,
        )
        spent.add(page)
        if (last := page.next) is None:
            break
    session = call.session
    return Spent(
        session_key=key_of(session),
        tokens=spent.tokens,
        input_tokens=spent.input,
        output_tokens=spent.output,
        messages=spent.messages,
        created_at=session.created_at,
        last_active_at=session.updated_at,
        cost_usd=spent.cost,
        cost_status=spent.status,
    )


async def _newest(call: Call[RuntimeHistory] | Call[GetPreview], limit: int, most: int) -> HistoryPage:
    return await call.sessions.history(call.who, call.session.id, last=True, limit=limit, max_bytes=most)


class _Used(msgspec.Struct):
    """As much of an entry as is needed."""

    usage: Usage | None = None
    tokens: int | None = None


_used = msgspec.json.Decoder(_Used)


class _Sums:
    """Sums of what is known; None where nothing is."""

    def __init__(self) -> None:
        self.messages = 0
        self._tokens: int | None = None
        self.input: int | None = None
        self.output: int | None = None
        self.cost: float | None = None
        self._answers = self._priced = 0

    @property
    def tokens(self) -> int | None:
        """Nothing has none."""
        return self._tokens if self.messages else 0

    @property
    def status(self) -> str:
        if self.cost is None:
            return "unknown"
        return "complete" if self._priced == self._answers else "partial_missing_price"

    def add(self, page: HistoryPage) -> None:
        for raw in (raw for number, raw in enumerate(page.raw) if number not in page.marks):
            told = _told(raw)
            self.messages += 1
            self._tokens = _sum(self._tokens, told.tokens)
            if (used := told.usage) is None:
                continue
            self._answers += 1
            self.input = _sum(self.input, used.input)
            self.output = _sum(self.output, used.output)
            if used.cost is not None:
                self._priced += 1
                self.cost = used.cost + (self.cost or 0.0)


def _told(raw: bytes) -> _Used | Entry:
    try:
        return _used.decode(raw)
    except msgspec.DecodeError:  # lone surrogates
        return decode_entry(raw)


def _sum(one: int | None, other: int | None) -> int | None:
    return one if other is None else other + (one or 0)


def _short(given: Message) -> Message:
    text = given.content
    if len(text) > PREVIEW_CHARS:
        text = text[: PREVIEW_CHARS - 1] + "…"
    return Message(role=given.role, content=text, timestamp=given.timestamp, message_id=given.message_id)
