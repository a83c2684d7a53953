"""Turns that were asked for over the gateway: how long they go on, whoever leaves and whatever token is revoked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from hitherto.engine import Delta, Event, Message, Turn
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.server import rpc_socket
from hitherto.gateway.server.http import Rpc
from hitherto.gateway.server.rpc_socket import NOTIFICATIONS, REQUESTS, Connection
from hitherto.gateway.server.state import ServerState
from hitherto.model import Principal, Text
from hitherto.rpc.peer import Peer
from hitherto.service import Sessions
from hitherto.stores import connector
from tests.gateway.methods.asker import KEY, Asker
from tests.support.scripted_engine import Scripted
from tests.support.waits import arrives, until

ANN = Principal(owner="ann")


class Told:
    """A script that begins to speak, and ends when it is told to."""

    def __init__(self) -> None:
        self.speaking, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG002 - the engine's
        yield Delta(text="So")
        self.speaking.set()
        await arrives(self.go.wait(), "leave to go on")
        yield Message(parts=(Text(text="So be it"),))


class Wire:
    """A client's end of a socket. See `rpc.transport.Transport`."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.incoming: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, data: bytes) -> None:
        pass

    def close(self, code: int, reason: str) -> None:  # noqa: ARG002 - a socket's
        self.leave()

    def ask(self, method: str, **params: Any) -> None:
        line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.incoming.put_nowait(json.dumps(line).encode())

    def leave(self) -> None:
        self.incoming.put_nowait(None)


class Place:
    """A server's state, a caller, and a turn that can be begun."""

    def __init__(self, sessions: Sessions, caller: Caller) -> None:
        self.script = Told()
        self.sessions, self.caller = sessions, caller
        self.state = ServerState(sessions, Scripted(self.script))
        self.asker = Asker(sessions)

    def serving(self) -> tuple[Wire, asyncio.Task[None]]:
        wire = Wire(self.caller)
        served = Connection(self.state, cast("Any", wire))
        served.peer = Peer(wire, REQUESTS, NOTIFICATIONS, served)
        return wire, asyncio.create_task(served.peer.run())

    async def posted(self, **params: Any) -> tuple[int, Any]:
        """The status and the answer of a request over HTTP."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.send", "params": params}).encode()
        heads = [
            (b"authorization", f"Bearer {self.caller.secret}".encode()),
            (b"content-type", b"application/json"),
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "headers": heads, "client": ("127.0.0.1", 1)}
        await Rpc(self.state)(scope, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    async def spoken(self) -> None:
        await arrives(self.script.speaking.wait(), "the first words")

    async def ended(self) -> None:
        async def idle() -> bool:
            return (await self.sessions.channels.resolve(ANN, KEY)).status == "idle"

        await until(idle, "the end of the turn")


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with _place() as made:
        yield made


@asynccontextmanager
async def _place() -> AsyncIterator[Place]:
    async with connector("memory:")("memory:", None) as store:
        sessions = Sessions(store)
        token, secret = await sessions.tokens.create("ann")
        made = Place(sessions, Caller(sessions, token, secret))
        await made.asker.say("one")
        async with made.state.watching_tokens():
            yield made


async def test_the_engine_gets_ready_when_the_server_has_started(place: Place) -> None:
    ready = threading.Event()

    class Slow(Scripted):
        def warm_up(self) -> None:
            ready.set()

    async with ServerState(place.sessions, Slow()).watching_tokens():
        await arrives(asyncio.to_thread(ready.wait), "the engine to get ready")


async def test_a_turn_goes_on_when_its_socket_is_gone_and_answers_whoever_comes_back(place: Place) -> None:
    wire, serving = place.serving()
    wire.ask("session.send", session_key=KEY, content="Go", idempotency_key="k")
    await place.spoken()
    wire.leave()
    await arrives(serving, "the connection to end")
    place.script.go.set()
    await place.ended()
    assert await place.asker.said() == ["one", "Go", "So be it"]
    again = place.asker.with_(engine=Scripted())
    sent = await again.ask("session.send", session_key=KEY, content="Go", idempotency_key="k")
    assert (sent["stop_reason"], sent["message"]["content"]) == ("end_turn", "So be it")


async def test_a_request_that_is_called_off_ends_its_turn(place: Place) -> None:
    wire, serving = place.serving()
    wire.ask("session.send", session_key=KEY, content="Go")
    await place.spoken()
    wire.incoming.put_nowait(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}')
    await place.ended()
    assert await place.asker.said() == ["one", "Go", "So"]
    wire.leave()
    await arrives(serving, "the connection to end")
    counted = [line for line in place.state.metrics.requests.lines() if "session.send" in line]
    assert [line.endswith('outcome="cancelled"} 1') for line in counted] == [True], counted


@pytest.mark.parametrize("way", ["http", rpc_socket.WAY])
async def test_a_revoked_token_ends_the_turns_that_were_asked_for_with_it(place: Place, way: str) -> None:
    wire, serving = place.serving()
    posting = None
    if way == "http":
        posting = asyncio.create_task(place.posted(session_key=KEY, content="Go"))
    else:
        wire.ask("session.send", session_key=KEY, content="Go")
    await place.spoken()
    wire.leave()
    await place.sessions.tokens.revoke(place.caller.token.id)
    await place.ended()
    assert await place.asker.said() == ["one", "Go", "So"]
    if posting is not None:
        status, told = await arrives(posting, "the answer to the request")
        assert (status, told["error"]["data"]["code"]) == (401, "unauthenticated")
    await arrives(serving, "the connection to end")


async def test_a_server_that_ends_ends_turns_that_nobody_waits_for() -> None:
    async with _place() as place:
        wire, serving = place.serving()
        wire.ask("session.send", session_key=KEY, content="Go")
        await place.spoken()
        wire.leave()
        await arrives(serving, "the connection to end")
        await place.state.background.end()
        assert (await place.sessions.channels.resolve(ANN, KEY)).status == "idle"
        assert await place.asker.said() == ["one", "Go", "So"]
