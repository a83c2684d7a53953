"""Sessions that their agent will delete soon, by its settings. Each rule is pure except for reading these settings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from hitherto.errors import SessionNotFound
from hitherto.model import Principal, Value
from hitherto.service import Sessions
from hitherto.sources.claude import files as claude_files
from hitherto.sources.gemini import source as gemini_source
from hitherto.sources.port import FoundSession, Source
from hitherto.sources.shared import files
from hitherto.sources.sync.ledger import Ledger, Seen

T = TypeVar("T", bound=msgspec.Struct)
HOUR = 3_600_000
DAY = 24 * HOUR
SOON = 7 * DAY
"""Sync names sessions that will be deleted within this time."""
SETTINGS = "settings.json"
_PERIOD = re.compile(r"(\d{1,6})([hdwm])", re.ASCII)
# A string, which stays, or a comment; either may be unterminated.
_COMMENT = re.compile(rb'("(?:[^"\\]|\\.)*"?)|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY}


class Expiring(Value, frozen=True):
    """An imported session that its agent will delete at about this time, or at its next start after it."""

    session: str
    source: str
    title: str | None
    at: int


class FoundExpiring(NamedTuple):
    """A found session, and when its agent will delete it."""

    found: FoundSession
    at: int


Rule = Callable[[Path, Sequence[FoundSession], int], Iterator[FoundExpiring]]
"""Given an agent's folder, the sessions found there and the time: what the agent deletes, sooner or later. The sessions
may include folders that cannot be read."""


class _Claude(msgspec.Struct, rename="camel"):
    cleanup_period_days: int = 30


class _Retention(msgspec.Struct, rename="camel"):
    enabled: bool = True
    max_age: str | None = "30d"
    max_count: int | None = None


class _General(msgspec.Struct, rename="camel"):
    session_retention: _Retention = msgspec.field(default_factory=_Retention)


class _Gemini(msgspec.Struct, rename="camel"):
    general: _General = msgspec.field(default_factory=_General)


def _claude(home: Path, found: Sequence[FoundSession], _: int) -> Iterator[FoundExpiring]:
    """Transcripts are deleted after so many days without a write, with those of their subagents."""
    days = max(_settings(_settings_file(home), _Claude).cleanup_period_days, 1)
    for each in found:
        if isinstance(each.where, claude_files.TranscriptFile) and each.where.agent is None:
            yield FoundExpiring(each, each.at + days * DAY)


def _gemini(home: Path, found: Sequence[FoundSession], now: int) -> Iterator[FoundExpiring]:
    """Transcripts are deleted when they are too old, or when their project has too many newer ones."""
    retention = _settings(_COMMENT.sub(rb"\1", _settings_file(home)), _Gemini).general.session_retention
    period = _PERIOD.fullmatch(retention.max_age or "")
    if not retention.enabled or (retention.max_age and period is None):
        return  # Gemini CLI deletes nothing if it does not understand its setting
    lasts = int(period[1]) * _UNITS[period[2]] if period else None
    projects = defaultdict[Path, list[FoundSession]](list)
    for each in sorted(found, key=lambda each: -each.at):
        if isinstance(each.where, gemini_source.Transcript) and each.where.parent is None:
            projects[each.where.project].append(each)
    # The session that is being started counts as one of those that stay.
    room = None if retention.max_count is None else max(retention.max_count - 1, 0)
    for sessions in projects.values():
        for place, each in enumerate(sessions):
            if room is not None and place >= room:
                yield FoundExpiring(each, now)
            elif lasts is not None:
                yield FoundExpiring(each, each.at + lasts)


RULES: Mapping[str, Rule] = {"claude": _claude, "gemini": _gemini}
"""The agents that delete old sessions; all others keep them."""


def soon_deleted(source: Source, found: Sequence[FoundSession], now: int) -> list[FoundExpiring]:
    """The found sessions that the agent will delete soon."""
    rule = RULES.get(source.name)
    if rule is None or not found:
        return []
    home = source.folders()[0].parent
    return [each for each in rule(home, found, now) if each.at <= now + SOON]


async def expiring(
    sessions: Sessions,
    who: Principal,
    ledger: Ledger,
    sources: Iterable[Source],
    found: Sequence[FoundSession],
    now: int,
) -> tuple[Expiring, ...]:
    """The imported sessions that their agents will delete soon, the first to be deleted first."""
    expiring = list[Expiring]()
    for source in sources:
        if source.name in RULES:
            own = [each for each in found if each.source is source]
            seen, doomed = ledger.seen(source.name), soon_deleted(source, own, now)
            expiring += [each async for each in _named(sessions, who, seen, doomed)]
    return tuple(sorted(expiring, key=lambda each: (each.at, each.session)))


async def _named(
    sessions: Sessions, who: Principal, seen: Mapping[str, Seen], doomed: Iterable[FoundExpiring]
) -> AsyncIterator[Expiring]:
    for each in doomed:
        if (known := seen.get(each.found.key)) is not None:
            with suppress(SessionNotFound):  # deleted here, and so not kept
                session = await sessions.get(who, known.session)
                yield Expiring(
                    session=session.id, source=each.found.source.name, title=session.title, at=each.at
                )


def _settings_file(home: Path) -> bytes:
    """The agent's settings file; empty if it cannot be read."""
    try:
        return files.read_whole(home / SETTINGS)
    except (OSError, ValueError):
        return b""


def _settings(data: bytes, kind: type[T]) -> T:
    """Only these settings of the agent; missing or invalid ones have the agent's default."""
    try:
        return msgspec.json.decode(data, type=kind)
    except ValueError:
        return kind()
