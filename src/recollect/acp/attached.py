"""A session that a client has open: the engine's conversation behind it, one turn at a time, what the client is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from recollect.acp.config import Chosen, choices, chosen_of
from recollect.acp.showing import Showing
from recollect.engine import Engine, Host, McpServer
from recollect.errors import Busy
from recollect.model import Json, Part, Principal, Session
from recollect.service import Sessions
from recollect.service.turns import OpenSession
from recollect.updates import Ask, Outcome, Update

Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Attached:
    """See the module. `start` makes tasks that end with the connection."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        session: Session,
        engine: Engine,
        showing: Showing,
        start: Start,
        *,
        roots: Sequence[str] = (),
        servers: Sequence[McpServer] = (),
        host: Host | None = None,
        local: bool = True,
    ) -> None:
        self.session = session
        self.showing = showing
        self.chosen: Chosen = chosen_of(session)
        self._sessions, self._who, self._engine, self._start = sessions, who, engine, start
        self._roots, self._servers, self._host, self._local = roots, servers, host, local
        self._pump: asyncio.Task[None] | None = None
        self._holder: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[OpenSession] | None = None
        self._turn: asyncio.Task[Outcome] | None = None
        self._since = 0.0
        self._cancelled = False

    @property
    def running(self) -> bool:
        """Whether a turn of this client runs."""
        return self._turn is not None

    @property
    def target(self) -> str:
        """The session that is written to."""
        return self.showing.target

    async def begin(self) -> None:
        """Show what happens from now on; and get the engine ready, unless the session may never be prompted."""
        self._pump = self._start(self.showing.run())
        if self.session.source is None and self._opened is None:
            self._open()

    async def prompt(self, parts: Sequence[Part], meta: Json, ask: Ask) -> Outcome:
        """Run a turn; all of it has been shown when this returns or raises. If the caller is cancelled, so is it."""
        if self._turn is not None:
            age = asyncio.get_running_loop().time() - self._since
            raise Busy("this client, on this connection", round(age * 1000))
        self._since, self._cancelled = asyncio.get_running_loop().time(), False
        with self.showing.turn():
            self._turn = asyncio.create_task(self._prompted(parts, meta, ask))
            try:
                return await asyncio.shield(self._turn)
            except asyncio.CancelledError:
                if not self._turn.done():
                    self.cancel()
                    await asyncio.wait([self._turn])
                raise
            finally:
                self._turn = None
                await self.showing.settle()

    def cancel(self) -> None:
        """End the running turn, or the one that is about to run."""
        self._cancelled = self._turn is not None
        if self._opened is not None and self._opened.done() and not self._opened.exception():
            self._opened.result().cancel()

    async def close(self) -> None:
        """End what runs, and let go of the session."""
        self.cancel()
        if self._turn is not None:
            await asyncio.wait([self._turn])
        self._closing.set()
        if self._holder is not None:
            await asyncio.wait([self._holder])
        if self._pump is not None:
            self._pump.cancel()

    async def _prompted(self, parts: Sequence[Part], meta: Json, ask: Ask) -> Outcome:
        if self._opened is None:
            self.showing.target = (await self._sessions.continuation(self._who, self.session.id)).id
            self._open()
        assert self._opened is not None  # noqa: S101 - `_open` has just made it
        opened = await asyncio.shield(self._opened)
        if self._cancelled:
            return Outcome(stop_reason="cancelled", prompt="")

        def emit(update: Update) -> None:
            self.showing.emit(update)
            if self._cancelled:
                opened.cancel()

        return await opened.prompt(parts, choices=choices(self.chosen, meta), ask=ask, emit=emit)

    def _open(self) -> None:
        self._opened = asyncio.get_running_loop().create_future()
        self._holder = self._start(self._hold(self._opened))

    async def _hold(self, ready: asyncio.Future[OpenSession]) -> None:
        """Keep the engine's conversation open. It is entered and left by one task, as its tool servers want."""
        try:
            async with self._sessions.opened(
                self._who,
                self.target,
                self._engine,
                roots=self._roots,
                mcp_servers=self._servers,
                host=self._host,
                local=self._local,
                report=self.showing.emit,
            ) as opened:
                ready.set_result(opened)
                await self._closing.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
            with suppress(Exception):
                ready.result()  # whoever prompts is told; if nobody does, nobody needs to be
