"""Long answers: how much of them is being made, or waits for its reader, at one time.

An answer is made as a whole. Somebody who asks for many and reads none would have the server keep them all, so those of
one token wait for each other beyond a bound: making the next one begins when enough of the earlier ones has gone out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class Outgoing:
    """Bytes by token. What is on its way counts; what is about to be made waits until there is room for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes: Counter[str] = Counter()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def making(self, token: str, size: int) -> AsyncIterator[None]:
        """Make an answer of at most this size while the block runs; one alone may always be made."""
        while size and self._bytes[token] and self._bytes[token] + size > self._most:
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(token, []).append(gone)
            await gone
        with self.sending(token, size):
            yield

    @contextmanager
    def sending(self, token: str, size: int) -> Iterator[None]:
        """So much is on its way to the reader while the block runs."""
        self._bytes[token] += size
        try:
            yield
        finally:
            self._bytes[token] -= size
            if not self._bytes[token]:
                del self._bytes[token]
            for gone in self._waiting.pop(token, ()):
                if not gone.done():
                    gone.set_result(None)
