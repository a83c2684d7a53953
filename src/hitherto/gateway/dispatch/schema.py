"""What goes over the wire: the parts that the answers of many methods share, and how they are made. Pure.

Times are milliseconds since the epoch. What is not known is null; what does not apply is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hitherto import model
from hitherto.errors import InvalidKey
from hitherto.limits import HISTORY_PAGE, LARGEST_NUMBER, LIST_PAGE
from hitherto.model import (
    EPISODE,
    Entry,
    Part,
    QueueMode,
    Role,
    Session,
    Text,
    ToolCall,
    ToolResult,
    plain_text,
)
from hitherto.presentation import formats, labels
from hitherto.service.history.inbox import QUEUE_MODE, queue_mode_of
from hitherto.service.records import is_erased
from hitherto.values.keys import parse_key
from hitherto.values.usage.sessions import SessionUsage

SUMMARY = "[Compacted summary from "
MODEL = "model"
"""The key of a session's meta under which stands the model that answers in it."""

Status = Literal["idle", "running", "error", "interrupted", "archived"]
_STATUSES: dict[model.Status, Status] = {
    "idle": "idle",
    "running": "running",
    "waiting": "running",
    "failed": "error",
    "interrupted": "interrupted",
}

Number = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
ListLimit = Annotated[int, Meta(ge=1, le=LIST_PAGE)]
HistoryLimit = Annotated[int, Meta(ge=1, le=HISTORY_PAGE)]
Revision = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]


# Parameters


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters, by name; one that the method does not know is refused."""


class Named(Params, frozen=True, kw_only=True):
    """One of the caller's sessions, by its key (or its id in place of the key), or by its id."""

    session_key: str | None = None
    session_id: str | None = None


class Writing(Params, frozen=True, kw_only=True):
    """The same request with the same idempotency key is done once, and answered alike for seven days."""

    idempotency_key: str | None = None


class NamedWriting(Named, frozen=True, kw_only=True):
    """A change of one session, done once for an idempotency key."""

    idempotency_key: str | None = None


class Overwriting(NamedWriting, frozen=True, kw_only=True):
    """A change that is refused if the session has changed since the caller read this revision."""

    expected_revision: Revision | None = None


# Answers


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""


class Identity(Answer, frozen=True, kw_only=True):
    """Who speaks in a session."""

    role: str | None
    identity_id: str | None
    source_channel: str | None


class ChangeCounts(Answer, frozen=True, kw_only=True):
    """How many lines the edits of a session and its subagents added and removed, and in how many files."""

    added: int
    removed: int
    files: int


class Spent(Answer, frozen=True, kw_only=True):
    """`cost_usd` is what is known of the cost: `reported_usd` by agents and providers, `estimated_usd` by the prices of the day; it is
    null if nothing is. `unpriced_requests` have no known price."""

    requests: int
    cost_usd: float | None
    reported_usd: float
    estimated_usd: float
    unpriced_requests: int


class Used(Spent, frozen=True, kw_only=True):
    """What was used. `input_tokens` includes `cache_read_tokens` and `cache_write_tokens`."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class Numbers(Spent, frozen=True, kw_only=True):
    """What the whole session used, with what was compacted or rewound; tokens are null if no answer says how many.

    `cost_status`: `complete` if the cost of every request was reported, `estimated` if some of it is an estimate,
    `partial_missing_price` if some requests have no known price, else `unknown`. `messages` are those of the
    conversation, `context_messages` those that the model sees. `context_tokens` is the size of the context now,
    an estimate if `context_estimated`; `window` what the model sees at most, assumed if `window_assumed`. `failed` says that
    the last turn failed; `tool_failures` counts tools. `current` is false while something is not counted yet.
    """

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_status: str
    messages: int
    context_messages: int
    context_tokens: int
    context_estimated: bool
    model: str | None
    window: int
    window_assumed: bool
    duration_ms: int
    tool_failures: int
    failed: bool
    current: bool


class Row(Answer, frozen=True, kw_only=True):
    """A session in a list. One without a routing key shows its id as `session_key`. `message_count` and `token_count` are of the
    context; `usage` says what the session used, null until it was counted; `changes` counts the lines that its edits added and removed,
    and their files. Both are left out of events."""

    session_key: str
    agent_id: str | None
    channel: str | None
    message_count: int
    token_count: int | None
    created_at: int
    updated_at: int
    session_id: str
    title: str | None
    status: Status
    revision: int
    changes: ChangeCounts | UnsetType = UNSET
    usage: Numbers | UnsetType | None = UNSET


class SessionInfo(Row, frozen=True, kw_only=True):
    """More about a session."""

    last_compaction: int | None
    identity: Identity
    cwd: str | None
    project: str | None
    branch: str | None
    tags: tuple[str, ...]
    pinned: bool
    parent: str | None
    source: str | None
    cost_usd: float | None


class Details(SessionInfo, frozen=True, kw_only=True):
    """All about a session but what was said. `model` and `metadata` are what `sessions.patch` has put there."""

    model: str | None
    queue_mode: QueueMode
    metadata: dict[str, Any]


class RuntimeRow(SessionInfo, frozen=True, kw_only=True):
    """The same under the names of the runtime's own methods, beside ours."""

    key: str
    session_type: str | None
    topic: str | None
    last_active_at: int


class Call(Answer, frozen=True, kw_only=True):
    """A tool that the assistant has called."""

    id: str
    name: str
    input: Any


class Usage(Answer, frozen=True, kw_only=True):
    """What was used, as far as the provider says."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None


class Sender(Answer, frozen=True, kw_only=True):
    """Who wrote a message of a chat."""

    id: str
    name: str | None


class Message(Answer, frozen=True, kw_only=True):
    """One message: `content` is its text. What is more than text, calls and results stands in `parts`. Who wrote it, what it
    replies to and what its gateway notes about it are there if `session.append` or `session.send` was given them. `episode`: it is
    the heading of one, and why the one before ended."""

    role: Role
    content: str
    timestamp: int
    message_id: str
    tool_calls: tuple[Call, ...] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    model: str | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    parts: tuple[Any, ...] | UnsetType = UNSET
    erased: bool | UnsetType = UNSET
    sender: Sender | UnsetType = UNSET
    reply_to: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    episode: str | UnsetType = UNSET


def key_of(session: Session) -> str:
    """The name by which a session is shown, and found again."""
    return session.key or session.id


def status_of(session: Session) -> Status:
    """What the session is doing."""
    return "archived" if session.archived else _STATUSES[session.status]


def tokens_of(session: Session) -> int | None:
    """The tokens of the context; nothing has none."""
    return session.token_count if session.message_count else 0


def numbers(used: SessionUsage | None) -> Numbers | None:
    """What a session used, if it was counted."""
    return None if used is None else Numbers(**used.fields)


def row(session: Session, used: SessionUsage | None) -> Row:
    """A session as a list shows it."""
    return Row(**_row(session), usage=numbers(used))


def session_info(session: Session) -> SessionInfo:
    """A session as events show it."""
    return SessionInfo(**_row(session), **_details(session))


def details(session: Session, used: SessionUsage | None) -> Details:
    """A session by itself."""
    kept = {
        name: value
        for name, value in session.meta.items()
        if name not in (MODEL, QUEUE_MODE) and not name.startswith(model.RESERVED)
    }
    return Details(
        **_row(session),
        **_details(session),
        usage=numbers(used),
        model=session.meta.get(MODEL),
        queue_mode=queue_mode_of(session),
        metadata=kept,
    )


def runtime_row(session: Session, used: SessionUsage | None) -> RuntimeRow:
    """A session as the runtime's own methods show it."""
    return RuntimeRow(
        **_row(session),
        **_details(session),
        usage=numbers(used),
        key=key_of(session),
        session_type=_type(session),
        topic=session.title,
        last_active_at=session.updated_at,
    )


def _row(session: Session) -> dict[str, Any]:
    return {
        "session_key": key_of(session),
        "agent_id": session.agent_id,
        "channel": session.channel,
        "message_count": session.message_count,
        "token_count": tokens_of(session),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "session_id": session.id,
        "title": session.title,
        "status": status_of(session),
        "revision": session.revision,
    }


def _details(session: Session) -> dict[str, Any]:
    who = session.identity or model.Identity()
    return {
        "last_compaction": session.last_compaction,
        "identity": Identity(role=who.role, identity_id=who.identity_id, source_channel=who.source_channel),
        "cwd": session.cwd,
        "project": session.project,
        "branch": session.branch,
        "tags": session.tags,
        "pinned": session.pinned,
        "parent": session.parent,
        "source": session.source,
        "cost_usd": session.cost,
    }


def _type(session: Session) -> str | None:
    try:
        return None if session.key is None else str(parse_key(session.key).kind)
    except InvalidKey:
        return None


# Messages


def message(entry: Entry) -> Message:
    """An entry as a message."""
    if entry.meta.get("compaction") or EPISODE in entry.meta:
        return _summary(entry)
    results = [part for part in entry.parts if isinstance(part, ToolResult)]
    return Message(
        role=entry.role,
        content="\n".join(_texts(entry.parts)),
        timestamp=entry.at,
        message_id=entry.id,
        tool_calls=_calls(entry) if entry.role == "assistant" else UNSET,
        tool_call_id=results[0].id if results else UNSET,
        is_error=True if any(result.is_error for result in results) else UNSET,
        model=UNSET if entry.model is None else entry.model,
        usage=UNSET if entry.usage is None else usage(entry.usage),
        parts=UNSET if _fits_message(entry, results) else entry.parts,
        erased=True if is_erased(entry) else UNSET,
        **_origin(entry.origin),
    )


def _origin(origin: model.Origin | None) -> dict[str, Any]:
    if origin is None:
        return {}
    known: dict[str, Any] = {}
    if origin.sender is not None:
        known["sender"] = Sender(id=origin.sender.id, name=origin.sender.name)
    if origin.reply_to is not None:
        known["reply_to"] = origin.reply_to
    return {**known, "metadata": origin.metadata} if origin.metadata else known


def usage(given: model.Usage) -> Usage:
    """What was used."""
    return Usage(
        input_tokens=given.input,
        output_tokens=given.output,
        cache_read_tokens=given.cache_read,
        cache_write_tokens=given.cache_write,
        cost_usd=given.cost,
    )


def _summary(entry: Entry) -> Message:
    """The summary of a compaction, whoever wrote it: it says what it is and of which day. Likewise the heading of an episode."""
    text = plain_text(entry)
    if heading := labels.episode(entry):
        said = f"[{heading}]\n{text}".rstrip()
        reason = str(entry.meta[EPISODE])
        return Message(role="system", content=said, timestamp=entry.at, message_id=entry.id, episode=reason)
    if not text.startswith(SUMMARY):
        text = f"{SUMMARY}{formats.day(entry.at)}]\n{text}"
    return Message(role="system", content=text, timestamp=entry.at, message_id=entry.id)


def _calls(entry: Entry) -> tuple[Call, ...]:
    return tuple(
        Call(id=part.id, name=part.name, input=part.input)
        for part in entry.parts
        if isinstance(part, ToolCall)
    )


def _fits_message(entry: Entry, results: list[ToolResult]) -> bool:
    """Whether text, calls and the one result say all that the entry holds."""
    plain = all(isinstance(part, Text | ToolCall | ToolResult) for part in entry.parts)
    inner = all(isinstance(part, Text) for result in results for part in result.content)
    return plain and inner and len(results) <= 1


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            yield from _texts(part.content)
