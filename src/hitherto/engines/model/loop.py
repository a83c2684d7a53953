"""The loop of a turn: ask the model, tell what it says, run the tools it wants, and ask again.

The model is always sent what the store holds, rebuilt: also within a turn. So a process that has never seen the
session sends exactly what this one would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

from pydantic_ai.messages import ModelResponse

from hitherto.engine import Context, Event, Message, Stopped, StopReason, ToolEnded, Turn
from hitherto.engines.model.messages import rebuilt
from hitherto.engines.model.pricing import usage_of
from hitherto.engines.model.reply import message_of
from hitherto.engines.model.request import Asking, asked
from hitherto.engines.tool_calls import Tool, ran, refused
from hitherto.model import Entry, Json, Part, Role, ToolCall

MAX_REQUESTS = 200
"""What a turn may ask of the model when the caller sets no bound."""

PAUSED = "suspended"
"""The state of an answer in which the model has only paused: asked again, it goes on."""

ENDINGS: dict[str, tuple[StopReason, str]] = {
    "length": ("max_tokens", "not run: the answer was cut off at the model's limit of output"),
    "content_filter": ("refusal", "not run: the provider has refused to go on"),
}
"""Finish reasons after which no tool runs: why the turn stops, and what becomes of the answer's calls."""


async def answered(
    turn: Turn, asking: Asking, tools: Mapping[str, Tool], window: int | None
) -> AsyncGenerator[Event, None]:
    """All that happens in a turn."""
    history = list(turn.history)
    for _ in range(turn.choices.max_requests or MAX_REQUESTS):
        messages = await asyncio.to_thread(rebuilt, history, asking.model.system)  # it may hold many images
        async with aclosing(asked(asking, messages)) as said:
            async for heard in said:
                if isinstance(heard, ModelResponse):
                    response = heard
                else:
                    yield heard
        message = message_of(response, asking.model.system, tools, usage_of(response))
        yield message
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        goes_on = bool(calls) or response.state == PAUSED
        for event in _after(message, response.finish_reason, calls, window, goes_on=goes_on):
            yield event
        if not goes_on or response.finish_reason in ENDINGS:
            return
        history.append(_entry("assistant", message.parts, message.meta))
        async with aclosing(ran(calls, tools, turn.permit)) as events:
            async for news in events:
                yield news
                if isinstance(news, ToolEnded):
                    history.append(_entry("tool", (news.result, *news.extra), news.meta))
    yield Stopped(reason="max_turn_requests")


def _after(
    message: Message, finish: str | None, calls: Sequence[ToolCall], window: int | None, *, goes_on: bool
) -> Iterator[Event]:
    """What an answer brings with it: how full the window is, and the end of the turn if it is the last one."""
    used = message.usage
    if used is not None and used.input is not None:
        yield Context(used=used.input + (used.output or 0), size=window)
    reason, unrun = ENDINGS.get(finish or "", ("end_turn", ""))
    if unrun:
        yield from (refused(call, unrun) for call in calls)
    if unrun or not goes_on:
        yield Stopped(reason=reason)


def _entry(role: Role, parts: tuple[Part, ...], meta: Json) -> Entry:
    """An entry as it will be read from the store, as far as a model sees it."""
    return Entry(id="", at=0, role=role, parts=parts, meta=meta)
