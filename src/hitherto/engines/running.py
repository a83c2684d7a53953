"""Tool calls of one answer, run side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

from hitherto.engine import ToolEnded, ToolProgress
from hitherto.engines.arguments import DEEPEST
from hitherto.engines.endings import ended
from hitherto.engines.toolbox import Show, Tool
from hitherto.errors import HithertoError
from hitherto.model import Text, ToolCall, ToolResult
from hitherto.permissions import Verdict

Permit = Callable[[ToolCall], Awaitable[Verdict]]
Running = asyncio.Task[ToolEnded]

NO_OBJECT = f"the input of {{name}} must be a JSON object, nested at most {DEEPEST} deep; nothing was done"


async def ran(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool], permit: Permit
) -> AsyncGenerator[ToolProgress | ToolEnded, None]:
    """Run all calls at once; their results in the order in which they end. Whatever is still running when the
    caller leaves, or is cancelled, however often, has ended before this does."""
    progress: dict[str, str] = {}
    news: asyncio.Queue[Running | str] = asyncio.Queue()

    def show(id: str, text: str) -> None:
        if id not in progress:  # else the news of it is still waiting, and will tell the newest text
            news.put_nowait(id)
        progress[id] = text

    running = {_started(call, tools, permit, show, news): call for call in calls}
    try:
        while running:
            heard = await news.get()
            if isinstance(heard, str):
                yield ToolProgress(id=heard, content=(Text(text=progress.pop(heard)),))
            else:
                yield _end(heard, running.pop(heard))
    finally:
        await ended(running)


def refused(call: ToolCall, reason: str) -> ToolEnded:
    """The end of a call that never ran."""
    return ToolEnded(result=ToolResult(id=call.id, content=(Text(text=reason),), is_error=True))


def _started(
    call: ToolCall,
    tools: Mapping[str, Tool],
    permit: Permit,
    show: Callable[[str, str], None],
    news: asyncio.Queue[Running | str],
) -> Running:
    work = _run(call, tools, permit, lambda text: show(call.id, text))
    task = asyncio.create_task(work, name=f"tool {call.name}")
    task.add_done_callback(news.put_nowait)
    return task


async def _run(call: ToolCall, tools: Mapping[str, Tool], permit: Permit, show: Show) -> ToolEnded:
    tool = tools.get(call.name)
    if tool is None:
        return refused(call, f"there is no tool {call.name!r}; there are: {', '.join(tools) or 'none'}")
    if not isinstance(call.input, dict):
        return refused(call, NO_OBJECT.format(name=call.name))
    verdict = await permit(call)
    if not verdict.allowed:
        return refused(call, verdict.reason or "refused")
    done = await tool.call(verdict.input if isinstance(verdict.input, dict) else call.input, show)
    result = ToolResult(id=call.id, content=done.content, is_error=done.is_error, output=done.output)
    return ToolEnded(result=result, extra=done.extra)


def _end(task: Running, call: ToolCall) -> ToolEnded:
    """How a call has ended. A tool that breaks its promise and raises fails alone; what the service raises when it
    is asked for permission ends the turn."""
    if task.cancelled():
        return refused(call, "the tool was cancelled")
    error = task.exception()
    if isinstance(error, HithertoError):
        raise error
    if error is not None:
        return refused(call, f"the tool failed: {type(error).__name__}: {error}")
    return task.result()
