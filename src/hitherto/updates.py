"""The updates that a caller gets while a turn runs, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from hitherto.engine import Context, Elicit, Notice, StopReason, ToolProgress
from hitherto.model import Compaction, Entry, ToolCall, Usage, Value
from hitherto.permissions import Choice, Verdict


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a message; `entry` is the id that it will be stored under."""

    entry: str
    text: str
    thought: bool = False


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of this turn is stored: the prompt, a message of the assistant, a tool's result."""

    entry: Entry


class Queued(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt waits in the session's inbox, at this place; `entry` is the id that it will be stored under."""

    entry: str
    place: int


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """The session got an automatic title."""

    title: str


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """A summary is being written, under the id that it will be stored under. `text` is what it says, once that is known;
    `error` why nothing came of it."""

    entry: str
    status: Literal["in_progress", "failed", "cancelled"] = "in_progress"
    text: str = ""
    error: str | None = None


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """The context was made smaller, since it neared the model's window."""

    compaction: Compaction


Update = Said | Stored | Queued | ToolProgress | Context | Notice | Titled | Compacting | Compacted
NAMES: dict[type[Update], str] = {
    Said: "said",
    Stored: "stored",
    Queued: "queued",
    ToolProgress: "tool_progress",
    Context: "context",
    Notice: "notice",
    Titled: "titled",
    Compacting: "compacting",
    Compacted: "compacted",
}
"""The name of each update in a stream of JSON."""
Emit = Callable[[Update], None]
Ask = Callable[[ToolCall], Awaitable[Choice | Verdict]]
"""Asks a person, or whoever speaks for one, whether a tool may run. It is cancelled when the answer comes from
somewhere else first."""


class Elicitor(msgspec.Struct, frozen=True):
    """Who asks a person for what tool servers want to know, and in which ways (`form`, `url`). Asking is cancelled when the
    reply comes from somewhere else first."""

    ways: frozenset[str]
    ask: Elicit


async def elsewhere(call: ToolCall) -> Choice | Verdict:  # noqa: ARG001 - nobody is asked
    """An `Ask` for turns that nobody attends: the answer comes from another place (`Questions.answer`), or never."""
    answer: asyncio.Future[Choice | Verdict] = asyncio.get_running_loop().create_future()
    return await answer


class Outcome(Value, frozen=True):
    """How a turn ended. `text` is the last message of the assistant; `requests` counts the model's answers."""

    stop_reason: StopReason
    prompt: str
    answer: str | None = None
    text: str = ""
    usage: Usage | None = None
    requests: int = 0
