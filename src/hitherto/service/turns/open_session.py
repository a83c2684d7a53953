"""A session that is open for prompts: one turn at a time, and the tasks that run beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from hitherto.engine import (
    Choices,
    ClientHost,
    Conversation,
    Elicit,
    summariser_of,
)
from hitherto.errors import HithertoError, InvalidInput
from hitherto.holders import new_holder
from hitherto.model import Draft, Origin, Part, Principal, QueueMode, Shrunk
from hitherto.permissions import Mode
from hitherto.service.changes import Changes
from hitherto.service.compaction.compact import Compaction
from hitherto.service.turns.journal import Begun, Queueing, TurnJournal, Waiting
from hitherto.service.turns.runner import LEASE_MS, RunningTurn
from hitherto.tasks import finish, wait_all
from hitherto.updates import Ask, Emit, Outcome, Queued, Titled, elsewhere

T = TypeVar("T")

WAIT_SECONDS = 1.0
TITLE_SECONDS = 10.0
TITLE_GRACE_SECONDS = 0.5


class _PendingPrompt:
    """A prompt on its way: first the task that gets it ready, then the turn that answers it. `waits` is its id in the
    inbox while it is there."""

    task: asyncio.Task[Outcome]
    turn: RunningTurn | None = None
    waits: str | None = None

    def cancel(self) -> None:
        if self.turn is not None:
            self.turn.cancel()
        else:
            self.task.cancel()


class OpenSession:
    """A session that is open in this process. `prepare` makes it, if it may not be there yet.

    A prompt that waits is answered here, unless it is left to others: `wake` then has somebody look for it, and it stays in
    the inbox whatever becomes of the caller.
    """

    def __init__(
        self,
        journal: TurnJournal,
        changes: Changes,
        compaction: Compaction,
        who: Principal,
        session_id: str,
        conversation: Conversation,
        *,
        prepare: Callable[[], Awaitable[object]] | None,
        servers: str,
        improve_titles: bool,
        elicit: Elicit | None = None,
        host: ClientHost | None = None,
        wake: Callable[[], None] | None = None,
    ) -> None:
        self.session_id, self._servers = session_id, servers
        self._prepare = prepare
        self._journal, self._changes, self._compaction = journal, changes, compaction
        self._who, self._conversation = who, conversation
        self._improve_titles, self._elicit, self._wake = improve_titles, elicit, wake
        self._host = host
        self._asked: set[_PendingPrompt] = set()
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
        queue: QueueMode | None = None,
        idempotency_key: str | None = None,
        mode: Callable[[], Mode] | None = None,
        origin: Origin | None = None,
    ) -> Outcome:
        """Say something and have it answered; the outcome comes when the turn has ended.

        `emit` gets every event as it happens, `ask` is asked about tools unless somebody elsewhere answers first
        (without it, what would be asked is refused). `mode` says which one holds now, if it may change while the turn
        runs. `ModelMissing`, and nothing is stored, if there is nothing to answer it. `Busy` while another turn of the
        session runs, anywhere; with a `queue` mode, the prompt waits for it in the session's inbox, where it is stored at
        once (`wait` is the mode `followup`). `origin` says who speaks, in a chat. If the caller is cancelled, so is the turn.
        """
        if self._closed:
            raise InvalidInput("the session is closed: open it again")
        asked = _PendingPrompt()
        self._asked.add(asked)
        prompt = Draft(role="user", parts=tuple(parts), origin=origin)
        queued = queue or ("followup" if wait else None)
        queueing = queued and Queueing(mode=queued, choices=choices, ask=ask is not None)
        asked.task = task = self._beside(
            self._run_prompt(asked, prompt, choices, ask, emit, queueing, idempotency_key, mode)
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

    async def run_next(self) -> bool:
        """Run the next turn of the inbox, for whoever asked, and return at its end, however that is; False if none waits
        that may be run here. `ModelMissing`, and nothing is begun, if there is nothing to answer it."""
        window = await self._conversation.window(Choices())
        begun = await self._kept(self._journal.next(new_holder(), LEASE_MS))
        if begun is None:
            return False
        choices = msgspec.convert(begun.rows[-1].choices, Choices)
        ask = elsewhere if begun.rows[-1].ask else None
        asked = _PendingPrompt()
        self._asked.add(asked)
        asked.task = self._beside(self._run_turn(asked, begun, choices, ask, lambda _: None, window, None))
        asked.task.add_done_callback(lambda _: self._asked.discard(asked))
        try:
            await asyncio.shield(asked.task)
        except HithertoError:
            pass  # whoever asked is given it
        except asyncio.CancelledError:
            asked.cancel()
            await wait_all(asked.task)
            raise
        return True

    async def _run_prompt(
        self,
        asked: _PendingPrompt,
        prompt: Draft,
        choices: Choices,
        ask: Ask | None,
        emit: Emit,
        queueing: Queueing | None,
        key: str | None,
        mode: Callable[[], Mode] | None,
    ) -> Outcome:
        window = await self._conversation.window(choices)
        if self._prepare is not None:
            await self._prepare()
        begun = await self._kept(self._journal.begin(new_holder(), LEASE_MS, prompt, key, queueing))
        if isinstance(begun, Waiting):
            emit(Queued(entry=begun.id, place=begun.place))
            begun = await self._turn_of(asked, begun, key)
        if isinstance(begun, Outcome):
            return begun
        return await self._run_turn(asked, begun, choices, ask, emit, window, mode)

    async def _run_turn(
        self,
        asked: _PendingPrompt,
        begun: Begun,
        choices: Choices,
        ask: Ask | None,
        emit: Emit,
        window: int | None,
        mode: Callable[[], Mode] | None,
    ) -> Outcome:
        asked.turn = RunningTurn(
            self._journal,
            begun,
            self._conversation,
            choices,
            window,
            ask,
            emit,
            self._servers,
            mode,
            self._elicit,
            self._host,
        )
        outcome = await asked.turn.run()
        if self._improve_titles and not self._closed and _is_first(begun, outcome):
            self._titles.add(self._beside(self._improve_title(choices, emit)))
        return outcome

    async def _turn_of(self, asked: _PendingPrompt, waiting: Waiting, key: str | None) -> Begun | Outcome:
        """The turn of a prompt that waits, begun here; or its end, where somebody else has run it."""
        asked.waits = waiting.id
        try:
            while True:
                seen = await self._changes.newest(self._who)
                fate = await self._journal.fate(waiting.id, key)
                if isinstance(fate, Outcome):
                    return fate
                if fate.free and self._wake is not None:
                    self._wake()
                elif fate.free:
                    begun = await self._kept(self._journal.next(new_holder(), LEASE_MS, waiting.id))
                    if begun is not None:
                        return begun
                await self._changes.wait(self._who, after=seen, seconds=WAIT_SECONDS)
        except asyncio.CancelledError:
            await self._called_off(waiting)
            raise
        finally:
            asked.waits = None

    async def compact(
        self,
        *,
        choices: Choices = Choices(),  # noqa: B008 - a frozen value
        emit: Emit = lambda _: None,
    ) -> Shrunk:
        """Make the context smaller, with the engine's own summariser if it has one. `Busy` while a turn runs."""
        if self._prepare is not None:
            await self._prepare()
        return await self._compaction.shrink(
            self._who, self.session_id, summariser=summariser_of(self._conversation, choices), emit=emit
        )

    def cancel(self) -> bool:
        """End the turn that runs here, with what was said until now; False if none does."""
        for asked in list(self._asked):
            if asked.waits is None or self._wake is None:
                asked.cancel()
        return self.running

    async def settle(self) -> None:
        """End the running turn, and let the tasks beside it end; a title that takes long is not waited for."""
        self._closed = True
        for asked in list(self._asked):
            asked.cancel()
        titles = [task for task in self._titles if not task.done()]
        if titles:
            await asyncio.wait(titles, timeout=TITLE_GRACE_SECONDS)
            for task in titles:
                task.cancel()
        await wait_all(*self._tasks)

    async def _kept(self, beginning: Coroutine[Any, Any, T]) -> T:
        """Begin a turn, or wait for one; a caller who is cancelled while that is stored leaves nothing behind that nobody runs."""
        task = asyncio.ensure_future(beginning)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await wait_all(task)
            begun = None if task.exception() else task.result()
            if isinstance(begun, Begun):
                nothing = Outcome(stop_reason="cancelled", prompt=begun.history[-1].id)
                await finish(self._journal.finish([], begun.lease.fence, nothing, None, begun.rows))
            elif isinstance(begun, Waiting):
                await self._called_off(begun)
            raise

    async def _called_off(self, waiting: Waiting) -> None:
        """Take a prompt out of the inbox, unless others answer it there."""
        if self._wake is None:
            with suppress(HithertoError):
                await finish(self._journal.withdraw(waiting.id))

    async def _improve_title(self, choices: Choices, emit: Emit) -> None:
        """Have the engine find a title; that of a person is never touched, and without one the first prompt does."""
        with suppress(TimeoutError, HithertoError):
            async with asyncio.timeout(TITLE_SECONDS):
                told = await self._journal.context()
                title = await self._conversation.title(told, choices)
            if title is not None and (named := (await self._journal.retitle(title, told)).title) is not None:
                emit(Titled(title=named))

    def _beside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _is_first(begun: Begun, outcome: Outcome) -> bool:
    """Whether this was a session's first exchange, and its title is only what the prompt gave it."""
    prompts = sum(entry.role == "user" for entry in begun.history)
    return prompts == 1 and outcome.stop_reason == "end_turn" and begun.session.title_by == "auto"
