"""How a session begins: made anew, or found by an id of ours or of Claude Code's."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from hitherto.claude.paths import config_home, is_session_id
from hitherto.engine import Notice
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL, Session
from hitherto.sdk.options import Options
from hitherto.service import Sessions
from hitherto.service.catalog.projects import project_of_folder
from hitherto.settings import read_settings
from hitherto.sources.claude import parse
from hitherto.sources.claude.files import TranscriptFile as Transcript
from hitherto.sources.claude.source import NAME, ClaudeSource
from hitherto.sources.port import FoundSession
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync


class StartedSession(NamedTuple):
    """The session to talk in, the session of another agent that it continues, if any, and the notices to show."""

    session: Session
    resumed_from: str | None = None
    notices: tuple[Notice, ...] = ()


async def create(sessions: Sessions, session_id: str, options: Options) -> StartedSession:
    """A new session with this id."""
    session = await sessions.create(
        LOCAL,
        session_id=session_id,
        cwd=options.cwd,
        title=options.title,
        additional_directories=options.additional_directories,
        **await project_of_folder(sessions.projects, options.cwd),
    )
    return StartedSession(session)


async def resume(sessions: Sessions, given: str, options: Options) -> StartedSession:
    """The session of this id, or the one that continues it. Raises `SessionNotFound`.

    What Claude Code has written of a session since it was last read, or at all, is read first: also if the session was
    deleted here, since somebody asks for it now.
    """
    known = await _find(sessions, given)
    if known is None or known.source == NAME:
        uuid = given.removeprefix(parse.session_id(""))
        failures = await _sync_transcript(sessions, uuid, options, anew=known is None)
        known = await _find(sessions, given)
        if known is None:
            missing = SessionNotFound(given)
            for failure in failures:
                missing.add_note(f"cannot read {failure}")
            raise missing
    session = await sessions.turns.continuation(LOCAL, known.id)
    if options.title is not None:
        session = await sessions.rename(LOCAL, session.id, options.title)
    if options.cwd is not None:
        session = await sessions.move(LOCAL, session.id, options.cwd)
    if session.id == known.id:
        return StartedSession(session)
    return StartedSession(
        session, known.id, (_continued_notice(known),) if known.updated_at > session.created_at else ()
    )


def _continued_notice(known: Session) -> Notice:
    text = f"{known.id} was continued elsewhere after it was forked. Newer messages there are not part of this session."
    return Notice(text=text, severity="warning")


async def _find(sessions: Sessions, given: str) -> Session | None:
    for name in (given, parse.session_id(given)):
        with suppress(SessionNotFound):
            return await sessions.get(LOCAL, name)
    return None


async def _sync_transcript(sessions: Sessions, uuid: str, options: Options, *, anew: bool) -> tuple[str, ...]:
    """Read what is new in the transcript of a session, or all of it, if there is one; what could not be read is reported."""
    file = await asyncio.to_thread(_transcript, uuid)
    if file is None:
        return ()
    with _ledger_folder(options) as folder:
        ledger = Ledger(folder / f"sources-{sessions.admin.store_id}.db")
        try:
            return (await Sync(sessions, LOCAL, ledger, revive=True).sync_one(file, anew=anew)).failed
        finally:
            ledger.close()


def _transcript(uuid: str) -> FoundSession | None:
    """The transcript of a session; of several the one changed last. If there is none, a folder that cannot be read, in which
    it may be."""
    if not is_session_id(uuid):
        return None
    own, unreadable = dict[int, FoundSession](), list[FoundSession]()
    for each in ClaudeSource(config_home()).find():
        where = each.where
        if not isinstance(where, Transcript):
            unreadable.append(each)
        elif where.session == uuid and where.agent is None:
            own.setdefault(where.file.stamp[3], each)
    return own[max(own)] if own else next(iter(unreadable), None)


@contextmanager
def _ledger_folder(options: Options) -> Iterator[Path]:
    """Where syncs keep their ledger; that of a store in memory goes with it."""
    settings = read_settings(store=options.store)
    if not settings.store.startswith("memory:"):
        yield settings.data_dir
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
