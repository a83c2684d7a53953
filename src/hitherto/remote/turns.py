"""Turns that run on a server: what happens in them is told here as it happens there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from hitherto.engine import Choices, Conversation, Event, Setup, Turn
from hitherto.errors import HithertoError, InvalidInput
from hitherto.model import Entry, Json, Part, Shrunk, ToolCall, encode
from hitherto.permissions import Mode
from hitherto.remote.connection import Line
from hitherto.remote.values import out_of
from hitherto.service import OpenSession
from hitherto.updates import NAMES, Ask, Emit, Outcome, Update


class RemoteEngine:
    """What answers prompts on the server, as far as one who is here needs it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:  # noqa: ARG002 - it is opened over there
        yield _Answering(self._line)


class _Answering:
    """Only turns of the server itself are run with it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def run(self, turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG002
        raise InvalidInput("turns of a remote session run on the server")

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return None

    async def window(self, choices: Choices) -> int | None:
        size: int | None = await self._line.told("window", {"choices": encode(choices)}, int | None)
        return size


class RemoteOpenSession(OpenSession):
    """A session that is open for prompts, which the server answers."""

    def __init__(self, line: Line, session_id: str) -> None:
        self.session_id = session_id
        self._line = line
        self._running = 0
        self._beside_us: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> bool:
        return self._running > 0

    async def prompt(
        self,
        parts: Sequence[Part],
        *,
        choices: Choices = Choices(),  # noqa: B008 - a frozen value
        ask: Ask | None = None,
        emit: Emit = lambda _: None,
        wait: bool = False,
        idempotency_key: str | None = None,
        mode: Callable[[], Mode] | None = None,
    ) -> Outcome:
        if mode is not None:
            raise InvalidInput("the mode of a turn on a server cannot change while it runs")
        if wait:
            raise InvalidInput("a prompt to a server cannot wait for another turn")
        params: Json = {
            "session_id": self.session_id,
            "parts": await self._line.exact(encode(tuple(parts))),
            "choices": encode(choices),
            "ask": ask is not None,
            "idempotency_key": idempotency_key,
        }

        async def take(data: bytes) -> None:
            happening = heard(data)
            if isinstance(happening, ToolCall):
                self._question(ask, happening)
            elif happening is not None:
                emit(happening)

        self._running += 1
        try:
            outcome: Outcome = await self._line.stream("prompt", params, take, Outcome)
            return outcome
        finally:
            self._running -= 1

    async def compact(self, *, choices: Choices = Choices()) -> Shrunk:  # noqa: B008, ARG002
        raise InvalidInput("to compact a session on a server, call session.compact of its gateway")

    def cancel(self) -> bool:
        if self.running:
            self._do(self._line.ask("session.cancel", {"session_id": self.session_id}))
        return self.running

    async def settle(self) -> None:
        for task in tuple(self._beside_us):
            task.cancel()
        if self._beside_us:
            await asyncio.wait(tuple(self._beside_us))

    def _question(self, ask: Ask | None, call: ToolCall) -> None:
        if ask is not None:
            self._do(self._give_answer(ask, call))

    async def _give_answer(self, ask: Ask, call: ToolCall) -> None:
        choice = await ask(call)
        params = {"session_id": self.session_id, "tool_call_id": call.id, "choice": choice}
        await self._line.ask("session.answer", params)

    def _do(self, work: Any) -> None:
        """Do something beside the turn; if it fails, so does the turn, or it does not matter."""

        async def done() -> None:
            with suppress(HithertoError):
                await work

        task = asyncio.create_task(done())
        self._beside_us.add(task)
        task.add_done_callback(self._beside_us.discard)


QUESTION = "question"
KINDS: dict[str, type[Update | ToolCall]] = {
    **{name: kind for kind, name in NAMES.items()},
    QUESTION: ToolCall,
}
"""What may be told, by name: updates, and the call of a tool that is asked about."""


def told(happening: Update | ToolCall) -> bytes:
    """What happens, for the wire: a name, and its exact JSON."""
    name = QUESTION if isinstance(happening, ToolCall) else NAMES[type(happening)]
    return b"%b %b" % (name.encode(), encode(happening))


def heard(data: bytes) -> Update | ToolCall | None:
    """What `told` was given; None for what only a newer program knows."""
    name, _, value = data.partition(b" ")
    kind = KINDS.get(name.decode("ascii", "replace"))
    happening: Update | ToolCall | None = None if kind is None else out_of(value, kind)
    return happening
