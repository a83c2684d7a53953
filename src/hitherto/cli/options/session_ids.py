"""Sessions as people name them: by a few characters of the id, by their place in the last list, by words of the title."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hitherto.cli.terminal.output import clean, fitted
from hitherto.errors import AmbiguousId, HithertoError, InvalidInput, NotFound, SessionNotFound
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Filter, Session
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources import AGENTS

LENGTHS = (8, 13, 18, 23, 28)
"""Of an id that Hitherto made, the first 13 characters are its time in ms; those of most agents are random from the first."""
LAST = "@last"
CANDIDATES = 10
_PLACE = re.compile(r"%([1-9][0-9]{0,5})", re.ASCII)
_BEGINNING = re.compile(r"[0-9A-Za-z_-]{4,}", re.ASCII)


async def named_session(sessions: Sessions, name: str, *, words: bool = True) -> str:
    """The full id of a session: by the beginning of its id, with or without its agent; by `%3`, the third of the last list; by
    `@last`, the one that was active last; or, with `words`, by words of its title.

    Raises `AmbiguousId` if there are several; on stderr they are listed.
    """
    if name == LAST:
        return await _last(sessions)
    if (place := _PLACE.fullmatch(name)) is not None:
        return _listed(sessions, int(place[1]))
    try:
        return await _by_beginning(sessions, name)
    except SessionNotFound:
        if not (words and name.strip()):
            raise
        found = await _titled(sessions, name)
        if not found:
            raise
    return _only(name, found)


async def full_ids(sessions: Sessions, names: Iterable[str], *, words: bool = True) -> list[str]:
    """The full ids of the named sessions, without duplicates. Raises for the first that does not exist."""
    return list(dict.fromkeys([await named_session(sessions, each, words=words) for each in names]))


async def short_id(sessions: Sessions, session_id: str) -> str:
    """A short name of the session that no other has. A server is asked for each: there the agent stays part of it."""
    source, sign, own = session_id.partition(":") if ":" in session_id else ("", "", session_id)
    names = [f"{source}{sign}{own[:length]}" for length in LENGTHS]
    if source in AGENTS and sessions.is_here:
        names = [*(own[:length] for length in LENGTHS), *names]
    for name in names:
        with suppress(AmbiguousId, NotFound):
            if await _by_beginning(sessions, name) == session_id:
                return name
    return session_id


async def short_ids(sessions: Sessions, session_ids: Iterable[str]) -> dict[str, str]:
    """The short name of each session."""
    return {each: await short_id(sessions, each) for each in session_ids}


def remember_list(sessions: Sessions, session_ids: Sequence[str]) -> None:
    """Let `%1` be the first of these from now on, where this machine can note that."""
    with suppress(OSError, HithertoError):
        path = _list_file(sessions)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(session_ids))
        fresh.replace(path)


def _listed(sessions: Sessions, place: int) -> str:
    try:
        ids = msgspec.json.decode(_list_file(sessions).read_bytes(), type=list[str])
    except (OSError, msgspec.DecodeError):
        raise InvalidInput(f"%{place} is a place in a list: run `hitherto list` first") from None
    if place > len(ids):
        raise InvalidInput(
            f"the last list has {formats.counted(len(ids), 'session')}, so there is no %{place}"
        )
    return ids[place - 1]


def _list_file(sessions: Sessions) -> Path:
    return read_settings().data_dir / f"list-{sessions.admin.store_id}.json"


async def _last(sessions: Sessions) -> str:
    page = await sessions.find(LOCAL, Filter(subagents=False), limit=1)
    if not page.sessions:
        raise SessionNotFound(LAST)
    return page.sessions[0].id


async def _by_beginning(sessions: Sessions, name: str) -> str:
    """The session whose id begins so, or would without its agent."""
    own: list[str] = []
    missing: SessionNotFound | None = None
    try:
        own.append(await sessions.resolve(LOCAL, name))
    except SessionNotFound as error:
        missing = error
    if own == [name] or not _BEGINNING.fullmatch(name):
        return _only_id(name, own, missing)
    for source in AGENTS:
        with suppress(NotFound):
            own.append(await sessions.resolve(LOCAL, f"{source}:{name}"))
    return _only_id(name, own, missing)


def _only_id(name: str, ids: list[str], missing: SessionNotFound | None) -> str:
    if len(ids) > 1:
        raise AmbiguousId(name, ids[:3])
    if not ids:
        raise missing or SessionNotFound(name)
    return ids[0]


async def _titled(sessions: Sessions, words: str) -> Sequence[Session]:
    """Some sessions with these words in the title, those that were active last first."""
    given = Filter(text=words, archived="include", subagents=False)
    with suppress(InvalidInput):  # signs that are no words
        return (await sessions.find(LOCAL, given, limit=CANDIDATES + 1)).sessions
    return ()


def _only(name: str, found: Sequence[Session]) -> str:
    if len(found) == 1:
        return found[0].id
    now = now_ms()
    for each in found[:CANDIDATES]:
        row = (
            f"  {clean(each.id)}  {formats.brief_age(each.updated_at, now):>4}  {clean(formats.title(each))}"
        )
        sys.stderr.write(f"{fitted(row)}\n")
    raise AmbiguousId(name, [each.id for each in found[:3]])
