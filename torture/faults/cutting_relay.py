"""A relay on loopback between the program and PostgreSQL, which breaks the connection at the n-th statement.

Before it: PostgreSQL never sees the statement. After it: PostgreSQL has done it, and nobody hears that.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from torture.trial.network import first_of

QUERY, EXECUTE, SYNC, READY = b"Q", b"E", b"S", b"Z"
STATEMENTS = (QUERY, EXECUTE)
A_SYNC = SYNC + struct.pack("!I", 4)
HEAD = 4
"""The bytes of a length, which counts itself."""
MOST_AT_ONCE = 1 << 16
HOST = "127.0.0.1"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Message(NamedTuple):
    """A message of PostgreSQL's protocol. The first of a connection has no kind."""

    kind: bytes
    data: bytes


async def _messages(reader: asyncio.StreamReader, *, untyped_first: bool) -> AsyncIterator[list[Message]]:
    """All that have come whole, each time that something comes."""
    kind_bytes, rest = int(not untyped_first), b""
    while more := await reader.read(MOST_AT_ONCE):
        rest += more
        found, start = list[Message](), 0
        while len(rest) >= (body := start + kind_bytes) + HEAD:
            end = body + struct.unpack_from("!I", rest, body)[0]
            if end > len(rest):
                break
            found.append(Message(rest[start:body], rest[start:end]))
            start, kind_bytes = end, 1
        rest = rest[start:]
        yield found


class _Link:
    """One connection. PostgreSQL says that it is ready once after the start, and once for each sync and simple query."""

    def __init__(self) -> None:
        self.asked, self.ready = 1, 0
        self.is_mute = False
        """Whether nothing that PostgreSQL says is passed on any more."""
        self.settled = asyncio.Event()


class CuttingRelay:
    """Counts statements of all connections together."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._links: set[asyncio.Task[None]] = set()
        self._at = self._count = 0
        self._after = False
        self.has_struck = False
        self.port = 0

    @contextmanager
    def cutting(self, at: int, *, after: bool) -> Iterator[None]:
        """Within, the connection breaks before the statement of this number, or after it."""
        self._count, self._after, self.has_struck = 0, after, False
        self._at = at
        try:
            yield
        finally:
            self._at = 0

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        link = _Link()
        try:
            there = await asyncio.open_unix_connection(self._target)
            try:
                await first_of(
                    asyncio.create_task(self._forth((reader, writer), there, link)),
                    asyncio.create_task(self._back((reader, writer), there, link)),
                )
            finally:
                there[1].transport.abort()
        except (OSError, asyncio.CancelledError):
            pass  # one of the two has gone
        finally:
            writer.transport.abort()
            self._links.discard(task)

    async def forget(self) -> None:
        """Break every connection."""
        links = tuple(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _forth(self, here: Streams, there: Streams, link: _Link) -> None:
        async for messages in _messages(here[0], untyped_first=True):
            cut = next((at for at, each in enumerate(messages) if self._is_the_one(each)), None)
            passed = messages if cut is None else messages[: cut + self._after]
            link.asked += sum(each.kind in (QUERY, SYNC) for each in passed)
            link.is_mute = cut is not None
            there[1].write(b"".join(each.data for each in passed))
            if cut is None:
                await there[1].drain()
                continue
            if self._after:
                if messages[cut].kind == EXECUTE:
                    link.asked += 1
                    there[1].write(A_SYNC)
                await link.settled.wait()
            return

    async def _back(self, here: Streams, there: Streams, link: _Link) -> None:
        async for messages in _messages(there[0], untyped_first=False):
            link.ready += sum(each.kind == READY for each in messages)
            if not link.is_mute:
                here[1].write(b"".join(each.data for each in messages))
                await here[1].drain()
            elif link.ready == link.asked:
                link.settled.set()

    def _is_the_one(self, message: Message) -> bool:
        if not self._at or message.kind not in STATEMENTS:
            return False
        self._count += 1
        self.has_struck = self.has_struck or self._count == self._at
        return self._count == self._at


@asynccontextmanager
async def relayed(target: Path) -> AsyncIterator[CuttingRelay]:
    """A relay before PostgreSQL's own socket."""
    relay = CuttingRelay(target)
    listener = await asyncio.start_server(relay.met, HOST, 0)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listener.close()
        await relay.forget()
