"""Numbers, times and folders as the page says them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


def count(number: int) -> str:
    """A number in at most four characters: 950, 1.2k, 18k, 3.4M."""
    for size, unit in _UNITS:
        if number >= size:
            value = number / size
            return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
    return str(number)


def size(number: int) -> str:
    """Bytes: 950 bytes, 12 kB, 3.4 MB."""
    if number < 1_000:
        return f"{number} byte{'' if number == 1 else 's'}"
    told = count(number)
    return f"{told[:-1]} {told[-1]}B"


def cost(dollars: float) -> str:
    """An amount of money; what is less than a cent is not nothing."""
    if dollars < 0.01:
        return "<$0.01"
    return f"${dollars:,.2f}" if dollars < 1_000 else f"${dollars:,.0f}"


def age(at: int, now: int) -> str:
    """How long ago that was, or its day if it was long ago."""
    passed = now - at
    if passed < MINUTE:
        return "now"
    if passed < HOUR:
        return f"{passed // MINUTE} min"
    if passed < DAY:
        return f"{passed // HOUR} h"
    if passed < 7 * DAY:
        return f"{passed // DAY} d"
    when, today = _when(at), _when(now)
    if when is None or today is None:
        return "?"
    return f"{when.day} {when:%b}" if when.year == today.year else f"{when.day} {when:%b} {when.year}"


def moment(at: int) -> str:
    """A time to read; scripts turn it into the reader's own."""
    when = _when(at)
    return "an unknown time" if when is None else f"{when:%Y-%m-%d %H:%M} UTC"


def iso(at: int) -> str:
    """A time for programs."""
    when = _when(at)
    return "" if when is None else f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03}Z"


def folder(path: str) -> str:
    """The end of a path: what tells projects apart."""
    return "/".join(path.rstrip("/").split("/")[-2:]) or "/"


def _when(at: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(at / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return None
