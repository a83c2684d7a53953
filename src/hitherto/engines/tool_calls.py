"""Tool calls of one answer, run side by side."""

from __future__ import annotations

import asyncio
import json
import math
import reprlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from hitherto.engine import ToolEnded, ToolProgress
from hitherto.errors import HithertoError
from hitherto.model import Json, Part, Text, ToolCall, ToolResult
from hitherto.permissions import Verdict
from hitherto.tasks import cancel_all

DEEPEST = 50
"""How deep the input of a tool may be nested. No tool needs more, and some libraries give up not far beyond."""


def parse_arguments(args: str | dict[str, Any] | None) -> Any:
    """The arguments. What is no proper JSON, or nested too deep, stays text, so that the tool's answer can say so."""
    if not isinstance(args, str):
        return (args or {}) if is_proper(args) else reprlib.repr(args)
    try:
        values = json.loads(args, parse_constant=_refuse) if args.strip() else {}
    except (ValueError, RecursionError):
        return args
    return values if is_proper(values) else args


def is_proper(value: Any, depth: int = 0) -> bool:
    """Whether nothing in it is too deep, or a number that is none: 1e999 is read as infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth < DEEPEST and all(is_proper(each, depth + 1) for each in inner)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


Permit = Callable[[ToolCall], Awaitable[Verdict]]
Running = asyncio.Task[ToolEnded]

NO_OBJECT = f"the input of {{name}} must be a JSON object, nested at most {DEEPEST} deep; nothing was done"


async def run_calls(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], permit: Permit
) -> AsyncGenerator[ToolProgress | ToolEnded, None]:
    """Run all calls at once; their results in the order in which they end. Whatever is still running when the
    caller leaves, or is cancelled, however often, has ended before this does."""
    progress: dict[str, str] = {}
    events: asyncio.Queue[Running | str] = asyncio.Queue()

    def show(id: str, text: str) -> None:
        if id not in progress:  # else its event is still queued, and will show the newest text
            events.put_nowait(id)
        progress[id] = text

    running = {_start(call, tools, permit, show, events): call for call in calls}
    try:
        while running:
            event = await events.get()
            if isinstance(event, str):
                yield ToolProgress(id=event, content=(Text(text=progress.pop(event)),))
            else:
                yield _end(event, running.pop(event))
    finally:
        await cancel_all(running)


def refused_call(call: ToolCall, reason: str) -> ToolEnded:
    """The end of a call that never ran."""
    return ToolEnded(result=ToolResult(id=call.id, content=(Text(text=reason),), is_error=True))


def _start(
    call: ToolCall,
    tools: Mapping[str, Tool],
    permit: Permit,
    show: Callable[[str, str], None],
    events: asyncio.Queue[Running | str],
) -> Running:
    work = _run(call, tools, permit, lambda text: show(call.id, text))
    task = asyncio.create_task(work, name=f"tool {call.name}")
    task.add_done_callback(events.put_nowait)
    return task


async def _run(call: ToolCall, tools: Mapping[str, Tool], permit: Permit, show: Show) -> ToolEnded:
    tool = tools.get(call.name)
    if tool is None:
        return refused_call(call, f"unknown tool {call.name!r}; known: {', '.join(tools) or 'none'}")
    if not isinstance(call.input, dict):
        return refused_call(call, NO_OBJECT.format(name=call.name))
    verdict = await permit(call)
    if not verdict.allowed:
        return refused_call(call, verdict.reason or "refused")
    done = await tool.call(verdict.input if isinstance(verdict.input, dict) else call.input, show)
    result = ToolResult(id=call.id, content=done.content, is_error=done.is_error, output=done.output)
    return ToolEnded(result=result, extra=done.extra)


def _end(task: Running, call: ToolCall) -> ToolEnded:
    """How a call has ended. A tool that breaks its promise and raises fails alone; what the service raises when it
    is asked for permission ends the turn."""
    if task.cancelled():
        return refused_call(call, "the tool was cancelled")
    error = task.exception()
    if isinstance(error, HithertoError):
        raise error
    if error is not None:
        return refused_call(call, f"the tool failed: {type(error).__name__}: {error}")
    return task.result()


Show = Callable[[str], None]
"""Shows all the output of a running tool so far."""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave back: parts for the model, structured `output` for programs, `extra` parts for the history.

    A tool that changed a file says so in `output`: `{"diff": {"path": …, "oldText": … or None, "newText": …}}`.
    """

    content: tuple[Part, ...]
    is_error: bool = False
    output: Any = None
    extra: tuple[Part, ...] = ()


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. `call` runs it with input that fits `schema` (or says in its answer why it does not); it raises nothing
    but `CancelledError`. `kind` is one of `permissions.KINDS`; `title` and `locations` describe a call."""

    name: str
    description: str
    schema: Json
    kind: str
    call: Callable[[Json, Show], Awaitable[ToolOutput]]
    title: Callable[[Json], str | None] = lambda _: None
    locations: Callable[[Json], tuple[Json, ...]] = lambda _: ()
