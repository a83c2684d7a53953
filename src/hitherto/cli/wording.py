"""Sessions, times and sizes in words."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from hitherto.model import Session


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


def size(count: int) -> str:
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
