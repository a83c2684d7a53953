"""The agent behind: a child process that is started when it is needed, and again when it has left."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Raw

from hitherto.acp.client.process import ProcessLine, started
from hitherto.acp.proxy.frames import (
    Members,
    joined,
    line,
    members_of,
    object_of,
    text_of,
    value_of,
    written,
)
from hitherto.errors import EngineError
from hitherto.rpc import frames
from hitherto.rpc.errors import INTERNAL_ERROR, Failure, Gone
from hitherto.sources.sync.recordings import source_of_agent

VERSION = 1
JSONRPC = Raw(b'"2.0"')
NOTHING = Raw(b"{}")

Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Left(EngineError):
    """The agent has left: what was asked of it is never answered. The next request starts it again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the agent {name!r} has left before it answered; the next request starts it again")


class Refusal(Failure):
    """The agent has answered with an error, which is passed on as it is."""

    def __init__(self, error: Members) -> None:
        code = value_of(error.get("code"))
        number = code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR
        super().__init__(number, text_of(error, "message") or "", value_of(error.get("data")))


class Life:
    """The agent for as long as it runs. `forwarded` are the editor's own requests, by the number they go under here;
    `asked` are ours."""

    def __init__(self, name: str, process: ProcessLine) -> None:
        self.name, self.line = name, process
        self.left = False
        self.greeting: Members = {}
        self.forwarded: dict[int, Raw] = {}
        self._asked: dict[int, asyncio.Future[Members]] = {}
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()

    def can(self, *path: str) -> bool:
        """Whether the agent has a capability: `true`, or an object, at the end of the path."""
        value: Any = value_of(self.greeting.get("agentCapabilities"))
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is True or isinstance(value, dict)

    async def send(self, data: bytes) -> None:
        """Hand whole lines over, in order."""
        try:
            async with self._turn:
                await self.line.send(data)
        except Gone:
            raise Left(self.name) from None

    async def begin(self, method: str, params: Members) -> asyncio.Future[Members]:
        """Make a request of our own; the answer is its whole message."""
        if self.left:
            raise Left(self.name)
        number = next(self._numbers)
        asked: asyncio.Future[Members] = asyncio.get_running_loop().create_future()
        self._asked[number] = asked
        asked.add_done_callback(
            lambda done: (self._asked.pop(number, None), done.cancelled() or done.exception())
        )
        members = {"jsonrpc": JSONRPC, "id": Raw(b"%d" % number), "method": written(method)}
        await self.send(line({**members, "params": Raw(joined(params))}))
        return asked

    async def ask(self, method: str, params: Members) -> Members:
        """Make a request of our own and return its result. Raises `Refusal` and `Left`."""
        return result_of(await (await self.begin(method, params)))

    async def tell(self, method: str, params: Members) -> None:
        """Send a notification."""
        await self.send(line({"jsonrpc": JSONRPC, "method": written(method), "params": Raw(joined(params))}))

    async def forward(self, message: Members) -> None:
        """Pass a request of the editor's on, under a number of ours."""
        if self.left:
            raise Left(self.name)
        number = next(self._numbers)
        self.forwarded[number] = message["id"]
        await self.send(line({**message, "id": Raw(b"%d" % number)}))

    def numbered(self, request_id: Raw) -> int | None:
        """The number under which a request of the editor's was passed on."""
        key = frames.key_of(request_id)
        return next((at for at, known in self.forwarded.items() if frames.key_of(known) == key), None)

    def resolve(self, number: Any, message: Members) -> bool:
        """Whether this answers a request of ours; then whoever asked has it."""
        asked = self._asked.get(number) if isinstance(number, int) else None
        if asked is not None and not asked.done():
            asked.set_result(message)
        return asked is not None

    def end(self) -> None:
        """The agent has left: nobody is answered any more."""
        self.left = True
        for asked in list(self._asked.values()):
            if not asked.done():
                asked.set_exception(Left(self.name))


class Agent:
    """See the module. `follow` is given each life, and returns when the agent says nothing more; `name` is what the agent
    calls itself, once it has been greeted."""

    def __init__(self, command: Sequence[str], start: Start, env: Mapping[str, str] | None = None) -> None:
        self._command, self._start, self._env = command, start, env
        self.name = os.path.basename(command[0])
        self.greeting: Members | None = None
        self.life: Life | None = None
        self.follow: Callable[[Life], Awaitable[None]]
        self._gate = asyncio.Lock()

    @property
    def source(self) -> str:
        """What sync calls the agent: sessions of its own have ids of ours that begin so."""
        return source_of_agent(self.name)

    def named(self, own: str) -> str:
        """The id that one of the agent's own sessions has with us when it was read, or is listed."""
        return f"{self.source}:{own}"

    def own(self, session_id: str) -> str | None:
        """The agent's id of a session whose id of ours is such a one."""
        source, _, own = session_id.partition(":")
        return own if own and source == self.source else None

    @property
    def alive(self) -> Life | None:
        """The agent, if it runs and has been greeted."""
        return self.life if self.life is not None and not self.life.left else None

    async def ready(self) -> Life:
        """The agent, running and greeted."""
        async with self._gate:
            return self.alive or await self._begun()

    async def _begun(self) -> Life:
        begun: asyncio.Future[Life] = asyncio.get_running_loop().create_future()
        self._start(self._live(begun))
        life = await begun
        life.greeting = await life.ask("initialize", self.greeting or {})
        version = value_of(life.greeting.get("protocolVersion"))
        if version != VERSION:
            await life.line.hang_up()
            raise EngineError(
                f"the agent {self.name!r} speaks version {version!r:.20} of the protocol, not {VERSION}"
            )
        name = text_of(object_of(life.greeting, "agentInfo"), "name")
        self.name = life.name = name[:100] if name and name.isprintable() else self.name
        self.life = life
        return life

    async def _live(self, begun: asyncio.Future[Life]) -> None:
        """One life of the agent."""
        command, *args = self._command
        try:
            async with started(command, args, env=self._env, cwd=None, stderr=None) as process:
                life = Life(self.name, process)
                begun.set_result(life)
                try:
                    await self.follow(life)
                finally:
                    life.end()
        except EngineError as error:
            if begun.done():
                raise
            begun.set_exception(error)


def result_of(message: Members) -> Members:
    """The result of an answer; what is no object has no members. Raises `Refusal` for an error."""
    if "error" in message:
        raise Refusal(members_of(message["error"]) or {})
    return members_of(message.get("result", NOTHING)) or {}
