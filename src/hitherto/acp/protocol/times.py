"""Times as the protocol writes them: RFC 3339 in UTC, with a `Z` (editors drop dates without an offset)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from hitherto.errors import InvalidInput

MINUTE_MS = 60_000
LAST_MS = 253_402_300_799_999
"""The end of the year 9999; readers do not accept later times."""


_SECONDS = tuple(f"{second:02}.".encode() for second in range(60))
_THOUSANDTHS = tuple(f"{rest:03}Z".encode() for rest in range(1000))


def rfc3339(ms: int) -> str:
    """A time in milliseconds as text."""
    return b"".join(rfc3339_pieces(ms)).decode()


def rfc3339_pieces(ms: int) -> tuple[bytes, bytes, bytes]:
    """The same as bytes that are not joined yet: a replay joins them with the rest of its lines."""
    if not 0 <= ms <= LAST_MS:
        ms = min(max(ms, 0), LAST_MS)
    minute, rest = divmod(ms, MINUTE_MS)
    return _minute(minute), _SECONDS[rest // 1000], _THOUSANDTHS[rest % 1000]


def milliseconds(text: str) -> int:
    """Parse a time; without an offset it is UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


@lru_cache(maxsize=1_000)
def _minute(minute: int) -> bytes:
    """The time up to the minute: entries that follow each other mostly share it."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:").encode()
