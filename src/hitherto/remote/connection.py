"""A connection to a server, and requests on it."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.errors import HithertoError, InvalidInput, StoreUnavailable, install_advice
from hitherto.model import Json
from hitherto.remote.address import Address, token_for
from hitherto.remote.calls import CALLS, PREFIX
from hitherto.remote.values import UNKNOWN, error_of, fields_of, from_bytes, result_of, to_bytes
from hitherto.rpc.errors import Gone, Refused
from hitherto.rpc.order import Order
from hitherto.rpc.peer import Method, Peer
from hitherto.settings import CA_FILE

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
except ModuleNotFoundError:
    raise StoreUnavailable(install_advice("connecting to a server", "remote")) from None

PIECE_BYTES = 4 * 1024 * 1024
"""Longer arguments are uploaded in pieces of this size."""
ANSWER_BYTES = 128 * 1024 * 1024
OPEN_SECONDS, CLOSE_SECONDS = 20.0, 2.0
WAITING = 64
"""The most pieces of a stream that are buffered; then the server waits."""
REVOKED = 1008
UNAUTHORISED, FORBIDDEN = 401, 403

# What the library would note includes the token.
_silent = logging.getLogger(f"{__name__}.socket")
_silent.disabled = True


class StreamPiece(msgspec.Struct, frozen=True):
    """Some more of a stream: bytes of a file, or what happens in a turn."""

    stream: str
    data: bytes


class CallResult(msgspec.Struct, frozen=True):
    """A result: plain, or as the bytes of its exact JSON."""

    value: Raw = Raw(b"null")
    exact: bytes | None = None

    def read(self, kind: Any) -> Any:
        """The value, which is of this type."""
        return from_bytes(bytes(self.value) if self.exact is None else self.exact, kind)


class ServerConnection:
    """See the module. Everything that goes wrong comes out as an error of the program, without the token."""

    def __init__(self, address: Address, socket: ClientConnection) -> None:
        self._address, self._socket = address, socket
        self._names = map(str, count(1))
        self._streams: dict[str, asyncio.Queue[bytes]] = {}
        self._order = Order()
        self._peer: Peer[ServerConnection] = Peer(_Socket(socket), {}, NOTIFICATIONS, self)

    async def run(self) -> None:
        """Receive messages until either side closes the connection."""
        await self._peer.run()

    async def ask(self, method: str, params: Json) -> Raw:
        """The result of any method of the gateway."""
        try:
            return await self._peer.ask(method, params)
        except Refused as refused:
            raise error_of(refused, self._address.shown) from None
        except Gone:
            raise self._lost_error() from None

    async def call(self, name: str, about: str | None, arguments: Json) -> Any:
        """The result of a call of the service."""
        named = {} if about is None else {"session_id": about}
        async with self.in_order(about if CALLS[name].scope == "write" else None):
            given = await self._wire_arguments(name, arguments)
        # Nothing is awaited from here until it is its turn to be sent.
        return await self.call_value(name, {**named, **given}, result_of(name))

    async def call_value(self, name: str, params: Json, kind: Any) -> Any:
        """The value that a `store.` method returns."""
        result = await self.ask(PREFIX + name, params)
        return msgspec.json.decode(result, type=CallResult).read(kind)

    async def stream(
        self, name: str, params: Json, take: Callable[[bytes], Awaitable[None]], kind: Any = None
    ) -> Any:
        """The same for a method that streams; `take` gets the pieces, in order, before the result is returned."""
        stream = next(self._names)
        queue = self._streams[stream] = asyncio.Queue(WAITING)
        taking = asyncio.create_task(_drain(queue, take))
        try:
            asking = asyncio.ensure_future(self.call_value(name, {**params, "stream": stream}, kind))
            try:
                await asyncio.wait((asking, taking), return_when=asyncio.FIRST_COMPLETED)
                if taking.done():
                    taking.result()
                value = await asking
                await queue.join()
                return value
            finally:
                asking.cancel()
                with suppress(asyncio.CancelledError, HithertoError):
                    await asking
        finally:
            taking.cancel()
            del self._streams[stream]

    async def exact(self, data: bytes) -> bytes | Json:
        """An argument as it is sent: itself, or, if it is long, the name under which it was uploaded in pieces."""
        if len(data) <= PIECE_BYTES:
            return data
        name = next(self._names)
        for start in range(0, len(data), PIECE_BYTES):
            await self.ask(PREFIX + "hand_over", {"name": name, "data": data[start : start + PIECE_BYTES]})
        return {"handed_over": name}

    async def take_piece(self, piece: StreamPiece) -> None:
        """Pass a piece to whoever reads its stream."""
        if (queue := self._streams.get(piece.stream)) is not None:
            await queue.put(piece.data)

    @asynccontextmanager
    async def in_order(self, about: str | None) -> AsyncIterator[None]:
        """Those who say something to one session leave this block in the order in which they came to it, however much
        they upload in it."""
        if about is None:
            yield
            return
        place = self._order.enter(about)
        try:
            yield
            await place.found(())
        finally:
            place.leave()

    async def _wire_arguments(self, name: str, arguments: Json) -> Json:
        fields = fields_of(name)
        given: Json = {}
        for each, value in arguments.items():
            if each not in fields:
                raise InvalidInput(f"a remote call does not take {each}")
            field = fields[each]
            given[each] = await self.exact(to_bytes(value, field.type)) if field.exact else value
        return given

    def _lost_error(self) -> HithertoError:
        if self._socket.close_code == REVOKED:
            return StoreUnavailable(f"{self._address.shown} {UNKNOWN}")
        return StoreUnavailable(
            f"the connection to {self._address.shown} was lost; the last request may have been carried out"
        )


async def _drain(queue: asyncio.Queue[bytes], take: Callable[[bytes], Awaitable[None]]) -> None:
    while True:
        await take(await queue.get())
        queue.task_done()


async def _on_piece(connection: ServerConnection, piece: StreamPiece) -> None:
    await connection.take_piece(piece)


NOTIFICATIONS = {"store.told": Method(_on_piece, StreamPiece)}


class _Socket:
    """See `rpc.transport.Transport`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes | None:
        try:
            return await self._socket.recv(decode=False)
        except ConnectionClosed:
            return None

    async def send(self, data: bytes) -> None:
        try:
            await self._socket.send(data, text=True)
        except ConnectionClosed:
            raise Gone from None


class _ConnectWithoutRedirects(connect):
    """Follows no redirect: it would take the token along."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@asynccontextmanager
async def open_connection(address: Address) -> AsyncIterator[ServerConnection]:
    """A connection to the server, for as long as the block runs."""
    socket = await open_socket(address, token_for(address))
    try:
        connection = ServerConnection(address, socket)
        running = asyncio.create_task(connection.run())
        try:
            yield connection
        finally:
            await socket.close()
            await running
    finally:
        await socket.close()


async def open_socket(address: Address, secret: str) -> ClientConnection:
    """A WebSocket that is authenticated with this secret. Raises `StoreUnavailable`."""
    try:
        return await _ConnectWithoutRedirects(
            address.socket,
            additional_headers={"Authorization": f"Bearer {secret}"},
            ssl=_ssl_context() if address.tls else None,
            proxy=None if address.on_this_machine else True,
            compression=None,
            max_size=ANSWER_BYTES,
            open_timeout=OPEN_SECONDS,
            close_timeout=CLOSE_SECONDS,
            logger=_silent,
        )
    except InvalidStatus as error:
        raise _refused_error(address, error.response.status_code) from None
    except ssl.SSLCertVerificationError as error:
        raise StoreUnavailable(
            f"the certificate of {address.shown} is not valid: {error.verify_message}"
        ) from None
    except (OSError, WebSocketException) as error:
        text = f"cannot reach {address.shown}: {_reason(error)}"
        raise StoreUnavailable(f"{text}; is `hitherto serve` running there?") from None


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "it does not answer"
        case OSError(errno=number, strerror=text) if number is not None:
            return os.strerror(number) if number > 0 else text or "unknown host name"
    return (
        "it does not answer as a WebSocket server"
        if isinstance(error, WebSocketException)
        else "the connection broke off"
    )


def _refused_error(address: Address, status: int) -> HithertoError:
    texts = {UNAUTHORISED: UNKNOWN, FORBIDDEN: "refuses this connection"}
    return StoreUnavailable(
        f"{address.shown} {texts.get(status, f'answered with status {status}; is it a Hitherto server?')}"
    )


def _ssl_context() -> ssl.SSLContext:
    """Checks the server's certificate."""
    authority = os.environ.get(CA_FILE) or None
    try:
        return ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(
            f"cannot read the certificates in {authority}: {error.strerror or 'not a PEM file'}"
        ) from None
