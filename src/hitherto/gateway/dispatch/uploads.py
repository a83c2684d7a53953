"""Uploads: arguments that are too long for one message, sent in pieces before they are used. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from time import monotonic

from hitherto.errors import TooLarge
from hitherto.limits import IMPORT_BYTES, RAW_BYTES
from hitherto.model import Value


class Bounds(Value, frozen=True):
    """How much may be uploaded for one token and in all, and how long an upload may stay idle."""

    each: int = IMPORT_BYTES + RAW_BYTES
    """A session, and the file that it was read from."""
    most: int = 2 * (IMPORT_BYTES + RAW_BYTES)
    names: int = 64
    """Uploads of one token."""
    seconds: float = 30.0


@dataclass
class _Waiting:
    token: str
    at: float
    data: bytearray = field(default_factory=bytearray)


class Uploads:
    """The unused uploads of one server. They are discarded with their connection."""

    def __init__(self, bounds: Bounds = Bounds(), clock: Callable[[], float] = monotonic) -> None:  # noqa: B008 - a frozen value
        self._bounds, self._clock = bounds, clock
        self._waiting: dict[tuple[Hashable, str], _Waiting] = {}

    def __len__(self) -> int:
        """The bytes of all uploads."""
        return sum(len(waiting.data) for waiting in self._waiting.values())

    def add(self, line: Hashable, token: str, name: str, data: bytes) -> int:
        """Add a piece; returns the size so far. Raises `TooLarge` and discards the connection's uploads beyond the limits."""
        self.forget()
        waiting = self._waiting.setdefault((line, name), _Waiting(token, 0.0))
        if not self._fits(token, len(data)):
            self.drop(line)
            raise TooLarge(
                f"uploads must not exceed {self._bounds.each} bytes per token and {self._bounds.most} in all;"
                " the uploads of this connection were discarded"
            )
        waiting.data.extend(data)
        waiting.at = self._clock()
        return len(waiting.data)

    def take(self, line: Hashable, name: str) -> bytes | None:
        """Take an upload, once; None if there is none of this name."""
        waiting = self._waiting.pop((line, name), None)
        return None if waiting is None else bytes(waiting.data)

    def drop(self, line: Hashable) -> None:
        """Discard the uploads of this connection."""
        for name in [name for name in self._waiting if name[0] is line]:
            del self._waiting[name]

    def forget(self) -> None:
        """Discard idle uploads."""
        before = self._clock() - self._bounds.seconds
        for name in [name for name, waiting in self._waiting.items() if waiting.at < before]:
            del self._waiting[name]

    def _fits(self, token: str, more: int) -> bool:
        bounds = self._bounds
        sizes = [len(waiting.data) for waiting in self._waiting.values() if waiting.token == token]
        return (
            len(sizes) <= bounds.names
            and sum(sizes) + more <= bounds.each
            and len(self) + more <= bounds.most
        )
