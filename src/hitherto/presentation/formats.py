"""Numbers, times and folders as the page says them. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from hitherto.model import Session
from hitherto.values.days import DAY_MS

MINUTE, HOUR, DAY = 60_000, 3_600_000, DAY_MS
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


def utc(ms: int | None) -> str:
    """A time for programs and pipes: 2025-06-01T12:00:00Z."""
    return "" if ms is None else _formatted(ms, "%Y-%m-%dT%H:%M:%SZ", local=False)


def local(ms: int | None) -> str:
    """A time for people, where they are: 2025-06-01 14:00."""
    return "" if ms is None else _formatted(ms, "%Y-%m-%d %H:%M", local=True)


def _formatted(ms: int, form: str, *, local: bool) -> str:
    try:
        moment = datetime.fromtimestamp(ms / 1000, tz=UTC)
        return (moment.astimezone() if local else moment).strftime(form)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"  # imported sessions keep their times, however odd


def byte_size(count: int) -> str:
    """A number of bytes for people: 1.2 MB."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def counted(count: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def title(session: Session) -> str:
    """The title, or what stands for one."""
    return session.title or "(no title)"


def marks(session: Session) -> str:
    """What is special about a session: pinned, archived, its status unless idle, its tags."""
    return " ".join(_marks(session))


def _marks(session: Session) -> Iterator[str]:
    if session.pinned:
        yield "pinned"
    if session.archived:
        yield "archived"
    if session.status != "idle":
        yield session.status
    yield from (f"#{tag}" for tag in session.tags)


def short_folder(cwd: str | None) -> str:
    """A folder for people: their own begins with ~."""
    home = os.path.expanduser("~")
    if cwd and len(home) > 1 and (cwd == home or cwd.startswith(f"{home}/")):
        return f"~{cwd[len(home) :]}"
    return cwd or ""
