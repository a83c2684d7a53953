"""`/ws`: the methods of the table over a WebSocket, and the events that were subscribed to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Raw

from hitherto.gateway.dispatch.connection import OpenConnection
from hitherto.gateway.dispatch.errors import failure
from hitherto.gateway.dispatch.method import Context
from hitherto.gateway.events.subscriptions import Subscribing
from hitherto.gateway.methods import METHODS
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.server.websocket import FAULT, Socket
from hitherto.gateway.transport.responses import Refusal
from hitherto.model import Json
from hitherto.rpc.errors import Failure
from hitherto.rpc.peer import Method, Peer, Then

WAY = "ws"


class Connection:
    """One client: the context of its requests, and its notifications."""

    peer: Peer[Connection]

    def __init__(self, state: ServerState, socket: Socket) -> None:
        self.state, self._caller = state, socket.caller
        self.subscriptions = Subscribing(
            state.feeds,
            socket.caller,
            state.limits.subscriptions,
            state.metrics,
            self._notify,
            partial(socket.close, FAULT, "a subscription failed: subscribe again from the last cursor"),
        )
        self.open_connection = OpenConnection(self._notify, state.uploads)
        self.context: Context = state.context(socket.caller, self.subscriptions, self.open_connection)

    async def answer(self, name: str, params: Raw) -> bytes:
        """The result of a method. Raises `Failure`."""
        answering = self.state.call(self.context, name, params, WAY)
        if not METHODS[name].lasts:
            return await answering
        try:
            return await self.state.background.run(self._caller, answering, lambda: self.peer.left)
        except Refusal as refusal:
            raise refusal.why from None

    async def _notify(self, method: str, params: Json) -> None:
        await self.peer.notify(method, params)


def _handler(name: str) -> Callable[[Connection, Raw], Awaitable[Any]]:
    async def handle(connection: Connection, params: Raw) -> Any:
        result = await connection.answer(name, params)
        return Then(result, connection.subscriptions.begin) if name == "session.subscribe" else result

    return handle


REQUESTS: dict[str, Method[Connection]] = {
    name: Method(_handler(name), Raw, row.waits) for name, row in METHODS.items()
}
NOTIFICATIONS = {name: method for name, method in REQUESTS.items() if not method.waits}


def unknown(name: str) -> Failure | None:
    """The answer to a method that is not there; the same over every transport."""
    if name in METHODS:
        return None
    return failure("method_not_found", f"Method not found: {name:.100}", method=name[:100])


async def serve_methods(state: ServerState, socket: Socket) -> None:
    """Serve a client until it leaves."""
    connection = Connection(state, socket)
    connection.peer = Peer(socket, REQUESTS, NOTIFICATIONS, connection)
    try:
        await connection.peer.run()
    finally:
        connection.open_connection.end()
        await connection.subscriptions.end()
