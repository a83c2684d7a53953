"""Sessions that their agent is going to delete by itself, as its settings say. Each rule is pure but for these settings."""

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
from hitherto.sources.port import Found, Source
from hitherto.sources.shared import files
from hitherto.sources.sync.ledger import Ledger, Seen

T = TypeVar("T", bound=msgspec.Struct)
HOUR = 3_600_000
DAY = 24 * HOUR
SOON = 7 * DAY
"""What is deleted within this time is told of."""
SETTINGS = "settings.json"
_PERIOD = re.compile(r"(\d{1,6})([hdwm])", re.ASCII)
# A text, which stays, or a comment; either may lack its end.
_COMMENT = re.compile(rb'("(?:[^"\\]|\\.)*"?)|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY}


class Expiring(Value, frozen=True):
    """A session that is kept here, and that its agent will delete at about this time, or when it is started next."""

    session: str
    source: str
    title: str | None
    at: int


class Doomed(NamedTuple):
    """Something that was found, and when its agent will delete it."""

    found: Found
    at: int


Rule = Callable[[Path, Sequence[Found], int], Iterator[Doomed]]
"""From the folder of an agent, what was found there and the time: what it deletes by itself, sooner or later. A folder that
cannot be read is found too, and is no session."""


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


def _claude(home: Path, found: Sequence[Found], _: int) -> Iterator[Doomed]:
    """Transcripts go when nothing was written to them for so many days; subagents' go with them."""
    days = max(_settings(_said(home), _Claude).cleanup_period_days, 1)
    for each in found:
        if isinstance(each.where, claude_files.Found) and each.where.agent is None:
            yield Doomed(each, each.at + days * DAY)


def _gemini(home: Path, found: Sequence[Found], now: int) -> Iterator[Doomed]:
    """Transcripts go when they are too old, or when their project has too many newer ones."""
    said = _settings(_COMMENT.sub(rb"\1", _said(home)), _Gemini).general.session_retention
    period = _PERIOD.fullmatch(said.max_age or "")
    if not said.enabled or (said.max_age and period is None):
        return  # it deletes nothing by a rule that it does not understand
    lasts = int(period[1]) * _UNITS[period[2]] if period else None
    projects = defaultdict[Path, list[Found]](list)
    for each in sorted(found, key=lambda each: -each.at):
        if isinstance(each.where, gemini_source.Transcript) and each.where.parent is None:
            projects[each.where.project].append(each)
    # The session that is begun when it looks is one of those that stay.
    room = None if said.max_count is None else max(said.max_count - 1, 0)
    for sessions in projects.values():
        for place, each in enumerate(sessions):
            if room is not None and place >= room:
                yield Doomed(each, now)
            elif lasts is not None:
                yield Doomed(each, each.at + lasts)


RULES: Mapping[str, Rule] = {"claude": _claude, "gemini": _gemini}
"""The agents that delete sessions by themselves; all others keep them."""


def soon_deleted(source: Source, found: Sequence[Found], now: int) -> list[Doomed]:
    """Those of the sessions found that the agent will delete soon."""
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
    found: Sequence[Found],
    now: int,
) -> tuple[Expiring, ...]:
    """The sessions that are kept here and that their agents will delete soon, the first to go first."""
    told = list[Expiring]()
    for source in sources:
        if source.name in RULES:
            own = [each for each in found if each.source is source]
            seen, doomed = ledger.seen(source.name), soon_deleted(source, own, now)
            told += [each async for each in _named(sessions, who, seen, doomed)]
    return tuple(sorted(told, key=lambda each: (each.at, each.session)))


async def _named(
    sessions: Sessions, who: Principal, seen: Mapping[str, Seen], doomed: Iterable[Doomed]
) -> AsyncIterator[Expiring]:
    for each in doomed:
        if (known := seen.get(each.found.key)) is not None:
            with suppress(SessionNotFound):  # deleted here, and so not kept
                session = await sessions.get(who, known.session)
                yield Expiring(
                    session=session.id, source=each.found.source.name, title=session.title, at=each.at
                )


def _said(home: Path) -> bytes:
    """The agent's settings; nothing if they cannot be read."""
    try:
        return files.read_whole(home / SETTINGS)
    except (OSError, ValueError):
        return b""


def _settings(said: bytes, kind: type[T]) -> T:
    """What the agent's settings say of this, and of nothing else; what they do not say is as the agent has it."""
    try:
        return msgspec.json.decode(said, type=kind)
    except ValueError:
        return kind()
