"""Continuing a session in another agent: a new transcript of that agent's own, with the conversation so far."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.claude.foreign_files import encoded, new_file
from hitherto.claude.paths import TRANSCRIPT, place_for
from hitherto.errors import HithertoError, InvalidCwd, InvalidInput
from hitherto.ids import now_ms, uuid7
from hitherto.limits import HISTORY_PAGE
from hitherto.model import CONTINUED_IN, CONTINUES, Entry, Json, Principal, Session, Value
from hitherto.presentation.plain_conversation import Fidelity, PlainConversation, Tools, plain_conversation
from hitherto.service import Sessions
from hitherto.sources import AGENTS, Source
from hitherto.sources.codex.source import SESSIONS
from hitherto.sources.gemini.source import LOG, MARK, PREFIX, project_folder
from hitherto.sources.handoff.resume import ResumeCommand, existing_folder
from hitherto.sources.handoff.tools import CLAUDE, CODEX, GEMINI, tools_of
from hitherto.sources.handoff.transcripts import Heading, NewId, claude_transcript, codex_rollout, gemini_log
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync

OURS = "Hitherto"
Tell = Callable[[Sequence[str]], None]


class Target(NamedTuple):
    """An agent that can continue a conversation: the path of its new transcript, its records, the tools that it has, and what
    else has to be written for a transcript to be found. `shows_results`: what tools answer may have pictures."""

    place: Callable[[Path, Heading], Path]
    records: Callable[[Heading, PlainConversation, NewId], Iterator[Json]]
    tools: Tools
    mark: Callable[[Path, Heading], None] = lambda _, __: None
    shows_results: bool = True


def _claude_place(_: Path, heading: Heading) -> Path:
    return place_for(heading.cwd) / f"{heading.id}{TRANSCRIPT}"


def _gemini_place(home: Path, heading: Heading) -> Path:
    """In the folder that Gemini CLI has for the project; if it has none yet, in a new one with its mark."""
    began = datetime.fromtimestamp(heading.at / 1000, UTC)
    name = f"{PREFIX}{began:%Y-%m-%dT%H-%M}-{heading.id[:8]}{LOG}"
    return project_folder(home, heading.cwd) / "chats" / name


def _mark_project(path: Path, heading: Heading) -> None:
    """A new folder of a project says which one it is of: so Gemini CLI finds it."""
    mark = path.parent.parent / MARK
    if not mark.exists():
        _write(mark, heading.cwd.encode())


def _codex_place(home: Path, heading: Heading) -> Path:
    """Codex names and files rollouts by the local time."""
    began = datetime.fromtimestamp(heading.at / 1000).astimezone()
    return home / SESSIONS / f"{began:%Y/%m/%d}" / f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{heading.id}.jsonl"


TARGETS: dict[str, Target] = {
    "claude": Target(_claude_place, claude_transcript, tools_of(CLAUDE)),
    "codex": Target(_codex_place, codex_rollout, tools_of(CODEX)),
    "gemini": Target(_gemini_place, gemini_log, tools_of(GEMINI), _mark_project, shows_results=False),
}
"""A new one is two functions, its tools, and a line here."""


class Continued(Value, frozen=True):
    """How to continue a session in an agent. `continued` is the session there; `path` is the file that was written, if any;
    `messages` is how many messages were copied word for word, `tool_calls` how many calls with their results; `left_behind` says
    what was not carried over."""

    session: str
    agent: str
    fidelity: Fidelity
    continued: str
    cwd: str | None
    command: tuple[str, ...]
    shell: str
    path: str | None = None
    messages: int = 0
    tool_calls: int = 0
    left_behind: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What is to be written, and where."""

    source: Source
    path: Path
    heading: Heading
    context: PlainConversation


class Continuation:
    """Continues sessions in another agent. The ledger notes what sync has read of the new transcript."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        ledger: Ledger,
        *,
        raw: bool = True,
        now: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = uuid7,
    ) -> None:
        self._sessions, self._who, self._ledger = sessions, who, ledger
        self._raw, self._now, self._new_id = raw, now, new_id

    async def continue_session(
        self, session_id: str, agent: str, cwd: str | None = None, tell: Tell = lambda _: None
    ) -> Continued:
        """Prepare a session to be continued in an agent, in the session's folder or another one.

        If the session is the agent's own and its file still exists, nothing is written. Otherwise a new transcript is
        written to disk and imported, and the two sessions are linked. No existing file is changed. Before anything is
        written, `tell` is told what cannot be carried over.
        """
        session = await self._sessions.get(self._who, session_id)
        source = AGENTS[agent].at(AGENTS[agent].home(os.environ))
        if (native := _native(session, source, cwd)) is not None:
            return _result(session, agent, "native", session.id, native)
        planned = await self._plan(session, agent, source, cwd)
        context = planned.context
        tell(context.left_behind)
        records = TARGETS[agent].records(planned.heading, context, uuid7)
        _write(planned.path, b"".join(map(encoded, records)))
        TARGETS[agent].mark(planned.path, planned.heading)
        made = await self._import(source, planned.path, f"{agent}:{planned.heading.id}")
        await self._link(session, made.id)
        how = ResumeCommand(tuple(source.resume(made) or ()), planned.heading.cwd)
        return replace(
            _result(session, agent, context.fidelity, made.id, how),
            path=str(planned.path),
            messages=context.messages,
            tool_calls=len(context.turns) - context.messages,
            left_behind=context.left_behind,
        )

    async def _plan(self, session: Session, agent: str, source: Source, cwd: str | None) -> Plan:
        folder, target = _folder(session, cwd), TARGETS[agent]
        await self._sessions.catalog.set_own_meta(
            self._who, session.id, {}
        )  # fails before anything is written if links cannot be kept
        entries = [entry async for entry in self._context(session.id)]
        context = plain_conversation(entries, tools=target.tools, shows_results=target.shows_results)
        if not context.turns and context.summary is None:
            raise InvalidInput(f"session {session.id!r} has no messages to continue from")
        heading = Heading(self._new_id(), folder, self._now(), _begun_in(session), session.title)
        return Plan(source, target.place(AGENTS[agent].home(os.environ), heading), heading, context)

    async def _context(self, session_id: str) -> AsyncIterator[Entry]:
        after: str | None = None
        while True:
            page = await self._sessions.history(
                self._who, session_id, view="context", limit=HISTORY_PAGE, after=after
            )
            for entry in page.entries:
                yield entry
            if page.next is None:
                return
            after = page.next

    async def _import(self, source: Source, path: Path, session_id: str) -> Session:
        found = next(
            (each for each in source.find() if each.key in (str(path), str(path.with_suffix("")))), None
        )
        if found is None:
            raise HithertoError(f"{path} was written, but sync does not find it")
        report = await Sync(self._sessions, self._who, self._ledger, raw=self._raw).sync_one(found)
        if report.failed:
            raise HithertoError(f"{path} was written, but sync cannot read it: {report.failed[0]}")
        return await self._sessions.get(self._who, session_id)

    async def _link(self, session: Session, made: str) -> None:
        known = session.meta.get(CONTINUED_IN, ())
        await self._sessions.catalog.set_own_meta(self._who, made, {CONTINUES: session.id})
        await self._sessions.catalog.set_own_meta(self._who, session.id, {CONTINUED_IN: [*known, made]})


def _native(session: Session, source: Source, cwd: str | None) -> ResumeCommand | None:
    """The command for a session that is the agent's own and whose file still exists."""
    words = source.resume(session) if session.source == source.name else None
    path = source.restorable_path(session)
    if words is None or path is None or not path.is_file():
        return None
    folder = cwd or session.cwd
    return ResumeCommand(tuple(words), None if folder is None else existing_folder(session, folder))


def _folder(session: Session, given: str | None) -> str:
    folder = given or session.cwd
    if folder is None:
        raise InvalidCwd(f"session {session.id!r} has no folder; choose one with --cwd FOLDER")
    return existing_folder(session, folder)


def _begun_in(session: Session) -> str:
    return AGENTS[session.source].title if session.source in AGENTS else OURS


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with new_file(path) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)


def _result(
    session: Session, agent: str, fidelity: Fidelity, continued: str, how: ResumeCommand
) -> Continued:
    return Continued(
        session=session.id,
        agent=agent,
        fidelity=fidelity,
        continued=continued,
        cwd=how.folder,
        command=how.words,
        shell=how.line,
    )
