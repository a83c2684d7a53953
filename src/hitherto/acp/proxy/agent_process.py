"""The proxied agent: a child process that is started when needed, and again after it has exited."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Raw

from hitherto.acp.client.process import ProcessLine, start_agent
from hitherto.acp.proxy.frames import (
    Members,
    join_members,
    members_of,
    object_of,
    raw_json,
    text_of,
    value_of,
)
from hitherto.acp.proxy.frames import (
    line as line_of,
)
from hitherto.errors import EngineError
from hitherto.rpc import frames
from hitherto.rpc.errors import INTERNAL_ERROR, Failure, Gone
from hitherto.sources.sync.recordings import source_of_agent

VERSION = 1
JSONRPC = Raw(b'"2.0"')
NOTHING = Raw(b"{}")

OnAnswer = Callable[[Members], None]
Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class AgentExited(EngineError):
    """The agent has exited before it answered. The next request starts it again."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the agent {name!r} exited before it answered; the next request starts it again")


class Refusal(Failure):
    """The agent answered with an error, which is passed on unchanged."""

    def __init__(self, error: Members) -> None:
        code = value_of(error.get("code"))
        number = code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR
        super().__init__(number, text_of(error, "message") or "", value_of(error.get("data")))


class AgentProcess:
    """One run of the agent. `forwarded` maps our request numbers to the ids of the editor's requests; our own requests are
    separate."""

    def __init__(self, name: str, line: ProcessLine) -> None:
        self.name, self.line = name, line
        self.exited = False
        self.greeting: Members = {}
        self.forwarded: dict[int, Raw] = {}
        self._pending: dict[int, asyncio.Future[Members]] = {}
        self._on_answer: dict[int, OnAnswer] = {}
        self._numbers = itertools.count(1)
        self._turn = asyncio.Lock()

    def supports(self, *path: str) -> bool:
        """Whether the agent has a capability: `true`, or an object, at the end of the path."""
        value: Any = value_of(self.greeting.get("agentCapabilities"))
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is True or isinstance(value, dict)

    async def send(self, data: bytes) -> None:
        """Send whole lines, in order."""
        try:
            async with self._turn:
                await self.line.send(data)
        except Gone:
            raise AgentExited(self.name) from None

    async def start_request(
        self, method: str, params: Members, on_answer: OnAnswer | None = None
    ) -> asyncio.Future[Members]:
        """Send a request of our own; the future gets the whole answer message. `on_answer` gets it as soon as it is read,
        before anything that the agent says after it."""
        if self.exited:
            raise AgentExited(self.name)
        number = next(self._numbers)
        pending: asyncio.Future[Members] = asyncio.get_running_loop().create_future()
        self._pending[number] = pending
        if on_answer is not None:
            self._on_answer[number] = on_answer
        pending.add_done_callback(
            lambda done: (self._pending.pop(number, None), done.cancelled() or done.exception())
        )
        members = {"jsonrpc": JSONRPC, "id": Raw(b"%d" % number), "method": raw_json(method)}
        await self.send(line_of({**members, "params": Raw(join_members(params))}))
        return pending

    async def call(self, method: str, params: Members) -> Members:
        """Send a request of our own and return its result. Raises `Refusal` and `AgentExited`."""
        return result_of(await (await self.start_request(method, params)))

    async def notify(self, method: str, params: Members) -> None:
        """Send a notification."""
        await self.send(
            line_of({"jsonrpc": JSONRPC, "method": raw_json(method), "params": Raw(join_members(params))})
        )

    async def forward(self, message: Members) -> None:
        """Forward a request of the editor, under a number of ours."""
        if self.exited:
            raise AgentExited(self.name)
        number = next(self._numbers)
        self.forwarded[number] = message["id"]
        await self.send(line_of({**message, "id": Raw(b"%d" % number)}))

    def number_of(self, request_id: Raw) -> int | None:
        """The number under which a request of the editor was forwarded."""
        key = frames.key_of(request_id)
        return next((at for at, known in self.forwarded.items() if frames.key_of(known) == key), None)

    def note_answer(self, number: int, message: Members) -> None:
        """An answer was read; what came before it may not have been sent on yet."""
        on_answer = self._on_answer.pop(number, None)
        if on_answer is not None:
            on_answer(message)

    def resolve(self, number: Any, message: Members) -> bool:
        """Resolve the request that this answers. Returns False if it is not one of ours."""
        pending = self._pending.get(number) if isinstance(number, int) else None
        if pending is not None and not pending.done():
            pending.set_result(message)
        return pending is not None

    def end(self) -> None:
        """The agent has exited: fail all pending requests."""
        self.exited = True
        for pending in list(self._pending.values()):
            if not pending.done():
                pending.set_exception(AgentExited(self.name))


class Agent:
    """See the module. `follow` gets each process, and returns at the end of its output. `name` is the agent's own name, once
    `initialize` was answered."""

    def __init__(self, command: Sequence[str], start: Start, env: Mapping[str, str] | None = None) -> None:
        self._command, self._start, self._env = command, start, env
        self.name = os.path.basename(command[0])
        self.greeting: Members | None = None
        self.process: AgentProcess | None = None
        self.follow: Callable[[AgentProcess], Awaitable[None]]
        self._start_lock = asyncio.Lock()

    @property
    def source(self) -> str:
        """The source name of the agent in sync; ids of its sessions begin with it."""
        return source_of_agent(self.name)

    def session_id_of(self, own_id: str) -> str:
        """Our id of one of the agent's own sessions."""
        return f"{self.source}:{own_id}"

    def own_id_of(self, session_id: str) -> str | None:
        """The agent's id of a session; None if our id is not of that form."""
        source, _, own_id = session_id.partition(":")
        return own_id if own_id and source == self.source else None

    @property
    def running(self) -> AgentProcess | None:
        """The process, if it runs and has answered `initialize`."""
        return self.process if self.process is not None and not self.process.exited else None

    async def ready(self) -> AgentProcess:
        """The process; it is started and initialized if necessary."""
        async with self._start_lock:
            return self.running or await self._start_process()

    async def _start_process(self) -> AgentProcess:
        started_process: asyncio.Future[AgentProcess] = asyncio.get_running_loop().create_future()
        self._start(self._run_process(started_process))
        process = await started_process
        process.greeting = await process.call("initialize", self.greeting or {})
        version = value_of(process.greeting.get("protocolVersion"))
        if version != VERSION:
            await process.line.hang_up()
            raise EngineError(
                f"the agent {self.name!r} uses protocol version {version!r:.20}; only {VERSION} is supported"
            )
        name = text_of(object_of(process.greeting, "agentInfo"), "name")
        self.name = process.name = name[:100] if name and name.isprintable() else self.name
        self.process = process
        return process

    async def _run_process(self, started_process: asyncio.Future[AgentProcess]) -> None:
        """Run the agent until it exits."""
        command, *args = self._command
        try:
            async with start_agent(command, args, env=self._env, cwd=None, stderr=None) as line:
                process = AgentProcess(self.name, line)
                started_process.set_result(process)
                try:
                    await self.follow(process)
                finally:
                    process.end()
        except EngineError as error:
            if started_process.done():
                raise
            started_process.set_exception(error)


def result_of(message: Members) -> Members:
    """The result of an answer; empty if it is not an object. Raises `Refusal` for an error."""
    if "error" in message:
        raise Refusal(members_of(message["error"]) or {})
    return members_of(message.get("result", NOTHING)) or {}
