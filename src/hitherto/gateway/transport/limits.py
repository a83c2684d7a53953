"""Rate limits and connection limits. Pure: the clock is passed in."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from hitherto.model import Value
from hitherto.rpc.transport import LINE_BYTES

MESSAGE_BYTES = LINE_BYTES
"""The longest message of an authenticated client: a request over HTTP, a frame of a socket."""
STRANGER_BYTES = 64 * 1024
"""The longest message before authentication: a frame of a socket, the head of a request."""
KEYS = 10_000


class Limits(Value, frozen=True):
    """What one server allows. Rates are per second; a burst is what may come at once before the rate counts.

    A *stranger* is who has not shown a good token. `stall_seconds`: a peer that takes nothing for so long is given up.
    `answer_bytes`: so much of long answers is made, or on its way, at one time, in all and for each token.
    `receive_bytes`: so much of requests is being received at one time, in all and for each token.
    `page_effort`: CPU seconds for the Markdown, code and differences of one page, the rest of which is plain text;
    `page_seconds`: when a process that makes a page and does not answer is killed.
    """

    rate: float = 5_000.0
    burst: int = 10_000
    stranger_rate: float = 10.0
    stranger_burst: int = 100
    connections: int = 4_096
    peer_connections: int = 2_048
    stranger_sockets: int = 32
    subscriptions: int = 64
    stranger_seconds: float = 5.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    stall_seconds: float = 20.0
    linger_seconds: float = 5.0
    answer_bytes: int = 512 * 1024 * 1024
    answer_bytes_each: int = 128 * 1024 * 1024
    receive_bytes: int = 4 * MESSAGE_BYTES
    receive_bytes_each: int = 2 * MESSAGE_BYTES
    page_effort: float = 2.0
    page_seconds: float = 30.0


class Buckets:
    """A bucket for each key, which fills at a rate. The least recently used are forgotten beyond `KEYS`."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: dict[Hashable, tuple[float, float]] = {}

    def take(self, key: Hashable) -> float:
        """Take one; 0 if there was one, else the seconds until there will be."""
        now = self._clock()
        level, at = self._levels.pop(key, (float(self._burst), now))
        level = min(float(self._burst), level + (now - at) * self._rate)
        wait = 0.0 if level >= 1 else (1 - level) / self._rate if self._rate else float("inf")
        self._levels[key] = (level if wait else level - 1, now)
        if len(self._levels) > KEYS:
            del self._levels[next(iter(self._levels))]
        return wait


class Room:
    """A limit on open connections, in all and for each peer."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._holders: dict[Hashable, str] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def enter(self, holder: Hashable, peer: str) -> bool:
        """Take a place until `leave`; False if none is free."""
        if len(self._holders) >= self._most or self._counts.get(peer, 0) >= self._most_each:
            return False
        self._holders[holder] = peer
        self._counts[peer] = self._counts.get(peer, 0) + 1
        return True

    def leave(self, holder: Hashable) -> None:
        """Give the place back, if the holder has one."""
        peer = self._holders.pop(holder, None)
        if peer is not None:
            self._counts[peer] -= 1
            if not self._counts[peer]:
                del self._counts[peer]


def peer_name(address: str) -> str:
    """One name for one peer: an address of IPv4 in any of its forms, of IPv6 the network that one house has."""
    with suppress(ValueError):
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(parsed, ipaddress.IPv4Address):
            return str(parsed)
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(parsed if parsed.is_loopback else ipaddress.ip_network((parsed, 64), strict=False))
    return address


class Incoming:
    """Bytes of requests that are being received, in all and by token."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._bytes: Counter[str] = Counter()
        self.total = 0

    def take(self, token: str, size: int) -> bool:
        """Count so many more until `free`; False, and nothing is counted, if that is too much."""
        if self.total + size > self._most or self._bytes[token] + size > self._most_each:
            return False
        self._bytes[token] += size
        self.total += size
        return True

    def free(self, token: str, size: int) -> None:
        """So many are received, or will never be."""
        self.total -= size
        self._bytes[token] -= size
        if not self._bytes[token]:
            del self._bytes[token]


class Outgoing:
    """Bytes of answers, in all and by token. What is on its way counts; what is about to be made waits until there is room."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._bytes: Counter[str] = Counter()
        self._waiting: list[asyncio.Future[None]] = []
        self.total = 0

    @asynccontextmanager
    async def making(self, token: str, size: int) -> AsyncIterator[None]:
        """Make an answer of at most this size while the block runs; one alone may always be made."""
        while size and not self._has_room(token, size):
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(gone)
            await gone
        with self.sending(token, size):
            yield

    @contextmanager
    def sending(self, token: str, size: int) -> Iterator[None]:
        """So much is on its way to the reader while the block runs."""
        self._bytes[token] += size
        self.total += size
        try:
            yield
        finally:
            self.total -= size
            self._bytes[token] -= size
            if not self._bytes[token]:
                del self._bytes[token]
            waiting, self._waiting = self._waiting, []
            for gone in waiting:
                if not gone.done():
                    gone.set_result(None)

    def _has_room(self, token: str, size: int) -> bool:
        """Whether so much more is not too much; one alone never is."""
        own = self._bytes.get(token, 0)
        return (not own or own + size <= self._most_each) and (
            not self.total or self.total + size <= self._most
        )
