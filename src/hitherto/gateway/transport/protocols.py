"""The protocols of the HTTP server, with what they lack: bounds for those who send, and an end for those who do not read.

An application can ask for a connection to be closed, which waits until the peer has read what is left for it. A peer
that reads nothing would keep its connection, and all that is buffered for it, for ever. So these give up by themselves.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.types import Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from hitherto.gateway.transport.limits import (
    MESSAGE_BYTES,
    STRANGER_BYTES,
    Incoming,
    Limits,
    Room,
    peer_name,
)
from hitherto.rpc.errors import Gone

BUFFER_BYTES = 64 * 1024
MESSAGE_COST = 512
"""What a message costs beside its bytes: many small ones are much too."""
BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
TOO_MUCH = "too many bytes are being received: send fewer long messages at a time"
TOO_SLOW = "too slow: subscribe again from the last cursor"
NO_TEXT, POLICY, TRY_LATER, RESTARTING = 1003, 1008, 1013, 1012
LINE = "hitherto.line"
"""The extension of a WebSocket's scope under which its `Line` is found."""


class Stall:
    """Calls when a transport has taken nothing for a while, though it was given something."""

    def __init__(self, transport: asyncio.WriteTransport, seconds: float, call: Callable[[], None]) -> None:
        self._transport, self._seconds, self._call = transport, seconds, call
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0

    def watch(self) -> None:
        """From now on; what is left is looked at again and again."""
        self._left = self._transport.get_write_buffer_size()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def rest(self) -> None:
        """All is taken, or nothing matters any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._left:
            self.watch()
        else:
            self._call()


class HttpLine(HttpToolsProtocol):
    """A connection over which requests come. Their heads are bounded in bytes and in time."""

    limits: Limits
    room: Room

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        super().connection_made(transport)
        self._stall = Stall(transport, self.limits.stall_seconds, transport.abort)
        self._head_bytes = self._field_bytes = 0
        self._in_head, self._refused = True, False
        self._deadline = self.loop.call_later(self.limits.head_seconds, transport.abort)
        if not self.room.enter(transport, peer_name(self.client[0] if self.client else "")):
            transport.write(BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()
        self._stall.rest()
        self.room.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        in_head = self._in_head
        super().data_received(data)
        if not (in_head and self._in_head):
            return
        self._head_bytes += len(data)
        if self._head_bytes > STRANGER_BYTES:
            self._refuse()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._deadline.cancel()
        self._deadline = self.loop.call_later(self.limits.head_seconds, self.transport.abort)
        self._head_bytes = self._field_bytes = 0
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._field_bytes += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._deadline.cancel()
        self._in_head = False
        if self._field_bytes + len(self.url) > STRANGER_BYTES:
            self._refuse()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            super().on_message_complete()

    def _refuse(self) -> None:
        """Leave: nothing of the request reaches the application, also if it is whole."""
        self._refused = True
        if not self.transport.is_closing():
            self.transport.write(TOO_LONG)
            self.transport.close()

    def _should_upgrade(self) -> bool:
        return not self._refused and super()._should_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        if not self._refused:
            super()._unsupported_upgrade_warning()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.watch()

    def resume_writing(self) -> None:
        self._stall.rest()
        super().resume_writing()


class SocketLine(WebSocketsSansIOProtocol):
    """A WebSocket. It takes text only, which it hands on as bytes; little of it until `trust`. Other frames close it, or are
    ignored."""

    ignores_binary = False
    limits: Limits
    room: Room
    incoming: Incoming

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._stall = Stall(transport, self.limits.stall_seconds, lambda: self.give_up(TRY_LATER, TOO_SLOW))
        self._ending: asyncio.TimerHandle | None = None
        self._unfinished: asyncio.TimerHandle | None = None
        self._trusted, self._untaken = False, 0
        self._token, self._partial = "", 0
        self.conn.max_message_size = STRANGER_BYTES
        transport.set_write_buffer_limits(high=BUFFER_BYTES)
        # Else the system would keep megabytes for a peer that does not read.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.rest()
        for timer in filter(None, (self._ending, self._unfinished)):
            timer.cancel()
        self._whole()
        self.room.leave(self.transport)
        super().connection_lost(exc)

    def trust(self, token: str) -> None:
        """The peer is known by its token: it may send what peers may send."""
        self._trusted, self._token = True, token
        self.conn.max_message_size = MESSAGE_BYTES

    def data_received(self, data: bytes) -> None:
        if self._trusted and not self.close_sent:
            if not self.incoming.take(self._token, len(data)):
                self.give_up(TRY_LATER, TOO_MUCH)
                return
            self._partial += len(data)
        super().data_received(data)

    def handle_ping(self) -> None:
        super().handle_ping()
        self._between()

    def handle_pong(self, event: Any) -> None:
        super().handle_pong(event)
        self._between()

    def _between(self) -> None:
        """A whole frame has come that belongs to no message."""
        if not self.frames:
            self._whole()

    def _whole(self) -> None:
        """Nothing of a message is waiting for its rest."""
        self.incoming.free(self._token, self._partial)
        self._partial = 0

    async def say(self, text: bytes) -> None:
        """Send a text frame; returns when the peer has taken most of it. Raises `Gone` if it has left."""
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise Gone
        try:
            self.conn.send_text(text)
        except InvalidState:
            raise Gone from None
        self.transport.write(b"".join(self.conn.data_to_send()))
        await self.writable.wait()

    def give_up(self, code: int, reason: str) -> None:
        """Say goodbye, for the case that the peer reads on, and leave soon whether it does or not."""
        self._stall.rest()
        self.stop_keepalive()
        if self._ending is None:
            if self.handshake_complete and not self.close_sent and not self.disconnected:
                self.close_sent = True
                with suppress(InvalidState):  # the peer was first
                    self.conn.send_close(code, reason)
                self.transport.write(b"".join(self.conn.data_to_send()))
            self._ending = self.loop.call_later(self.limits.linger_seconds, self.transport.abort)
            self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
            self.transport.close()

    async def run_asgi(self) -> None:
        self.scope["extensions"][LINE] = {LINE: self}
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # refused in good order: else the server calls it a fault

    def send_receive_event_to_app(self) -> None:
        """Hand a message on as bytes: whoever parses the JSON finds out whether it is UTF-8.

        The base class stops reading after each message until it is taken; this one stops only when many wait.
        """
        frames, self.frames = self.frames, []
        self._whole()
        if self._unfinished is not None:
            self._unfinished.cancel()
            self._unfinished = None
        if self.curr_msg_data_type != "text":
            if not self.ignores_binary:
                self.give_up(NO_TEXT, "text frames only")
        elif not self.close_sent:
            data = frames[0] if len(frames) == 1 else b"".join(frames)
            self.queue.put_nowait({"type": "websocket.receive", "bytes": data})
            self._untaken += len(data) + MESSAGE_COST
            if self._untaken > BUFFER_BYTES and not self.read_paused:
                self.read_paused = True
                self.transport.pause_reading()

    async def receive(self) -> Any:
        message = await super().receive()
        if message["type"] == "websocket.receive":
            self._untaken -= len(message["bytes"] or b"") + MESSAGE_COST
        return message

    def handle_text(self, event: Any) -> None:
        if not event.fin and self._unfinished is None:
            # Bits of a message could be sent for ever, and what was sent would have to be kept.
            reason = "timed out waiting for the rest of a message"
            seconds = self.limits.body_seconds
            self._unfinished = self.loop.call_later(seconds, lambda: self.give_up(POLICY, reason))
        super().handle_text(event)

    def keepalive_timeout(self) -> None:
        self.give_up(1011, "no answer to a ping")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.watch()

    def resume_writing(self) -> None:
        self._stall.rest()
        super().resume_writing()

    def shutdown(self) -> None:
        """The server ends: sockets that are served are closed by whoever serves them, when they are done."""
        if not self.handshake_complete:
            super().shutdown()
        elif not self._trusted:
            self.give_up(RESTARTING, "the server is shutting down")


async def received(line: SocketLine, receive: Receive) -> bytes | None:
    """The next message; None when there will be none."""
    message = await receive()
    if message["type"] != "websocket.receive" or line.close_sent:
        return None
    data: bytes = message["bytes"]
    return data


def protocols(limits: Limits, room: Room, incoming: Incoming) -> tuple[type[HttpLine], type[SocketLine]]:
    """Both protocols, for one server."""
    shared = {"limits": limits, "room": room, "incoming": incoming}
    return type("HttpLine", (HttpLine,), shared), type("SocketLine", (SocketLine,), shared)
