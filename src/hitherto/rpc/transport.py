"""What a peer needs of whatever carries its messages, and lines out of chunks of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

LINE_BYTES = 32 * 1024 * 1024
"""The longest message that is taken: an entry of 16 MB with everything in it escaped still fits."""


HEAD_BYTES = 1024


class FrameTooLong(Exception):
    """The peer has sent a message beyond `LINE_BYTES`. It was not kept but for its `head`; the next one can be
    received."""

    def __init__(self, head: bytes = b"") -> None:
        super().__init__()
        self.head = head


class Transport(Protocol):
    """Carries messages both ways, one at a time in each direction."""

    async def receive(self) -> bytes | None:
        """The next message, None when the peer has left. Raises `FrameTooLong`."""
        ...

    async def send(self, data: bytes) -> None:
        """Hand over one or more whole lines, and return when they are on their way: a peer that does not read holds up
        whoever sends, and nothing piles up here. Raises `Gone` if the peer has left. What was begun is sent whole, even
        if the caller is cancelled meanwhile. Never called by two at once."""
        ...


class Lines:
    """Cuts a stream of bytes into lines; one that grows too long is dropped while it comes, and noted."""

    def __init__(self, longest: int = LINE_BYTES) -> None:
        self._longest = longest
        self._ready: deque[bytes | FrameTooLong] = deque()
        self._rest = bytearray()
        self._dropped: FrameTooLong | None = None
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Continue with these bytes."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._grow(piece)
            self._end()
        self._grow(rest)

    def finish(self) -> None:
        """The stream has ended; what came after the last newline is a line too."""
        if self._rest or self._dropped:
            self._end()
        self._ended = True

    def __bool__(self) -> bool:
        return bool(self._ready)

    async def next_line(self, read: Callable[[], Awaitable[bytes]]) -> bytes | None:
        """The next line, out of what is there or what `read` brings, which is nothing at the end; None if there is none.
        Raises `FrameTooLong` like `take`."""
        while not self._ready:
            if self._ended:
                return None
            if chunk := await read():
                self.feed(chunk)
            else:
                self.finish()
        return self.take()

    def take_all(self) -> list[bytes | FrameTooLong]:
        """All lines that are complete, and a `FrameTooLong` in the place of each that was dropped."""
        ready, self._ready = list(self._ready), deque()
        return ready

    def put_back(self, line: bytes | FrameTooLong) -> None:
        """Let this line be the next one again."""
        self._ready.appendleft(line)

    def take(self) -> bytes:
        """The next line that is complete. Raises `FrameTooLong` in the place of one that was dropped."""
        line = self._ready.popleft()
        if isinstance(line, FrameTooLong):
            raise line
        return line

    def _grow(self, piece: bytes) -> None:
        if not self._dropped:
            self._rest += piece
        if len(self._rest) > self._longest:
            self._rest, self._dropped = bytearray(), FrameTooLong(bytes(self._rest[:HEAD_BYTES]))

    def _end(self) -> None:
        line = self._dropped or bytes(self._rest)
        self._rest, self._dropped = bytearray(), None
        if isinstance(line, FrameTooLong) or line.strip():
            self._ready.append(line)
