"""Answering what waits in inboxes: the prompts that came while a turn ran, for whoever sent them.

Each waits for a runner of its own kind, so that a turn has the rights that its sender's token has on this machine. Any
server may run it, also after the one that took it in has died.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from functools import partial

from msgspec.structs import replace

from hitherto.engine import Conversation, Engine, Setup
from hitherto.errors import HithertoError
from hitherto.gateway.dispatch.connection import Turns
from hitherto.model import Principal
from hitherto.service import Runner, Sessions
from hitherto.tasks import cancel_all

SERVER, COMMANDS = "server", "server/commands"
"""The kinds of runners: without and with rights on this machine."""

log = logging.getLogger(__name__)


def kind_of(*, local: bool) -> str:
    """The kind of runner that answers for a caller, who may have rights on this machine."""
    return COMMANDS if local else SERVER


def engine_for(engine: Engine, *, local: bool) -> Engine:
    """The engine, as a caller with or without rights on this machine gets it."""
    return engine if local else Rootless(engine)


class Rootless:
    """An engine for callers who have no rights on the machine that it runs on: it opens no folder for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def open(self, setup: Setup) -> AbstractAsyncContextManager[Conversation]:
        """The conversation, without roots."""
        return self._engine.open(replace(setup, roots=()))


class Inboxes:
    """Runs the turns of inboxes in this process, one at a time in each session."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._running: dict[tuple[Sessions, str, str], asyncio.Task[None]] = {}
        self._ending = False

    def runner(self, sessions: Sessions, who: Principal, session_id: str, engine: Engine) -> Runner:
        """Who answers a prompt of this caller that has to wait."""
        return Runner(kind_of(local=who.local), partial(self.wake, sessions, who.owner, session_id, engine))

    def wake(self, sessions: Sessions, owner: str, session_id: str, engine: Engine) -> None:
        """Answer what waits in a session, unless that is being done here already."""
        name = (sessions, owner, session_id)
        if name in self._running or self._ending:
            return
        task = asyncio.create_task(self._drain(sessions, owner, session_id, engine))
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name, None))

    async def sweep(self, sessions: Sessions, engine: Engine) -> None:
        """Look for sessions in which something waits although no turn runs."""
        for owner, session_id in await sessions.inbox.everywhere():
            if await sessions.leases.current(Principal(owner=owner), session_id) is None:
                self.wake(sessions, owner, session_id, engine)

    def stop(self) -> None:
        """Begin no further turn: what waits is left to another server, or to the next start."""
        self._ending = True

    async def end(self) -> None:
        """End all turns, with what was said until now."""
        self.stop()
        await cancel_all(tuple(self._running.values()))

    async def _drain(self, sessions: Sessions, owner: str, session_id: str, engine: Engine) -> None:
        try:
            while not self._ending and await self._answer_next(sessions, owner, session_id, engine):
                pass
        except HithertoError as error:
            log.warning("what waits in a session is left for later: %s", error.message)

    async def _answer_next(self, sessions: Sessions, owner: str, session_id: str, engine: Engine) -> bool:
        """Run the next turn; False if none waits for a server."""
        rows = await sessions.inbox.settle(Principal(owner=owner), session_id)
        if not rows or rows[0].by not in (SERVER, COMMANDS):
            return False
        local = rows[0].by == COMMANDS
        who = Principal(owner=owner, local=local)
        async with sessions.opened(
            who,
            session_id,
            engine_for(engine, local=local),
            local=local,
            improve_titles=False,
            runner=Runner(rows[0].by),
        ) as opened:
            with self._turns.running(who, opened):
                return await opened.run_next()
