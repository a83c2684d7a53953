"""Servers in processes of their own, and clients that talk to them over the loopback interface."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import websockets.asyncio.client
from websockets.exceptions import ConnectionClosed

from hitherto.values.scopes import SCOPES
from tests.support.paths import ROOT
from tests.support.waits import (
    LIMIT,
    NEVER,
    arrives,
    block_until,
    end_of,
    ended,
    in_time,
    line_of,
    output,
    until,
    within,
)

Json = dict[str, Any]
PATIENT = dict.fromkeys(("stranger_seconds", "head_seconds", "body_seconds", "stall_seconds"), NEVER)
"""Nobody is given up for being slow, unless a test asks for it."""
EVERYONE: Mapping[str, tuple[str, Sequence[str]]] = {
    "ann": ("ann", SCOPES),
    "ann-reads": ("ann", ("read",)),
    "ann-runs": ("ann", ("read", "write", "run")),
    "bob": ("bob", SCOPES),
}
"""Tokens by name: whose they are, and what they are good for."""


class Reply(NamedTuple):
    """An answer of HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Token(NamedTuple):
    id: str
    secret: str
    owner: str


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, tokens: Mapping[str, Token]) -> None:
        self.process, self.port, self.tokens = process, port, tokens

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def bearer(self, name: str) -> dict[str, str]:
        """The header that shows a token."""
        return {"Authorization": f"Bearer {self.tokens[name].secret}"}

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """The exit code, once it has ended."""
        return await asyncio.to_thread(ended, self.process, "the server to end")

    # HTTP

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
    ) -> Reply:
        """Ask once, with exactly these headers, and Host unless it is among them."""
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            named = any(name.lower() == "host" for name, _ in pairs)
            connection.putrequest(method, path, skip_host=named, skip_accept_encoding=True)
            for name, value in pairs:
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            with in_time(f"the answer to {method} {path}"):
                connection.endheaders(body)
                answer = connection.getresponse()
                told = {name.lower(): value for name, value in answer.getheaders()}
                return Reply(answer.status, told, b"" if answer.status == 101 else answer.read())
        finally:
            connection.close()

    def post(self, body: bytes, name: str = "ann", **headers: str) -> Reply:
        """Send a body to `/rpc`."""
        told = {"Content-Type": "application/json", **self.bearer(name), **headers}
        return self.request("POST", "/rpc", told, body)

    def rpc(self, method: str, params: Json | None = None, name: str = "ann") -> Json:
        """The whole answer to a request over HTTP."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        answer: Json = self.post(json.dumps(asked).encode(), name).json
        return answer

    def call(self, method: str, params: Json | None = None, name: str = "ann") -> Any:
        """The result of a request over HTTP."""
        return self.rpc(method, params, name)["result"]

    def upgrade(self, path: str, headers: Sequence[tuple[str, str]] = ()) -> Reply:
        """Ask for a WebSocket, and see what the server says to that."""
        asked = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            *headers,
        ]
        return self.request("GET", path, asked)

    def plain(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT)

    # WebSockets

    @asynccontextmanager
    async def socket(
        self, name: str | None = "ann", path: str = "/ws", **fields: Any
    ) -> AsyncIterator[Client]:
        """A WebSocket of the holder of this token; None for one who shows none."""
        headers = None if name is None else self.bearer(name)
        async with websockets.asyncio.client.connect(
            f"ws://{self.host}{path}",
            additional_headers=headers,
            compression=None,
            max_size=None,
            proxy=None,
            open_timeout=LIMIT,
            **{"ping_interval": None, **fields},
        ) as connection:
            yield Client(connection)


class Client:
    """A client on a WebSocket. `seen` has what came and was no answer, in order."""

    def __init__(self, connection: websockets.asyncio.client.ClientConnection) -> None:
        self.connection = connection
        self.seen: list[Json] = []
        self._answers: dict[Any, Json] = {}
        self._numbers = itertools.count(1)

    async def send(self, data: str) -> None:
        await arrives(self.connection.send(data), "the server to take a message")

    async def receive(self) -> Json:
        """The next message."""
        message: Json = json.loads(await arrives(self.connection.recv(), "a message of the server"))
        return message

    async def begin(self, method: str, params: Json | None = None) -> int:
        """Make a request; returns its number."""
        number = next(self._numbers)
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        await self.send(json.dumps(asked))
        return number

    async def answer(self, number: int) -> Json:
        """The whole answer to a request; what comes before it is noted."""
        async with within(f"the answer to request {number}"):
            while number not in self._answers:
                await self._step()
        return self._answers.pop(number)

    async def rpc(self, method: str, params: Json | None = None) -> Json:
        return await self.answer(await self.begin(method, params))

    async def call(self, method: str, params: Json | None = None) -> Any:
        answer = await self.rpc(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The parameters of the first message, seen already or still to come, that is wanted."""
        at = 0
        async with within("a message that is wanted"):
            while True:
                for message in self.seen[at:]:
                    at += 1
                    if wanted(message["params"]):
                        params: Json = message["params"]
                        return params
                await self._step()

    async def eventually(self, method: str, params: Json, wanted: Callable[[Json], bool]) -> Json:
        """Ask until the result is what is wanted."""

        async def asked() -> list[Json]:
            return [result for result in [await self.call(method, params)] if wanted(result)]

        (found,) = await until(asked, f"what is wanted of {method}")
        return found

    async def closed(self) -> tuple[int | None, str]:
        """How the server closes the socket; what comes before that is noted."""
        try:
            async with within("the server to close the socket"):
                while True:
                    await self._step()
        except ConnectionClosed:
            return self.connection.close_code, self.connection.close_reason or ""

    @property
    def events(self) -> list[Json]:
        """What was told to subscriptions until now."""
        return [message["params"] for message in self.seen if message["method"] == "session.event"]

    async def _step(self) -> None:
        message = await self.receive()
        if "method" in message:
            self.seen.append(message)
        else:
            self._answers[message["id"]] = message


def go(pipe: Path) -> None:
    """Let a turn go on that waits for this pipe, or will."""
    end = block_until(lambda: end_of(pipe), f"a turn that waits for {pipe}")
    assert end is not None
    with end:
        end.write(b"go")


async def awaited(pipe: Path) -> None:
    """Wait until a turn waits for this pipe: what it says before that is said."""
    end = await until(lambda: end_of(pipe), f"a turn that waits for {pipe}")
    assert end is not None
    end.close()


@contextmanager
def serving(
    store: str,
    *,
    tokens: Mapping[str, tuple[str, Sequence[str]]] = EVERYONE,
    noisy: bool = False,
    environment: Mapping[str, str] = {},
    cwd: Path = ROOT,
    **given: Any,
) -> Iterator[Server]:
    """A server on this store, with these limits and more of an environment, in this folder. What it logs is a failure,
    unless it may be `noisy`."""
    limits = {**PATIENT, **given.pop("limits", {})}
    asked = json.dumps({"store": store, "tokens": tokens, "limits": limits, **given})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.server_worker", asked],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        line = line_of(process, "a server to say where it is")
        assert line, output(process, "the end of a server that did not start")[1].decode()
        told = json.loads(line)
        yield Server(process, told["port"], {name: Token(**each) for name, each in told["tokens"].items()})
    finally:
        process.terminate()
        _, logged = output(process, "the server to end")
    assert noisy or logged == b"", logged.decode()
    assert process.returncode == 0
