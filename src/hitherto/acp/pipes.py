"""Messages as lines over two file descriptors, such as a program's standard input and output."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from hitherto.rpc.errors import Gone
from hitherto.rpc.transport import FrameTooLong, Lines

CHUNK = 256 * 1024
PIPE_BYTES = 1024 * 1024
LINGER_SECONDS = 5.0

Take = Callable[[list[bytes | FrameTooLong]], Awaitable[None] | None]


class Pipes:
    """See `rpc.transport.Transport`. `lines` may hold what was read before.

    Nothing is buffered beyond the message being sent: if the pipe is full, `send` waits.
    """

    def __init__(self, source: int, target: int, lines: Lines | None = None) -> None:
        self._source = source
        self._target = target
        self._lines = Lines() if lines is None else lines
        self._gone = False
        self._written = 0
        self._rest = memoryview(b"")
        self._sent: asyncio.Future[None] | None = None
        self._was_blocking = os.get_blocking(target)
        os.set_blocking(target, False)
        with suppress(OSError, AttributeError):  # fewer changes between us and the reader; only Linux has it
            fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def close(self) -> None:
        """Restore the descriptors' blocking mode; they stay open."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._source)
        loop.remove_writer(self._target)
        with suppress(OSError):
            os.set_blocking(self._target, self._was_blocking)

    async def receive(self) -> bytes | None:
        return await self._lines.next_line(self._next)

    async def deliver(self, take: Take) -> None:
        """Pass all messages to `take` as they arrive, without a task in between, until the peer closes; use it instead of
        `receive`. If `take` returns an awaitable, reading pauses until it is done."""
        loop, ended = asyncio.get_running_loop(), False

        def ready() -> None:
            nonlocal ended
            try:
                ended = not self._feed()
                waiting = take(self._lines.take_all())
                if waiting is not None or ended:
                    loop.remove_reader(self._source)
                    paused.set_result(waiting)
            except BaseException as error:  # noqa: BLE001 - whoever waits for the end hears of it
                loop.remove_reader(self._source)
                paused.set_exception(error)

        while not ended:
            paused: asyncio.Future[Awaitable[None] | None] = loop.create_future()
            loop.add_reader(self._source, ready)
            try:
                waiting = await paused
            finally:
                loop.remove_reader(self._source)
            if waiting is not None:
                await waiting

    def _feed(self) -> bool:
        """Read what is available. Returns False at the end of the input."""
        try:
            chunk = os.read(self._source, CHUNK)
        except BlockingIOError:
            return True
        except ConnectionError:
            chunk = b""
        if chunk:
            self._lines.feed(chunk)
        else:
            self._lines.finish()
            self._linger(-1)
        return bool(chunk)

    async def send(self, data: bytes) -> None:
        await self._wait_written()
        self._rest = memoryview(data)
        self._write()
        await self._wait_written()

    def send_now(self, data: bytes) -> bool:
        """Send this if nothing else is being sent; else return False. Bytes that the pipe does not take at once follow
        later."""
        if self._rest or self._gone:
            return False
        self._rest = memoryview(data)
        self._write()
        return True

    def _linger(self, written: int) -> None:
        """After the end of the input, give up on the peer once it stops reading too."""
        if self._rest and self._written == written:
            self._gone = True
            self._finish()
        elif not self._gone:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._linger, self._written)

    async def _next(self) -> bytes:
        chunk = await self._read()
        if not chunk:
            self._linger(-1)
        return chunk

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._source, _settle, ready)
        except PermissionError:  # a plain file is always ready
            return os.read(self._source, CHUNK)
        try:
            await ready
            return os.read(self._source, CHUNK)
        except BlockingIOError:  # the same open file as the target, and somebody else was quicker
            return await self._read()
        except ConnectionError:
            return b""
        finally:
            loop.remove_reader(self._source)

    async def _wait_written(self) -> None:
        """Wait until everything sent is written."""
        while self._rest and not self._gone:
            if self._sent is None:
                self._sent = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._sent)
        if self._gone:
            raise Gone

    def _write(self) -> None:
        """Write as much as the pipe takes; the loop calls this again when it takes more."""
        try:
            while self._rest:
                written = os.write(self._target, self._rest)
                self._written += written
                self._rest = self._rest[written:]
        except BlockingIOError:
            asyncio.get_running_loop().add_writer(self._target, self._write)
            return
        except OSError:
            self._gone = True
        self._finish()

    def _finish(self) -> None:
        """Everything is written, or the peer is gone."""
        self._rest = memoryview(b"")
        asyncio.get_running_loop().remove_writer(self._target)
        if self._sent is not None:
            self._sent.set_result(None)
            self._sent = None


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
