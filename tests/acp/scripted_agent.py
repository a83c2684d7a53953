"""An ACP agent for tests, made with `hitherto.acp.run`: a prompt is the script of its own answer.

A prompt that is a JSON list is played step by step; any other text is echoed.

    ["Hello ", {"thought": "hm"}, {"call": {…}}, {"progress": "half"}, {"result": "done"}, {"store": true}]
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import hitherto.acp
from hitherto.engine import (
    Context,
    Conversation,
    Delta,
    Elicitation,
    Event,
    Host,
    Message,
    Notice,
    Setup,
    Stopped,
    ToolEnded,
    ToolProgress,
    Turn,
    answering,
)
from hitherto.errors import ModelUnreachable
from hitherto.model import Part, Plan, Text, Thought, ToolCall, ToolResult, Usage, plain_text

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


class Player:
    """Plays one script: each step is a text, or an object whose first member names a method below."""

    def __init__(self, turn: Turn, host: Host | None) -> None:
        self.turn, self.host = turn, host
        self.parts: list[Part] = []
        self.call: ToolCall | None = None

    async def play(self, step: Any) -> AsyncIterator[Event]:
        name, value = ("text", step) if isinstance(step, str) else next(iter(step.items()))
        rest = {} if isinstance(step, str) else {key: item for key, item in step.items() if key != name}
        told = await getattr(self, f"do_{name}")(value, **rest)
        for event in told if isinstance(told, Iterator) else (told,):
            if event is not None:
                yield event

    def message(self, *more: Part) -> Message:
        parts, self.parts = (*self.parts, *more), []
        return Message(parts=parts, usage=Usage(input=100, output=10, cost=0.01))

    async def do_text(self, text: str) -> Event:
        last = self.parts[-1] if self.parts else None
        if isinstance(last, Text):
            self.parts[-1] = Text(text=last.text + text)
        else:
            self.parts.append(Text(text=text))
        return Delta(text=text)

    async def do_thought(self, text: str) -> Event:
        self.parts.append(Thought(text=text))
        return Delta(text=text, thought=True)

    async def do_unsaid(self, text: str) -> None:
        self.parts.append(Text(text=text))

    async def do_store(self, _: bool) -> Event:
        return self.message()

    async def do_call(self, call: Any) -> Event:
        self.call = ToolCall(**call)
        return self.message(self.call)

    async def do_permit(self, _: bool) -> Event | None:
        assert self.call is not None
        verdict = await self.turn.permit(self.call)
        return None if verdict.allowed else self.end(verdict.reason, failed=True)

    async def do_result(self, text: str, output: Any = None) -> Event | None:
        return None if self.call is None else self.end(text, output=output)

    async def do_progress(self, text: str) -> Event | None:
        return None if self.call is None else ToolProgress(id=self.call.id, content=(Text(text=text),))

    async def do_churn(self, times: int) -> Iterator[Event]:
        """Tell of a tool's long output, again and again."""
        call = self.call
        assert call is not None
        return (ToolProgress(id=call.id, content=(Text(text=f"{at}" * 20_000),)) for at in range(times))

    async def do_plan(self, steps: list[Any]) -> None:
        self.parts.append(Plan(steps=tuple(steps)))

    async def do_context(self, numbers: list[int]) -> Event:
        return Context(used=numbers[0], size=numbers[1])

    async def do_notice(self, text: str) -> Event:
        return Notice(text=text, severity="warning")

    async def do_hang(self, _: bool) -> None:
        await asyncio.Event().wait()

    async def do_fail(self, text: str) -> None:
        raise ModelUnreachable(text)

    async def do_stop(self, reason: Any) -> Event:
        return Stopped(reason=reason)

    async def do_print(self, text: str) -> None:
        """Write to standard output, from here and from a child; and have a child read what there is to read."""
        print(text, flush=True)  # noqa: T201 - that is the point
        child = await asyncio.create_subprocess_exec("sh", "-c", f"cat; echo {text}")
        await child.wait()

    async def do_read(self, path: str) -> Event:
        assert self.host is not None
        return await self.do_text(await self.host.read_text(path))

    async def do_write(self, path: str, text: str) -> None:
        assert self.host is not None
        await self.host.write_text(path, text)

    async def do_run(self, command: str) -> Event:
        assert self.host is not None
        done = await self.host.run(command, "/p", seconds=60, output_bytes=1_000, show=lambda _: None)
        return await self.do_text(done.output)

    async def do_elicit(self, message: str) -> Event:
        """Ask the user as a tool server does."""
        call = "" if self.call is None else self.call.id
        asked = Elicitation(id="e1", server="desk", message=message, schema=SCHEMA, call=call)
        return await self.do_text((await self.turn.elicit(asked)).action)

    async def do_choices(self, _: bool) -> None:
        told = {"mode": self.turn.choices.mode, "trace": self.turn.choices.trace}
        self.parts.append(Text(text=json.dumps(told)))

    def end(self, text: str, *, failed: bool = False, output: Any = None) -> ToolEnded:
        assert self.call is not None
        result = ToolResult(id=self.call.id, content=(Text(text=text),), is_error=failed, output=output)
        self.call = None
        return ToolEnded(result=result)


async def played(turn: Turn, host: Host | None) -> AsyncIterator[Event]:
    said = plain_text(turn.history[-1])
    script = json.loads(said) if said.startswith("[") else [f"You said: {said}"]
    player = Player(turn, host)
    for step in script:
        async for event in player.play(step):
            yield event
            if isinstance(event, Stopped):
                return
    if player.parts:
        yield player.message()


class Scripted:
    """See `engine.Engine`."""

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:
        async with answering(lambda turn: played(turn, setup.host)).open(setup) as conversation:
            yield conversation


engine = Scripted()

if __name__ == "__main__":
    hitherto.acp.run(engine, sys.argv[1])
