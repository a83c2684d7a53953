"""The loop of a turn: ask the model, report its answer, run the tools it calls, and ask again.

The model is always sent what the store holds, rebuilt: also within a turn. So a process that has never seen the
session sends exactly what this one would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

from pydantic_ai.messages import ModelResponse

from hitherto.engine import Context, Event, Message, Stopped, StopReason, ToolEnded, Turn
from hitherto.engines.model.messages import model_messages
from hitherto.engines.model.price import usage_of
from hitherto.engines.model.reply import message_of
from hitherto.engines.model.request import ModelCall, stream_request
from hitherto.engines.tool_calls import Tool, refused_call, run_calls
from hitherto.engines.tools.memory import remembered_text
from hitherto.errors import ContextTooLong
from hitherto.limits import LARGEST_NUMBER
from hitherto.model import Entry, Json, Part, Role, Text, ToolCall, Usage
from hitherto.values.keys import is_group
from hitherto.values.token_count import context_size

MAX_REQUESTS = 200
"""What a turn may ask of the model when the caller sets no bound."""

MEANWHILE = LARGEST_NUMBER
"""The time of what a running turn adds: after all that is stored."""

PAUSED = "suspended"
"""The state of an answer in which the model has only paused: asked again, it continues."""

ENDINGS: dict[str, tuple[StopReason, str]] = {
    "length": ("max_tokens", "not run: the answer was cut off at the model's output limit"),
    "content_filter": ("refusal", "not run: the provider refused to continue"),
}
"""Finish reasons after which no tool runs: why the turn stops, and what becomes of the answer's calls."""


async def run_turn(
    turn: Turn, model_call: ModelCall, tools: Mapping[str, Tool], window: int | None
) -> AsyncGenerator[Event, None]:
    """All that happens in a turn."""
    history = [*turn.history[:-1], *_remembered(turn), *turn.history[-1:]]
    for _ in range(turn.choices.max_requests or MAX_REQUESTS):
        messages = await asyncio.to_thread(  # it may hold many images
            model_messages, history, model_call.model.system, named=is_group(turn.session.key)
        )
        async with aclosing(stream_request(model_call, messages)) as items:
            async for item in items:
                if isinstance(item, ModelResponse):
                    response = item
                else:
                    yield item
        message = message_of(response, model_call.model.system, tools, usage_of(response))
        yield message
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        continues = bool(calls) or response.state == PAUSED
        for event in _after(message, response.finish_reason, calls, window, continues=continues):
            yield event
        if not continues or response.finish_reason in ENDINGS:
            return
        history.append(_entry("assistant", message.parts, message.meta, message.usage))
        async with aclosing(run_calls(calls, tools, turn.permit)) as events:
            async for event in events:
                yield event
                if isinstance(event, ToolEnded):
                    history.append(_entry("tool", (event.result, *event.extra), event.meta))
        history.extend(await turn.steered())
        await asyncio.to_thread(_expect_room, history, window)
    yield Stopped(reason="max_turn_requests")


def _remembered(turn: Turn) -> tuple[Entry, ...]:
    """What is remembered, in front of the prompt: so all before it stays as providers have it in their caches."""
    if not turn.remembered:
        return ()
    return (_entry("user", (Text(text=remembered_text(turn.remembered)),), {}),)


def _after(
    message: Message, finish: str | None, calls: Sequence[ToolCall], window: int | None, *, continues: bool
) -> Iterator[Event]:
    """What an answer brings with it: how full the window is, and the end of the turn if it is the last one."""
    used = message.usage
    if used is not None and used.input is not None:
        yield Context(used=used.input + (used.output or 0), size=window)
    reason, unrun = ENDINGS.get(finish or "", ("end_turn", ""))
    if unrun:
        yield from (refused_call(call, unrun) for call in calls)
    if unrun or not continues:
        yield Stopped(reason=reason)


def _expect_room(history: Sequence[Entry], window: int | None) -> None:
    """Raise `ContextTooLong` before a request is sent that cannot fit: a tool may have returned much."""
    if window is not None and (used := context_size(history)).number > window:
        raise ContextTooLong(f"the context takes about {used.number:,} tokens, and the model sees {window:,}")


def _entry(role: Role, parts: tuple[Part, ...], meta: Json, usage: Usage | None = None) -> Entry:
    """An entry as it will be read from the store, as far as a model sees it."""
    return Entry(id="", at=MEANWHILE, role=role, parts=parts, usage=usage, meta=meta)
