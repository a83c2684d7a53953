"""A WebSocket client that costs next to nothing, so that what is measured is the server: `Wire`."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections import deque
from typing import Any

import msgspec

Json = dict[str, Any]
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
UPGRADED = 101
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode


def frame(payload: bytes, kind: int = TEXT) -> bytes:
    """A frame of a client. The mask is zero, which leaves the payload as it is."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + b"\0\0\0\0" + payload


def request(method: str, params: Json, number: int = 1) -> bytes:
    """A request as a frame."""
    return frame(_encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))


class Wire(asyncio.Protocol):
    """One connection; its messages are read one after the other. `closed` says how the server has closed it."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._messages: deque[bytes] = deque()
        self._more: asyncio.Future[None] | None = None
        self._upgraded = False
        self.closed: int | None = None

    @classmethod
    async def open(cls, port: int, token: str, *, receive_bytes: int | None = None) -> Wire:
        """Connect and upgrade; `receive_bytes` bounds what the system takes in before it is read.

        Raises `OSError` if nobody is there or the server does not want it.
        """
        loop, made = asyncio.get_running_loop(), socket.socket()
        if receive_bytes is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        made.setblocking(False)
        await loop.sock_connect(made, ("127.0.0.1", port))
        _, wire = await loop.create_connection(cls, sock=made)
        key = base64.b64encode(os.urandom(16)).decode()
        wire.transport.write(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        while not wire._upgraded:
            if wire.closed is not None:
                raise ConnectionRefusedError(wire.closed)
            await wire._wait()
        return wire

    def send(self, data: bytes) -> None:
        """Send a frame."""
        self.transport.write(data)

    async def receive(self) -> bytes:
        """The next message; `ConnectionResetError` when there will be none."""
        while not self._messages:
            if self.closed is not None:
                raise ConnectionResetError(self.closed)
            await self._wait()
        return self._messages.popleft()

    async def call(self, method: str, params: Json) -> Any:
        """The result of a request; messages that are no answer are left out."""
        self.send(request(method, params))
        while True:
            answer = _decode(await self.receive())
            if "method" not in answer:
                assert "error" not in answer, answer
                return answer["result"]

    def pause(self) -> None:
        """Read nothing any more."""
        self.transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        self.transport.resume_reading()

    def close(self) -> None:
        """Leave without a word."""
        self.transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        self.closed = self.closed or 1006
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._upgraded:
            head, found, rest = bytes(self._data).partition(b"\r\n\r\n")
            if not found:
                return
            status = int(head.split(maxsplit=2)[1])
            if status != UPGRADED:
                self.closed = status
                self.close()
                return
            self._upgraded, self._data = True, bytearray(rest)
        while self._one():
            pass
        self._wake()

    def _one(self) -> bool:
        """Take one frame out of what has come; False if there is none that is whole."""
        data = self._data
        if len(data) < 2:
            return False
        kind, size, at = data[0] & 0xF, data[1], 2
        if size > 125:
            at = 4 if size == 126 else 10
            size = int.from_bytes(data[2:at], "big")
        if len(data) < at + size:
            return False
        payload = bytes(data[at : at + size])
        del data[: at + size]
        if kind == PING:
            self.send(frame(payload, PONG))
        elif kind == CLOSE:
            self.closed = int.from_bytes(payload[:2], "big")
        else:
            self._messages.append(payload)
        return True

    async def _wait(self) -> None:
        self._more = asyncio.get_running_loop().create_future()
        await self._more

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
