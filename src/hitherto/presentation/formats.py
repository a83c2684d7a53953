"""Numbers, amounts, times, folders and marks as people read them, on every surface. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from hitherto.edits.changes import EditCounts
from hitherto.model import Found, Session
from hitherto.values.days import DAY_MS
from hitherto.values.usage.requests import UsageSum

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
        return counted(number, "byte")
    shown = count(number)
    return f"{shown[:-1]} {shown[-1]}B"


def grouped(number: int) -> str:
    """A whole number: 1,234,567."""
    return f"{number:,}"


def plural(number: int, what: str, many: str = "") -> str:
    """`message` for one, `messages` (or `many`) for another number of them."""
    return what if number == 1 else many or f"{what}s"


def counted(number: int, what: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {plural(number, what)}"


def changed(counts: EditCounts) -> str:
    """What edits changed: +36 −3, 2 files; nothing if there are none."""
    return f"+{counts.added} −{counts.removed}, {counted(counts.files, 'file')}" if counts.files else ""


def found(what: Found) -> str:
    """How much a search finds: `3 hits in 2 sessions`, `1,000+ hits in 214+ sessions`."""
    more = "+" * what.more
    sessions = f"{what.sessions:,}{more} {plural(what.sessions + what.more, 'session')}"
    return (
        f"{what.hits:,}{more} {plural(what.hits + what.more, 'hit')} in {sessions}" if what.hits else sessions
    )


def cost(dollars: float) -> str:
    """An amount of money; what is less than a cent is not nothing."""
    if 0 < dollars < 0.01:
        return "<$0.01"
    return f"${dollars:,.2f}" if dollars < 1_000 else f"${dollars:,.0f}"


def exact_cost(dollars: float) -> str:
    """An amount of money; of less than a cent its hundredths too."""
    return f"${dollars:.4f}" if 0 < dollars < 0.01 else cost(dollars)


def about_cost(used: UsageSum, form: Callable[[float], str] = cost) -> str:
    """What was used in money: `≈` before it if some is estimated, `+` behind it if some requests have no known price."""
    if used.cost is None:
        return "?" if used.requests else "$0.00"
    return f"{'≈' if used.is_estimated else ''}{form(used.cost)}{'+' if used.unpriced else ''}"


def duration(ms: int) -> str:
    """How long something took: 0.4 s, 41 s, 12 min, 3 h 20 min, 2 d 4 h."""
    if ms < 10_000:
        return f"{ms / 1_000:.1f} s"
    if ms < MINUTE:
        return f"{ms // 1_000} s"
    if ms < HOUR:
        return f"{ms // MINUTE} min"
    large, small, names = (HOUR, MINUTE, ("h", "min")) if ms < DAY else (DAY, HOUR, ("d", "h"))
    rest = ms % large // small
    return f"{ms // large} {names[0]}{f' {rest} {names[1]}' if rest else ''}"


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


def brief_age(at: int, now: int) -> str:
    """How long ago that was, in at most four characters: now, 5m, 3h, 2d, 6w, 2y."""
    passed = max(0, now - at)
    for size, unit in ((365 * DAY, "y"), (14 * DAY, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if passed >= size:
            return f"{passed // (7 * DAY if unit == 'w' else size)}{unit}"
    return "now"


def moment(at: int) -> str:
    """A time to read; scripts turn it into the reader's own."""
    return _formatted(at, "%Y-%m-%d %H:%M UTC", "an unknown time")


def exact_moment(at: int) -> str:
    """A time that reads the same everywhere: 2025-06-01 12:00:00 UTC."""
    return _formatted(at, "%Y-%m-%d %H:%M:%S UTC", f"{at} ms")


def day(at: int) -> str:
    """The day of a time, in UTC: 2025-06-01."""
    return _formatted(at, "%Y-%m-%d", "an unknown day")


def iso(at: int) -> str:
    """A time for programs, to the millisecond."""
    return _formatted(at, f"%Y-%m-%dT%H:%M:%S.{at % 1000:03}Z", "")


def utc(at: int | None) -> str:
    """A time for programs and pipes: 2025-06-01T12:00:00Z."""
    return "" if at is None else _formatted(at, "%Y-%m-%dT%H:%M:%SZ", f"{at} ms")


def local(at: int | None) -> str:
    """A time for people, where they are: 2025-06-01 14:00."""
    if at is None:
        return ""
    when = _when(at)
    try:
        return f"{at} ms" if when is None else f"{when.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{at} ms"


def _formatted(at: int, form: str, otherwise: str) -> str:
    when = _when(at)
    return otherwise if when is None else when.strftime(form)


def _when(at: int) -> datetime | None:
    """None for a time outside the calendar: imported sessions keep their times, however odd."""
    try:
        return datetime.fromtimestamp(at / 1000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return None


def folder(path: str) -> str:
    """The end of a path: the part that differs between projects."""
    return "/".join(path.rstrip("/").split("/")[-2:]) or "/"


def title(session: Session) -> str:
    """The title, or what stands for one."""
    return session.title or "(no title)"


def project(session: Session) -> str:
    """The project in a word: the end of its name, or of the folder."""
    return (session.project or session.cwd or "").rstrip("/").rpartition("/")[2]


def marks(session: Session, *, failed: bool = False) -> str:
    """What is special about a session: pinned, archived, its status unless idle, its tags. `failed`: its last turn did."""
    return " ".join(_marks(session, failed=failed))


def _marks(session: Session, *, failed: bool) -> Iterator[str]:
    if session.pinned:
        yield "pinned"
    if session.archived:
        yield "archived"
    if session.status != "idle" or failed:
        yield "failed" if session.status == "idle" else session.status
    yield from (f"#{tag}" for tag in session.tags)


def short_folder(cwd: str | None) -> str:
    """A folder for people: their own begins with ~."""
    home = os.path.expanduser("~")
    if cwd and len(home) > 1 and (cwd == home or cwd.startswith(f"{home}/")):
        return f"~{cwd[len(home) :]}"
    return cwd or ""
