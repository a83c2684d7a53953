"""Turns that run on a server; their events are passed on as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from hitherto.engine import Choices, Conversation, Event, Setup, Turn
from hitherto.errors import HithertoError, InvalidInput
from hitherto.model import Entry, Json, Origin, Part, QueueMode, Shrunk, ToolCall, encode
from hitherto.permissions import Mode
from hitherto.remote.connection import ServerConnection
from hitherto.remote.values import from_bytes
from hitherto.service import OpenSession
from hitherto.updates import NAMES, Ask, Emit, Outcome, Update


class RemoteEngine:
    """The server's engine, as far as a client needs it."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:  # noqa: ARG002 - it is opened over there
        yield _RemoteConversation(self._connection)


class _RemoteConversation:
    """Knows the window of the server's model; runs no turns here."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def run(self, turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG002
        raise InvalidInput("turns of a remote session run on the server")

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return None

    async def window(self, choices: Choices) -> int | None:
        size: int | None = await self._connection.call_value(
            "window", {"choices": encode(choices)}, int | None
        )
        return size


class RemoteOpenSession(OpenSession):
    """A session whose prompts the server answers."""

    def __init__(self, connection: ServerConnection, session_id: str) -> None:
        self.session_id = session_id
        self._connection = connection
        self._running = 0
        self._background: set[asyncio.Task[Any]] = set()

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
        queue: QueueMode | None = None,
        idempotency_key: str | None = None,
        mode: Callable[[], Mode] | None = None,
        origin: Origin | None = None,
    ) -> Outcome:
        if origin is not None:
            raise InvalidInput("to say who sends a prompt to a server, call session.send of its gateway")
        if mode is not None:
            raise InvalidInput("the mode of a turn on a server cannot change while it runs")
        if wait or queue is not None:
            raise InvalidInput("a prompt to a server cannot wait for another turn")
        async with self._connection.in_order(self.session_id):
            given = await self._connection.exact(encode(tuple(parts)))
        params: Json = {
            "session_id": self.session_id,
            "parts": given,
            "choices": encode(choices),
            "ask": ask is not None,
            "idempotency_key": idempotency_key,
        }

        async def take(data: bytes) -> None:
            event = decode_event(data)
            if isinstance(event, ToolCall):
                self._question(ask, event)
            elif event is not None:
                emit(event)

        self._running += 1
        try:
            outcome: Outcome = await self._connection.stream("prompt", params, take, Outcome)
            return outcome
        finally:
            self._running -= 1

    async def compact(self, *, choices: Choices = Choices(), emit: Emit = lambda _: None) -> Shrunk:  # noqa: B008, ARG002
        raise InvalidInput("to compact a session on a server, call session.compact of its gateway")

    def cancel(self) -> bool:
        if self.running:
            self._start(self._connection.ask("session.cancel", {"session_id": self.session_id}))
        return self.running

    async def settle(self) -> None:
        for task in tuple(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(tuple(self._background))

    def _question(self, ask: Ask | None, call: ToolCall) -> None:
        if ask is not None:
            self._start(self._give_answer(ask, call))

    async def _give_answer(self, ask: Ask, call: ToolCall) -> None:
        choice = await ask(call)
        params = {"session_id": self.session_id, "tool_call_id": call.id, "choice": choice}
        await self._connection.ask("session.answer", params)

    def _start(self, work: Any) -> None:
        """Run this beside the turn. Errors are ignored: if they matter, the turn fails too."""

        async def done() -> None:
            with suppress(HithertoError):
                await work

        task = asyncio.create_task(done())
        self._background.add(task)
        task.add_done_callback(self._background.discard)


QUESTION = "question"
KINDS: dict[str, type[Update | ToolCall]] = {
    **{name: kind for kind, name in NAMES.items()},
    QUESTION: ToolCall,
}
"""Event names: updates, and the tool call that needs permission."""


def encode_event(event: Update | ToolCall) -> bytes:
    """An event for the wire: its name and its exact JSON."""
    name = QUESTION if isinstance(event, ToolCall) else NAMES[type(event)]
    return b"%b %b" % (name.encode(), encode(event))


def decode_event(data: bytes) -> Update | ToolCall | None:
    """The event that `encode_event` was given; None if only a newer program knows its kind."""
    name, _, value = data.partition(b" ")
    kind = KINDS.get(name.decode("ascii", "replace"))
    event: Update | ToolCall | None = None if kind is None else from_bytes(value, kind)
    return event
