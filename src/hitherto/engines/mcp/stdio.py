"""A server that is a program: its pipes, and the end of it and of everything it has started.

The SDK's own transport ends the process group only if the server does not leave by itself; this one always does. What
a server puts into a session of its own (`setsid`) is out of reach.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, RequestId

from hitherto.limits import ENTRY_BYTES
from hitherto.tasks import finish
from hitherto.values.mcp_servers import StdioServer

MESSAGE_BYTES = ENTRY_BYTES // 2
"""The longest message of a server that is read: what comes of it fits an entry."""
TAIL_BYTES = 4_096
LAST_WORDS_CHARS = 500

WAITING = 100
"""How many messages may wait for a server that does not read; so nobody has to who only wants to take back a call."""
LEAVE_SECONDS = 1.0
"""How long a server may take to leave by itself, once its input is closed."""
ENDING = ((signal.SIGTERM, 0.5), (signal.SIGKILL, 2.0))
"""What its group is sent then, and how long that may take."""
DRAIN_SECONDS = 0.5
"""How long the output of a server that has exited may stay open, as when a child of it has it too."""
POLL_SECONDS = 0.01

Inward = MemoryObjectSendStream[SessionMessage | Exception]
Outward = MemoryObjectReceiveStream[SessionMessage]


class _Watched(SubprocessStreamProtocol):
    """Notices when the program exits; `Process.wait` would also wait for other processes that hold its pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=MESSAGE_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Stdio:
    """A transport of the SDK: entering starts the program, leaving ends its process group, whatever happens."""

    def __init__(self, server: StdioServer, cwd: str | None, noisy: Callable[[], None]) -> None:
        self._server = server
        self._cwd = cwd
        self._noisy = noisy
        self._tail = b""
        self._too_long = False
        self._code: int | None = None

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]:
        loop = asyncio.get_running_loop()
        self._transport, self._protocol = await loop.subprocess_exec(
            lambda: _Watched(loop),
            self._server.command,
            *self._server.args,
            env=get_default_environment() | self._server.env,
            cwd=self._cwd,
            start_new_session=True,
        )
        process = Process(self._transport, self._protocol, loop)
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self._stdout = cast("asyncio.StreamReader", process.stdout)
        self._stderr = cast("asyncio.StreamReader", process.stderr)
        inward, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outward = anyio.create_memory_object_stream[SessionMessage](WAITING)
        self._streams = (inward, received, sent, outward)
        reading = asyncio.create_task(self._read(inward))
        self._listening = asyncio.create_task(self._listen())
        self._tasks = (
            reading,
            self._listening,
            asyncio.create_task(self._write(outward, inward)),
            asyncio.create_task(self._watch(reading, inward)),
        )
        return received, sent

    async def __aexit__(self, *error: object) -> None:
        await finish(self._end())

    @property
    def remark(self) -> str:
        """What can be added to what the server says: nothing."""
        return ""

    def end_description(self) -> str:
        """How the server came to its end, and what it said at last."""
        said = " ".join(self._tail.decode("utf-8", "replace").split())[-LAST_WORDS_CHARS:]
        return f"{self._exit_description()}; it said: {said}" if said else self._exit_description()

    def _exit_description(self) -> str:
        if self._too_long:
            return f"it sent a line of more than {MESSAGE_BYTES} bytes"
        if self._code is None:
            return "the connection was interrupted"
        if self._code >= 0:
            return f"it exited with code {self._code}"
        return f"it was ended by signal {-self._code}"

    async def _read(self, inward: Inward) -> None:
        async with inward:
            try:
                while line := await self._stdout.readline():
                    await self._pass_on(line, inward)
            except ValueError:  # `readline` has met a line over the limit, and what follows is the rest of it
                self._too_long = True
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
                return

    async def _pass_on(self, line: bytes, inward: Inward) -> None:
        message = message_of(line)
        if message is not None:
            await inward.send(SessionMessage(message))
        elif line.strip():
            self._noisy()

    async def _write(self, outward: Outward, inward: Inward) -> None:
        try:
            async with outward:
                async for item in outward:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._stdin.write(text.encode() + b"\n")
                    await self._stdin.drain()
        except ConnectionError:  # it does not read any more: whoever waits for an answer should not
            inward.close()

    async def _listen(self) -> None:
        while said := await self._stderr.read(TAIL_BYTES):
            self._tail = (self._tail + said)[-TAIL_BYTES:]

    async def _watch(self, reading: asyncio.Task[None], inward: Inward) -> None:
        await self._protocol.exited.wait()
        await asyncio.wait((reading,), timeout=DRAIN_SECONDS)
        inward.close()

    async def _end(self) -> None:
        self._stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._protocol.exited.wait(), LEAVE_SECONDS)
        self._code = self._transport.get_returncode()
        for number, seconds in ENDING:
            if await self._group_ended(number, seconds):
                break
        await asyncio.wait((self._listening,), timeout=DRAIN_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            stream.close()
        self._transport.close()

    async def _group_ended(self, number: signal.Signals, seconds: float) -> bool:
        """Send the server's group a signal, and wait for the end of all in it; False if it does not come."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        try:
            os.killpg(self._transport.get_pid(), number)
            while loop.time() < until:
                await asyncio.sleep(POLL_SECONDS)
                os.killpg(self._transport.get_pid(), 0)
        except (ProcessLookupError, PermissionError):  # none is left, or none that is ours
            return True
        return False


UNREADABLE = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message="an unreadable message")

_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"(?P<colon>\s*:)?|[{}\[\]]')
_ID = re.compile(rb'\s*(-?\d{1,18}|"[\w-]{0,100}")\s*[,}]')
_STEPS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message; None if it is none. An answer that cannot be read becomes an error, so that nobody waits for it."""
    try:
        return _read(line)
    except ValueError:
        return _repair(line) or _failed(line)


def _read(line: bytes) -> JSONRPCMessage:
    return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)


def _repair(line: bytes) -> JSONRPCMessage | None:
    """The message without halves of characters, which JSON can name and no text can hold."""
    try:
        values = json.loads(line.decode("utf-8", "replace"))
        return _read(json.dumps(values, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _failed(line: bytes) -> JSONRPCMessage | None:
    id = _answered_id(line)
    return None if id is None else mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=UNREADABLE)


def _answered_id(line: bytes) -> RequestId | None:
    """The request that this line answers, by the id at its outermost level."""
    depth, found = 0, None
    for token in _TOKENS.finditer(line):
        depth += _STEPS.get(token[0], 0)
        if depth != 1 or not token["colon"]:
            continue
        if token[0].startswith(b'"method"'):  # it is a request itself
            return None
        if token[0].startswith(b'"id"') and (id := _ID.match(line, token.end())):
            found = json.loads(id[1])
    return found
