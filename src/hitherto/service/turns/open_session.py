"""A session that is open for prompts: one turn at a time, and the tasks that run beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from hitherto.engine import (
    Choices,
    Conversation,
    summariser_of,
)
from hitherto.errors import Busy, HithertoError, InvalidInput
from hitherto.holders import new_holder
from hitherto.model import Part, Principal, Shrunk
from hitherto.permissions import Mode
from hitherto.service.changes import Changes
from hitherto.service.compaction.compact import Compaction
from hitherto.service.turns.journal import Begun, TurnJournal
from hitherto.service.turns.runner import LEASE_MS, RunningTurn
from hitherto.tasks import finish, wait_all
from hitherto.updates import Ask, Emit, Outcome, Titled

T = TypeVar("T")

WAIT_SECONDS = 1.0
TITLE_SECONDS = 10.0
TITLE_GRACE_SECONDS = 0.5


class _PendingPrompt:
    """A prompt on its way: first the task that gets it ready, then the turn that answers it."""

    task: asyncio.Task[Outcome]
    turn: RunningTurn | None = None

    def cancel(self) -> None:
        if self.turn is not None:
            self.turn.cancel()
        else:
            self.task.cancel()


class OpenSession:
    """A session that is open in this process. `prepare` makes it, if it may not be there yet."""

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
    ) -> None:
        self.session_id, self._servers = session_id, servers
        self._prepare = prepare
        self._journal, self._changes, self._compaction = journal, changes, compaction
        self._who, self._conversation = who, conversation
        self._improve_titles = improve_titles
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
        idempotency_key: str | None = None,
        mode: Callable[[], Mode] | None = None,
    ) -> Outcome:
        """Say something and have it answered; the outcome comes when the turn has ended.

        `emit` gets every event as it happens, `ask` is asked about tools unless somebody elsewhere answers first
        (without it, what would be asked is refused). `mode` says which one holds now, if it may change while the turn
        runs. `ModelMissing`, and nothing is stored, if there is nothing to answer it. `Busy` while another turn of the
        session runs, anywhere; with `wait`, its end is waited for. If the caller is cancelled, so is the turn.
        """
        if self._closed:
            raise InvalidInput("the session is closed: open it again")
        asked = _PendingPrompt()
        self._asked.add(asked)
        asked.task = task = self._beside(
            self._run_turn(asked, parts, choices, ask, emit, wait, idempotency_key, mode)
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

    async def _run_turn(
        self,
        asked: _PendingPrompt,
        parts: Sequence[Part],
        choices: Choices,
        ask: Ask | None,
        emit: Emit,
        wait: bool,
        key: str | None,
        mode: Callable[[], Mode] | None,
    ) -> Outcome:
        window = await self._conversation.window(choices)
        if self._prepare is not None:
            await self._prepare()
        begun = await self._begin(parts, wait, key)
        if isinstance(begun, Outcome):
            return begun
        asked.turn = RunningTurn(
            self._journal, begun, self._conversation, choices, window, ask, emit, key, self._servers, mode
        )
        outcome = await asked.turn.run()
        if self._improve_titles and not self._closed and _is_first(begun, outcome):
            self._titles.add(self._beside(self._improve_title(choices, emit)))
        return outcome

    async def compact(self, *, choices: Choices = Choices()) -> Shrunk:  # noqa: B008 - a frozen value
        """Make the context smaller, with the engine's own summariser if it has one. `Busy` while a turn runs."""
        if self._prepare is not None:
            await self._prepare()
        return await self._compaction.shrink(
            self._who, self.session_id, summariser=summariser_of(self._conversation, choices)
        )

    def cancel(self) -> bool:
        """End the turn that runs here, with what was said until now; False if none does."""
        for asked in list(self._asked):
            asked.cancel()
        return self.running

    async def settle(self) -> None:
        """End the running turn, and let the tasks beside it end; a title that takes long is not waited for."""
        self._closed = True
        self.cancel()
        titles = [task for task in self._titles if not task.done()]
        if titles:
            await asyncio.wait(titles, timeout=TITLE_GRACE_SECONDS)
            for task in titles:
                task.cancel()
        await wait_all(*self._tasks)

    async def _begin(self, parts: Sequence[Part], wait: bool, key: str | None) -> Begun | Outcome:
        while True:
            seen = await self._changes.newest(self._who)
            try:
                return await self._begun(parts, key)
            except Busy:
                if not wait:
                    raise
            await self._changes.wait(self._who, after=seen, seconds=WAIT_SECONDS)

    async def _begun(self, parts: Sequence[Part], key: str | None) -> Begun | Outcome:
        """Begin the turn; a caller who is cancelled while that is stored leaves no turn behind that nobody runs."""
        beginning = asyncio.ensure_future(self._journal.begin(new_holder(), LEASE_MS, parts, key))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await wait_all(beginning)
            if beginning.exception() is None and isinstance(begun := beginning.result(), Begun):
                nothing = Outcome(stop_reason="cancelled", prompt=begun.history[-1].id)
                await finish(self._journal.finish([], begun.lease.fence, nothing, None, key))
            raise

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
