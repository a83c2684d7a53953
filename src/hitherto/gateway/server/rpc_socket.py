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
from hitherto.rpc.order import Order
from hitherto.rpc.peer import Method, Peer, Then

WAY = "ws"
ORDER_SECONDS = 60.0
"""How long a request waits for those before it to the same session, if they do not end."""


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
        self._order = Order(ORDER_SECONDS)
        self.context: Context = state.context(socket.caller, self.subscriptions, self.open_connection)

    async def answer(self, name: str, params: Raw) -> bytes:
        """The result of a method. Raises `Failure`."""
        # Here and now: a request that lasts is begun later than those that come after it.
        place = self._order.enter() if METHODS[name].in_order else None
        leave = place.leave if place is not None else _nothing
        answering = self.state.call(self.context, name, params, WAY, place)
        if not METHODS[name].lasts:
            try:
                return await answering
            finally:
                leave()
        try:
            return await self.state.background.run(self._caller, answering, lambda: self.peer.left, leave)
        except Refusal as refusal:
            raise refusal.why from None

    async def _notify(self, method: str, params: Json) -> None:
        await self.peer.notify(method, params)


def _nothing() -> None:
    """Nobody waits for a request that only reads."""


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
