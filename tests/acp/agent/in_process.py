"""An agent in the process of the test, on a line whose other end decides when it takes something."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import hitherto
import hitherto.acp
from hitherto.acp.agent.connection import Offer
from hitherto.engine import Engine
from hitherto.model import LOCAL
from hitherto.rpc.transport import FrameTooLong
from hitherto.service import Sessions
from tests.acp.protocol_models import checked
from tests.support.waits import arrives, within

Json = dict[str, Any]


class Line:
    """A transport, and the client at its other end. While `taking` is not set nothing that is sent arrives, and
    whoever sends waits; `full` tells that somebody does. `sizes` are those of all that was sent at once."""

    def __init__(self) -> None:
        self.taking, self.full = asyncio.Event(), asyncio.Event()
        self.taking.set()
        self.seen: list[Json] = []
        self.sizes: list[int] = []
        self._said: asyncio.Queue[bytes | FrameTooLong | None] = asyncio.Queue()
        self._arrived = asyncio.Event()
        self._numbers = itertools.count(1)
        self._methods: dict[Any, str] = {}

    async def receive(self) -> bytes | None:
        said = await self._said.get()
        if isinstance(said, FrameTooLong):
            raise said
        return said

    def say_too_much(self, head: str) -> None:
        """Send a message that is too long to be taken, and begins like this."""
        self._said.put_nowait(FrameTooLong(head.encode()))

    async def send(self, data: bytes) -> None:
        if not self.taking.is_set():
            self.full.set()
            await arrives(self.taking.wait(), "the client to take something")
        self.sizes.append(len(data))
        self.seen += [checked(line, self._methods) for line in data.splitlines(keepends=True)]
        self._arrived.set()

    def leave(self) -> None:
        self._said.put_nowait(None)

    def say(self, **fields: Any) -> None:
        self._said.put_nowait(json.dumps({"jsonrpc": "2.0", **fields}).encode())

    def begin(self, method: str, **params: Any) -> int:
        number = next(self._numbers)
        self._methods[number] = method
        self.say(id=number, method=method, params=params)
        return number

    async def until(self, wanted: Callable[[Json], bool]) -> int:
        """The place of the first message that is wanted, once it is there."""
        async with within("a message that is wanted"):
            while True:
                self._arrived.clear()
                for at, message in enumerate(self.seen):
                    if wanted(message):
                        return at
                await self._arrived.wait()

    async def answer(self, number: int) -> Json:
        at = await self.until(lambda message: message.get("id") == number and "method" not in message)
        result: Json = self.seen[at]["result"]
        return result

    async def call(self, method: str, **params: Any) -> Json:
        return await self.answer(self.begin(method, **params))

    async def refusal(self, method: str, **params: Any) -> Json:
        """The error that a request is answered with."""
        number = self.begin(method, **params)
        error: Json = self.seen[await self.until(lambda message: message.get("id") == number)]["error"]
        return error


@asynccontextmanager
async def serving(
    engine: Engine,
    offer: Offer = Offer(),  # noqa: B008
    capabilities: Json | None = None,
    store: str = "memory:",
) -> AsyncIterator[tuple[Line, Sessions]]:
    """The agent of an engine over an empty store, greeted."""
    line = Line()
    async with hitherto.open(store) as sessions:
        agent = asyncio.ensure_future(hitherto.acp.serve(line, sessions, LOCAL, engine, offer=offer))
        await line.call("initialize", protocolVersion=1, clientCapabilities=capabilities or {})
        try:
            yield line, sessions
        finally:
            line.taking.set()
            line.leave()
            await arrives(agent, "the agent to end")


async def opened(line: Line) -> str:
    """The id of a new session, once all that comes after the answer has arrived."""
    session_id: str = (await line.call("session/new", cwd="/p", mcpServers=[]))["sessionId"]
    await line.until(lambda message: is_told(message, "available_commands_update"))
    return session_id


def is_told(message: Json, kind: str) -> bool:
    update = message.get("params", {}).get("update", {})
    return bool(update.get("sessionUpdate") == kind)


async def quiet() -> None:
    """Let everything go on until nothing moves any more."""
    for _ in range(100):
        await asyncio.sleep(0)


async def made(sessions: Sessions) -> set[str]:
    """The ids of all sessions that were ever made, drafts included."""
    return {change.session for change in await sessions.changes.since(LOCAL)}
