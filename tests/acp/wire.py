"""A client that speaks to an agent line by line and hides nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import hitherto
import hitherto.acp
from hitherto import composition
from hitherto.acp import Pipes
from hitherto.engine import Engine
from hitherto.model import LOCAL
from tests.acp.protocol_models import checked
from tests.acp.scripted_agent import engine
from tests.engines.provider import Provider
from tests.support.paths import ROOT
from tests.support.waits import arrives, within

Json = dict[str, Any]
LINE_BYTES = 80 * 1024 * 1024
ALLOWED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
EVERYTHING: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
}


class Refusal(AssertionError):
    """The agent answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.error = error
        self.code: int = error["code"]


class Talk:
    """A client's end of a connection. `seen` has every message that was no answer, in order; `on` answers the agent's
    own requests; `methods` has the method of each request by its id."""

    def __init__(self, to_agent: asyncio.StreamWriter, from_agent: asyncio.StreamReader) -> None:
        self._in, self._out = to_agent, from_agent
        self.seen: list[Json] = []
        self.lines: list[bytes] = []
        self.on: dict[str, Callable[[Json], Json]] = {"session/request_permission": lambda _: ALLOWED}
        self._numbers = itertools.count(1)
        self.methods: dict[Any, str] = {}
        self._answers: dict[Any, Json] = {}

    # Lines

    async def write(self, data: bytes) -> None:
        """Send these bytes as they are."""
        self._in.write(data)
        await arrives(self._in.drain(), "the agent to take a line")

    async def send(self, **fields: Any) -> None:
        """Send a message."""
        await self.write(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")

    async def read(self) -> Json:
        """The next message, which must be a good one."""
        line = await arrives(self._out.readline(), "a line of the agent")
        assert line, "the agent has exited or closed the connection"
        self.lines.append(line)
        return checked(line, self.methods)

    # Calls

    async def begin(self, method: str, params: Json | None = None) -> int:
        """Make a request; returns its number."""
        number = next(self._numbers)
        self.methods[number] = method
        await self.send(id=number, method=method, params={} if params is None else params)
        return number

    async def answer(self, number: int) -> Json:
        """The result of a request; what comes before it is noted. Raises `Refusal` if it is an error."""
        async with within(f"the answer to {self.methods.get(number, number)}"):
            while number not in self._answers:
                await self.step()
        message = self._answers.pop(number)
        if "error" in message:
            raise Refusal(message["error"])
        result: Json = message["result"]
        return result

    async def call(self, method: str, params: Json | None = None) -> Json:
        """Make a request and return its result."""
        return await self.answer(await self.begin(method, params))

    async def step(self) -> Json:
        """Take one message: an answer is kept for whoever asked, a request of the agent is answered if we can."""
        message = await self.read()
        if "method" not in message:
            self._answers[message["id"]] = message
        else:
            self.seen.append(message)
            handler = self.on.get(message["method"])
            if "id" in message and handler is not None:
                await self.send(id=message["id"], result=handler(message["params"]))
        return message

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The first message, seen already or still to come, that is wanted."""
        for message in self.seen:
            if wanted(message):
                return message
        async with within("a message that is wanted"):
            while True:
                message = await self.step()
                if wanted(message):
                    return message

    # What sessions need

    async def initialize(self, capabilities: Json | None = None) -> Json:
        params = {"protocolVersion": 1, "clientCapabilities": capabilities or {}}
        return await self.call("initialize", params)

    async def new(self, cwd: Path | str, **fields: Any) -> str:
        result = await self.call("session/new", {"cwd": str(cwd), "mcpServers": [], **fields})
        session_id: str = result["sessionId"]
        return session_id

    async def load(self, session_id: str, cwd: Path | str, **fields: Any) -> list[Json]:
        """The updates that a load replays; what is said of the session itself belongs to an earlier opening."""
        before = len(self.seen)
        params = {"sessionId": session_id, "cwd": str(cwd), "mcpServers": [], **fields}
        await self.call("session/load", params)
        found = updates(self.seen[before:], session_id)
        return [update for update in found if update["sessionUpdate"] != "session_info_update"]

    async def prompt(self, session_id: str, said: str | list[Any], **fields: Any) -> Json:
        return await self.answer(await self.begin_prompt(session_id, said, **fields))

    async def begin_prompt(self, session_id: str, said: str | list[Any], **fields: Any) -> int:
        text = said if isinstance(said, str) else json.dumps(said)
        params = {"sessionId": session_id, "prompt": [{"type": "text", "text": text}], **fields}
        return await self.begin("session/prompt", params)

    def updates(self, session_id: str) -> list[Json]:
        return updates(self.seen, session_id)


class Agent(Talk):
    """A program that is an agent."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(process.stdin, process.stdout)
        self.process = process

    async def leave(self) -> int:
        """Close the agent's input, as a client does that has finished; returns how the agent ended."""
        self._in.close()
        async with within("the agent to end"):
            while await self._out.read(LINE_BYTES):
                pass
            return await self.process.wait()


def updates(messages: list[Json], session_id: str) -> list[Json]:
    """The updates of a session among these messages, but for the commands, which are told at every opening."""
    found = [message["params"] for message in messages if message["method"] == "session/update"]
    told = [params["update"] for params in found if params["sessionId"] == session_id]
    return [update for update in told if update["sessionUpdate"] != "available_commands_update"]


def kinds(found: list[Json]) -> list[str]:
    """What kinds of updates these are."""
    return [update["sessionUpdate"] for update in found]


def texts(found: list[Json], kind: str = "agent_message_chunk") -> str:
    """What these updates say."""
    return "".join(update["content"]["text"] for update in found if update["sessionUpdate"] == kind)


def is_update(session_id: str, kind: str) -> Callable[[Json], bool]:
    """Whether a message is such an update."""

    def wanted(message: Json) -> bool:
        params = message.get("params", {})
        return (
            message.get("method") == "session/update"
            and params["sessionId"] == session_id
            and params["update"]["sessionUpdate"] == kind
        )

    return wanted


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment that depends on nothing of the machine."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(folder), "LANG": "C.UTF-8", "TZ": "UTC", **(extra or {})}


@asynccontextmanager
async def running(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, noisy: bool = False
) -> AsyncIterator[Agent]:
    """Start a program that is an agent. It must end well when its input is closed, and say nothing on stderr unless it
    is `noisy`."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=ROOT,
        env=environment(folder, env),
        limit=LINE_BYTES,
    )
    assert process.stderr is not None
    errors = asyncio.ensure_future(process.stderr.read())
    agent = Agent(process)
    try:
        yield agent
        assert await agent.leave() == 0
        said = await arrives(errors, "the end of what the agent says on stderr")
        assert noisy or not said, said.decode()
    except BaseException:
        if process.returncode is None:
            process.kill()
        sys.stderr.write((await arrives(errors, "what a killed agent has said on stderr")).decode())
        raise
    finally:
        await arrives(process.wait(), "the end of the agent")


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'sessions.db'}"


@asynccontextmanager
async def separate(
    folder: Path, capabilities: Json | None = None, *, noisy: bool = False
) -> AsyncIterator[Agent]:
    """The agent of `scripted.py` over the store of the folder, greeted: a process of its own."""
    async with running(folder, "-m", "tests.acp.scripted_agent", url_of(folder), noisy=noisy) as agent:
        await agent.initialize(capabilities)
        yield agent


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def beside(folder: Path, engine: Engine) -> AsyncIterator[Streams]:
    """The client's end of an agent in this process: most of what an agent does needs no other. It must end well when
    the client has nothing more to say."""
    mine, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=mine, limit=LINE_BYTES)
    pipes = Pipes(theirs.fileno(), theirs.fileno())
    async with hitherto.open(url_of(folder)) as sessions:
        agent = asyncio.ensure_future(hitherto.acp.serve(pipes, sessions, LOCAL, engine))
        try:
            yield reader, writer
            if not writer.is_closing():
                writer.write_eof()
            rest = asyncio.ensure_future(reader.read())
            await arrives(agent, "the agent to end")
        finally:
            agent.cancel()
            await arrives(asyncio.wait([agent]), "the agent to end")
            pipes.close()
            theirs.close()
            writer.close()
    await arrives(rest, "the rest of what the agent said")


@asynccontextmanager
async def modelled(folder: Path, provider: Provider, model: str) -> AsyncIterator[Streams]:
    """The same with a model of this provider: what models need takes long to import, and is imported once here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in provider.environ().items():
            patch.setenv(name, value)
        async with beside(folder, composition.engine(model)) as streams:
            yield streams


@asynccontextmanager
async def unmet(folder: Path) -> AsyncIterator[Talk]:
    """The agent of `scripted.py` in this process, not greeted yet."""
    async with beside(folder, engine) as (reader, writer):
        yield Talk(writer, reader)


@asynccontextmanager
async def scripted(folder: Path, capabilities: Json | None = None) -> AsyncIterator[Talk]:
    """The same, greeted."""
    async with unmet(folder) as agent:
        await agent.initialize(capabilities)
        yield agent
