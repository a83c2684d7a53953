"""Turns: a prompt is stored, an engine answers it, and every step is stored as it happens."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from hitherto.engine import (
    Choices,
    Conversation,
    Engine,
    Host,
    McpServer,
    Notice,
    Setup,
    StdioServer,
    summariser_of,
)
from hitherto.errors import AlreadyExists, Busy, HithertoError, InvalidInput, SessionNotFound
from hitherto.holders import new_holder
from hitherto.model import Part, Principal, Session, Shrunk, encode
from hitherto.permissions import Mode
from hitherto.ports import Writer
from hitherto.service.catalog.sessions import folders_of, titled
from hitherto.service.changes import Watching
from hitherto.service.compaction.compact import Compaction
from hitherto.service.records import required
from hitherto.service.turns.journal import Begun, Desk
from hitherto.service.turns.leases import Leasing
from hitherto.service.turns.questions import Asking
from hitherto.service.turns.runner import LEASE_MS, RunningTurn
from hitherto.service.validation import checked_title
from hitherto.tasks import finish, wait_all
from hitherto.updates import Ask, Emit, Outcome, Titled

T = TypeVar("T")

WAIT_SECONDS = 1.0
END_SECONDS = 5.0
TITLE_SECONDS = 10.0
TITLE_GRACE_SECONDS = 0.5
_CONTINUATIONS = uuid.UUID("6f1b1c1e-5d3a-5c0e-9d53-2f0f6d9a7c41")
"""The namespace in which the id of a continuation is made from the id of what it continues."""


class Turns(Asking, Compaction, Leasing, Watching):
    """Sessions that go on."""

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
        continuing: bool = False,
        improve_titles: bool = True,
        report: Callable[[Notice], None] = lambda _: None,
    ) -> AsyncIterator[OpenSession]:
        """Open a session for prompts; its tool servers run until the block ends, and end with it.

        `roots` are the folders that tools may touch, the working directory first; None means the session's own.
        `local` says that the caller is a person on this machine, who may have programs started. `continuing`: one read
        from another agent goes on in its continuation, which is made when there is something to store in it.
        """
        session = await self.get(who, session_id)
        continues = continuing and session.source is not None
        setup = Setup(
            session_id=_continuation_id(who, session.id) if continues else session.id,
            roots=folders_of(session) if roots is None else tuple(roots),
            mcp_servers=tuple(mcp_servers),
            local=local,
            host=host,
            report=report,
        )
        async with engine.open(setup) as conversation:
            opened = OpenSession(
                self,
                who,
                setup.session_id,
                conversation,
                origin=session.id if continues else None,
                servers=_digest(setup.mcp_servers),
                improve_titles=improve_titles,
            )
            try:
                yield opened
            finally:
                await opened.settle()

    async def continuation(self, who: Principal, session_id: str) -> Session:
        """The session in which this one goes on: itself, or for one read from another agent a fork of it, made once.

        Asked again, the same fork comes back, so that what was said in it goes on.
        """
        known = await self.continued(who, session_id)
        if known is not None:
            return known
        made = _continuation_id(who, session_id)
        try:
            return await self.fork(who, session_id, new_id=made)
        except AlreadyExists:
            return await self.get(who, made)

    async def continued(self, who: Principal, session_id: str) -> Session | None:
        """The continuation of a session as far as there is one; nothing is made."""
        session = await self.get(who, session_id)
        if session.source is None:
            return session
        with suppress(SessionNotFound):
            return await self.get(who, _continuation_id(who, session.id))
        return None

    async def end_turn(self, who: Principal, session_id: str, *, seconds: float = END_SECONDS) -> None:
        """End the turn that runs, in whichever process, and return when it has ended: at once if none runs. `Busy` if it
        does not end within so many seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        await self.call_off(who, session_id)
        while True:
            seen = await self.newest_change(who)
            held = await self.leased(who, session_id)
            left = deadline - asyncio.get_running_loop().time()
            if held is None:
                return
            if left <= 0:
                raise Busy(held.holder, max(self._now() - held.acquired_at, 0))
            await self.await_change(who, after=seen, seconds=min(left, WAIT_SECONDS))

    async def retitle(self, who: Principal, session_id: str, title: str) -> Session:
        """Give a better title by machine; one that a person or another agent gave stays."""

        async def work(tx: Writer) -> Session:
            record = await required(tx, who, session_id)
            better = checked_title(title)
            if better is None or record.session.title_by not in (None, "auto"):
                return record.session
            fields = titled(record.session, better, "auto")
            return (await self._change(tx, record, "rename", **fields)).session

        return await self._store.write(work)


class _Asked:
    """A prompt on its way: first the task that gets it ready, then the turn that answers it."""

    task: asyncio.Task[Outcome]
    turn: RunningTurn | None = None

    def cancel(self) -> None:
        if self.turn is not None:
            self.turn.cancel()
        else:
            self.task.cancel()


class OpenSession:
    """A session that is open in this process. `origin` is the one that it continues, if it may not be there yet."""

    def __init__(
        self,
        sessions: Turns,
        who: Principal,
        session_id: str,
        conversation: Conversation,
        *,
        origin: str | None,
        servers: str,
        improve_titles: bool,
    ) -> None:
        self.session_id, self._servers = session_id, servers
        self._origin = origin
        self._sessions, self._who, self._conversation = sessions, who, conversation
        self._desk = Desk(sessions, who, session_id)
        self._improve_titles = improve_titles
        self._asked: set[_Asked] = set()
        self._titles: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether a turn runs here."""
        return bool(self._asked)

    async def prompt(
        self,
        parts: Sequence[Part],
        *,
        choices: Choices = Choices(),  # noqa: B008 - a frozen value
        ask: Ask | None = None,
        emit: Emit = lambda _: None,
        wait: bool = False,
        idempotency_key: str | None = None,
        mode: Callable[[], Mode] | None = None,
    ) -> Outcome:
        """Say something and have it answered; the outcome comes when the turn has ended.

        `emit` is told everything as it happens, `ask` is asked about tools unless somebody elsewhere answers first
        (without it, what would be asked is refused). `mode` says which one holds now, if it may change while the turn
        runs. `ModelMissing`, and nothing is stored, if there is nothing to answer it. `Busy` while another turn of the
        session runs, anywhere; with `wait`, its end is waited for. If the caller is cancelled, so is the turn.
        """
        if self._closed:
            raise InvalidInput("the session is closed: open it again")
        asked = _Asked()
        self._asked.add(asked)
        asked.task = task = self._beside(
            self._answered(asked, parts, choices, ask, emit, wait, idempotency_key, mode)
        )
        task.add_done_callback(lambda _: self._asked.discard(asked))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():  # called off before anything of it was begun
                return Outcome(stop_reason="cancelled", prompt="")
            asked.cancel()
            await wait_all(task)
            raise

    async def _answered(
        self,
        asked: _Asked,
        parts: Sequence[Part],
        choices: Choices,
        ask: Ask | None,
        emit: Emit,
        wait: bool,
        key: str | None,
        mode: Callable[[], Mode] | None,
    ) -> Outcome:
        window = await self._conversation.window(choices)
        await self._exists()
        begun = await self._begin(parts, wait, key)
        if isinstance(begun, Outcome):
            return begun
        asked.turn = RunningTurn(
            self._desk, begun, self._conversation, choices, window, ask, emit, key, self._servers, mode
        )
        outcome = await asked.turn.run()
        if self._improve_titles and not self._closed and _is_first(begun, outcome):
            self._titles.add(self._beside(self._improve_title(choices, emit)))
        return outcome

    async def compact(self, *, choices: Choices = Choices()) -> Shrunk:  # noqa: B008 - a frozen value
        """Make the context smaller, with the engine's own summariser if it has one. `Busy` while a turn runs."""
        await self._exists()
        return await self._sessions.shrink(
            self._who, self.session_id, summariser=summariser_of(self._conversation, choices)
        )

    def cancel(self) -> bool:
        """End the turn that runs here, with what was said until now; False if none does."""
        for asked in list(self._asked):
            asked.cancel()
        return self.running

    async def settle(self) -> None:
        """End the running turn, and let what goes on beside it end; a title that takes long is not waited for."""
        self._closed = True
        self.cancel()
        titles = [task for task in self._titles if not task.done()]
        if titles:
            await asyncio.wait(titles, timeout=TITLE_GRACE_SECONDS)
            for task in titles:
                task.cancel()
        await wait_all(*self._tasks)

    async def _exists(self) -> None:
        """Make the session if it is a continuation that is not there, yet or any more."""
        if self._origin is not None:
            await self._sessions.continuation(self._who, self._origin)

    async def _begin(self, parts: Sequence[Part], wait: bool, key: str | None) -> Begun | Outcome:
        while True:
            seen = await self._sessions.newest_change(self._who)
            try:
                return await self._begun(parts, key)
            except Busy:
                if not wait:
                    raise
            await self._sessions._store.wait(self._who.owner, seen, WAIT_SECONDS)

    async def _begun(self, parts: Sequence[Part], key: str | None) -> Begun | Outcome:
        """Begin the turn; a caller who is cancelled while that is stored leaves no turn behind that nobody runs."""
        beginning = asyncio.ensure_future(self._desk.begin(new_holder(), LEASE_MS, parts, key))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await wait_all(beginning)
            if beginning.exception() is None and isinstance(begun := beginning.result(), Begun):
                nothing = Outcome(stop_reason="cancelled", prompt=begun.history[-1].id)
                await finish(self._desk.finish([], begun.lease.fence, nothing, None, key))
            raise

    async def _improve_title(self, choices: Choices, emit: Emit) -> None:
        """Have the engine find a title; that of a person is never touched, and without one the first prompt does."""
        with suppress(TimeoutError, HithertoError):
            async with asyncio.timeout(TITLE_SECONDS):
                title = await self._conversation.title(await self._desk.context(), choices)
            if title is not None:
                session = await self._sessions.retitle(self._who, self.session_id, title)
                emit(Titled(title=session.title or title))

    def _beside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _is_first(begun: Begun, outcome: Outcome) -> bool:
    """Whether this was a session's first exchange, and its title is only what the prompt gave it."""
    prompts = sum(entry.role == "user" for entry in begun.history)
    return prompts == 1 and outcome.stop_reason == "end_turn" and begun.session.title_by == "auto"


def _continuation_id(who: Principal, session_id: str) -> str:
    return str(uuid.uuid5(_CONTINUATIONS, f"{who.owner}\n{session_id}"))


def _digest(servers: Sequence[McpServer]) -> str:
    """What tells these servers from others; headers do not count, since credentials change."""
    plain = [each if isinstance(each, StdioServer) else replace(each, headers={}) for each in servers]
    return hashlib.sha256(encode(plain)).hexdigest()[:32]
