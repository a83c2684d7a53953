"""Sessions by their ids, wherever they are: in the store, in Claude Code's own files, or in both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from hitherto import composition
from hitherto.claude.paths import find_session
from hitherto.errors import InvalidInput, SessionNotFound, StoreNotFound
from hitherto.model import LOCAL, Session
from hitherto.ports import Mode
from hitherto.sdk.options import camel
from hitherto.service import Sessions
from hitherto.sources.claude import parse

Directory = str | os.PathLike[str] | None


class KnownSession(NamedTuple):
    """A session: as the store has it, its transcript among Claude Code's own files, or both."""

    stored: Session | None
    file: Path | None


@asynccontextmanager
async def opened_store(url: str | None, mode: Mode = "read") -> AsyncIterator[Sessions | None]:
    """The store; None if there is none."""
    async with AsyncExitStack() as opened:
        sessions: Sessions | None = None
        with suppress(StoreNotFound):
            sessions = await opened.enter_async_context(composition.open(url, mode=mode))
        yield sessions


async def find_known(sessions: Sessions | None, session_id: str, directory: Directory) -> KnownSession | None:
    """The session of this id: one of the store's, or the UUID of a transcript of Claude Code's. None if nobody knows it."""
    if not isinstance(session_id, str) or not session_id:
        raise InvalidInput(f"session_id must be a non-empty string, not {session_id!r:.100}")
    uuid = session_id.removeprefix(parse.session_id(""))
    stored = None if sessions is None else await _find_stored(sessions, session_id, parse.session_id(uuid))
    own = stored is None or stored.id == parse.session_id(uuid)
    file = await asyncio.to_thread(find_session, uuid, directory) if own else None
    return None if stored is None and file is None else KnownSession(stored, file)


async def require_known(sessions: Sessions | None, session_id: str, directory: Directory) -> KnownSession:
    """The same; `SessionNotFound` if nobody knows it."""
    found = await find_known(sessions, session_id, directory)
    if found is None:
        raise SessionNotFound(session_id)
    return found


async def _find_stored(sessions: Sessions, *names: str) -> Session | None:
    for name in names:
        with suppress(SessionNotFound):
            return await sessions.get(LOCAL, name)
    return None


def read_arguments(given: Mapping[str, Any] | None, more: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Arguments as a mapping, there also in camelCase, and as keywords, which go before. Raises `InvalidInput`."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidInput(f"options must be a mapping or keywords, not {type(given).__name__}")
    spellings = {spelling: name for name in (*known, "store") for spelling in (name, camel(name))}
    values = {**(given or {}), **more}
    if strange := [str(name) for name in values if name not in spellings]:
        raise InvalidInput(f"unknown option: {', '.join(strange)}; known: {', '.join(known)}")
    named = {spellings[spelling]: value for spelling, value in values.items() if value is not None}
    return {name: _count(name, value) if name in _COUNTS else value for name, value in named.items()}


_COUNTS = frozenset({"limit", "offset"})


def _count(name: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{name} must be a whole number, not {value!r:.100}")
    return value
