"""Turns: a prompt is stored, an engine answers it, and every step is stored as it happens."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.engine import ClientHost, Engine, Host, Notice, Setup
from hitherto.errors import AlreadyExists, Busy, SessionNotFound
from hitherto.holders import new_holder
from hitherto.model import RECORDED_IN, Principal, Session, encode
from hitherto.service.catalog.metadata import folders_of
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.changes import Changes
from hitherto.service.compaction.compact import Compaction
from hitherto.service.core import Core, Room
from hitherto.service.history.forks import Forks
from hitherto.service.turns.interrupted import close_interrupted
from hitherto.service.turns.journal import TurnJournal
from hitherto.service.turns.leases import Leases
from hitherto.service.turns.open_session import WAIT_SECONDS, OpenSession
from hitherto.updates import Elicitor
from hitherto.values.mcp_servers import McpServer, StdioServer

END_SECONDS = 5.0
_CONTINUATIONS = uuid.UUID("6f1b1c1e-5d3a-5c0e-9d53-2f0f6d9a7c41")
"""The namespace in which the id of a continuation is made from the id of what it continues."""


class Runner(NamedTuple):
    """Who answers prompts that wait in an inbox: a kind of process, and how one of them is made to look now."""

    kind: str
    wake: Callable[[], None] | None = None


class Turns(Room):
    """Opening sessions for prompts, and ending turns."""

    def __init__(
        self,
        core: Core,
        catalog: Catalog,
        forks: Forks,
        leases: Leases,
        changes: Changes,
        compaction: Compaction,
    ) -> None:
        super().__init__(core)
        self._catalog, self._forks, self._leases = catalog, forks, leases
        self._changes, self._compaction = changes, compaction

    @asynccontextmanager
    async def opened(
        self,
        who: Principal,
        session_id: str,
        engine: Engine,
        *,
        roots: Sequence[str] | None = None,
        mcp_servers: Sequence[McpServer] = (),
        host: Host | None = None,
        local: bool = True,
        elicitor: Elicitor | None = None,
        continuing: bool = False,
        improve_titles: bool = True,
        runner: Runner | None = None,
        report: Callable[[Notice], None] = lambda _: None,
    ) -> AsyncIterator[OpenSession]:
        """Open a session for prompts; its tool servers run until the block ends, and end with it.

        `roots` are the folders that tools may touch, the working directory first; None means the session's own.
        `local` says that the caller is a person on this machine, who may have programs started. `continuing`: one read
        from another agent continues in its fork, which is made when there is something to store in it. Prompts that wait
        for a turn are answered here, or by a `runner` that outlives the caller. Without an `elicitor`, tool servers are told
        that they cannot ask the user anything.
        """
        session = await self._catalog.get(who, session_id)
        continues = continuing and session.source is not None
        setup = Setup(
            session_id=_continuation_id(who, session.id) if continues else session.id,
            roots=folders_of(session) if roots is None else tuple(roots),
            mcp_servers=tuple(mcp_servers),
            local=local,
            host=host,
            elicits=frozenset() if elicitor is None else elicitor.ways,
            report=report,
        )
        async with engine.open(setup) as conversation:
            opened = OpenSession(
                TurnJournal(
                    self._core, who, setup.session_id, new_holder() if runner is None else runner.kind
                ),
                self._changes,
                self._compaction,
                who,
                setup.session_id,
                conversation,
                prepare=partial(self.continuation, who, session.id) if continues else None,
                servers=_digest(setup.mcp_servers),
                improve_titles=improve_titles,
                elicit=None if elicitor is None else elicitor.ask,
                host=host if isinstance(host, ClientHost) else None,
                wake=None if runner is None else runner.wake,
            )
            try:
                yield opened
            finally:
                await opened.settle()

    async def continuation(self, who: Principal, session_id: str) -> Session:
        """The session that continues this one: itself, or for one read from another agent a fork of it, made once.

        Asked again, the same fork comes back, so that its conversation continues. It takes the place of what it continues in
        lists and searches.
        """
        session = await self._catalog.get(who, session_id)
        if session.source is None:
            return session
        made = _continuation_id(who, session.id)
        fork = await self.continued(who, session.id)
        if fork is None:
            try:
                fork = await self._forks.fork(who, session.id, new_id=made)
            except AlreadyExists:
                fork = await self._catalog.get(who, made)
        if RECORDED_IN not in session.meta:  # also if whoever made the fork was killed on the way
            await self._catalog.archive(who, session.id)
            await self._catalog.set_own_meta(who, session.id, {RECORDED_IN: made})
        return fork

    async def continued(self, who: Principal, session_id: str) -> Session | None:
        """The continuation of a session as far as there is one; nothing is made."""
        session = await self._catalog.get(who, session_id)
        if session.source is None:
            return session
        with suppress(SessionNotFound):
            return await self._catalog.get(who, _continuation_id(who, session.id))
        return None

    async def end(self, who: Principal, session_id: str, *, seconds: float = END_SECONDS) -> None:
        """End the turn that runs, in whichever process, and return when it has ended: at once if none runs. `Busy` if it
        does not end within so many seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        await self._leases.request_end(who, session_id)
        while True:
            seen = await self._changes.newest(who)
            held = await self._leases.current(who, session_id)
            left = deadline - asyncio.get_running_loop().time()
            if held is None:
                return
            if left <= 0:
                raise Busy(held.holder, max(self._now() - held.acquired_at, 0))
            await self._changes.wait(who, after=seen, seconds=min(left, WAIT_SECONDS))

    async def close_interrupted(self) -> int:
        """Close the turns whose process has died, of every owner: what they were saying is kept, and their sessions say
        `interrupted`. Returns how many; doing it again changes nothing."""
        return await close_interrupted(self._core)

    async def retitle(self, who: Principal, session_id: str, title: str) -> Session:
        """Give a better title by machine; one that a person or another agent gave stays."""
        return await TurnJournal(self._core, who, session_id).retitle(title)


def _continuation_id(who: Principal, session_id: str) -> str:
    return str(uuid.uuid5(_CONTINUATIONS, f"{who.owner}\n{session_id}"))


def _digest(servers: Sequence[McpServer]) -> str:
    """What distinguishes these servers from others; headers do not count, since credentials change."""
    plain = [each if isinstance(each, StdioServer) else replace(each, headers={}) for each in servers]
    return hashlib.sha256(encode(plain)).hexdigest()[:32]
