"""A conversation with a model, kept as a store keeps it: as bytes that are read again before each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import pytest

from hitherto.engine import Choices, Delta, Event, Message, Stopped, ToolEnded, Turn
from hitherto.engines.model.connect import connect
from hitherto.engines.model.loop import run_turn
from hitherto.engines.model.settings import for_turn
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.errors import HithertoError
from hitherto.model import (
    Entry,
    Json,
    Part,
    Role,
    Session,
    Text,
    ToolCall,
    ToolResult,
    decode_entry,
    encode,
)
from hitherto.permissions import Verdict

ANTHROPIC, OPENAI = "anthropic:claude-sonnet-5", "openai-chat:gpt-5"
both_wires = pytest.mark.parametrize("name", [ANTHROPIC, OPENAI])

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

T = TypeVar("T")
Work = Callable[[Json, Show], Awaitable[ToolOutput]]


class Talk:
    """`stored` is all that is left of it between two turns; `pauses` how long it would have waited; `saying` is set
    when the model has begun to speak."""

    def __init__(self, name: str, tools: Sequence[Tool] = (), choices: Choices | None = None) -> None:
        self.name, self.tools = name, tools
        self.choices = choices or Choices()
        self.stored: list[bytes] = []
        self.pauses: list[float] = []
        self.saying = asyncio.Event()
        self.stream_request: list[ToolCall] = []
        self.verdict: Verdict | HithertoError = Verdict(allowed=True)

    def add(self, role: Role, *parts: Part, meta: Json | None = None) -> None:
        entry = Entry(id=str(len(self.stored)), at=0, role=role, parts=parts, meta=meta or {})
        self.stored.append(encode(entry))

    async def prompt(self, *parts: Part | str) -> list[Event]:
        """All events of a turn; an error is raised after what was said until then is in `events`."""
        self.add("user", *(Text(text=part) if isinstance(part, str) else part for part in parts))
        return await self.run(tuple(map(decode_entry, self.stored)))

    async def run(self, history: tuple[Entry, ...]) -> list[Event]:
        """The same for a history that is given."""
        self.events: list[Event] = []
        session = Session(id="s", revision=1, created_at=0, updated_at=0)
        turn = Turn(session=session, history=history, choices=self.choices, permit=self._permit)
        tools = {tool.name: tool for tool in self.tools}
        async with connect(self.name) as model:
            asking = for_turn(model, self.choices, "Be brief.", self.tools, self._pause)
            async with aclosing(run_turn(turn, asking, tools, None)) as events:
                async for event in events:
                    self._keep(event)
                    self.events.append(event)
        return self.events

    def _keep(self, event: Event) -> None:
        match event:
            case Delta():
                self.saying.set()
            case Message(parts=parts, meta=meta):
                self.add("assistant", *parts, meta=meta)
            case ToolEnded(result=result, extra=extra):
                self.add("tool", result, *extra)

    async def _permit(self, call: ToolCall) -> Verdict:
        self.stream_request.append(call)
        if isinstance(self.verdict, HithertoError):
            raise self.verdict
        return self.verdict

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def tool(name: str, work: Work, **more: Any) -> Tool:
    return Tool(name=name, description="A tool.", schema={"type": "object"}, kind="other", call=work, **more)


def echo() -> Tool:
    """Says what it was given."""

    async def work(given: Json, _: Show) -> ToolOutput:
        return ToolOutput(content=(Text(text=f"heard {given}"),))

    return tool("echo", work)


def only(kind: type[T], events: Iterable[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


def stop_reason(events: Sequence[Event]) -> str:
    """Why the turn ended; there is one reason, and nothing after it."""
    (last,) = only(Stopped, events)
    assert events[-1] is last
    return last.reason


def results(events: Iterable[Event]) -> list[ToolResult]:
    return [ended.result for ended in only(ToolEnded, events)]


def result_text(result: ToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, Text))
