"""A session to talk in."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from recollect.engine import Notice
from recollect.errors import Busy, EngineError, ModelMissing
from recollect.model import Part, ToolCall
from recollect.permissions import Choice, Verdict
from recollect.sdk.account import Account, notice
from recollect.sdk.asking import asking
from recollect.sdk.blocks import Prompt, spoken
from recollect.sdk.messages import SDKMessage, SDKResultMessage
from recollect.sdk.opening import Begin, Open, opening
from recollect.sdk.options import Options
from recollect.sdk.owning import Owned
from recollect.updates import Ask, Update

Show = Callable[[SDKMessage], None]


class _Turn:
    """A prompt on its way. `broken` is what the caller's own function raised in it."""

    def __init__(self, parts: tuple[Part, ...], at: float) -> None:
        self.parts = parts
        self.at = at
        self.interrupted = False
        self.broken: Exception | None = None


class SDKSession:
    """A session that keeps its conversation from prompt to prompt, in this program and in those that come later.

    Nothing is opened before the first use. Use it with `async with`, or close it. It belongs to one event loop.
    """

    def __init__(
        self,
        session_id: str,
        begin: Begin,
        options: Options,
        *,
        improve_titles: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._id, self._begin, self._options = session_id, begin, options
        self._improve_titles, self._clock = improve_titles, clock
        self._resumed_from: str | None = None
        self._home = Owned(self._opening)
        self._open: Open | None = None
        self._turns: deque[_Turn] = deque()
        self._sent: asyncio.Queue[_Turn] = asyncio.Queue()
        self._told: asyncio.Queue[SDKMessage | Exception | None] = asyncio.Queue()
        self._notices: deque[Notice] = deque()

    @property
    def session_id(self) -> str:
        """The id of the session. Of one that goes on from another agent's, the id given until it is open."""
        return self._id

    @property
    def resumed_from(self) -> str | None:
        """The session of another agent that this one is a fork of, once it is open; None for a session of our own."""
        return self._resumed_from

    async def __aenter__(self) -> Self:
        await self._home.get()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def prompt(self, message: Prompt) -> SDKResultMessage:
        """Say something and wait for the result; that a provider refuses or breaks off is a result too.

        Raises `Busy`, and nothing is stored, while another turn of the session runs, here or elsewhere;
        `ModelMissing` if nothing can answer; what `can_use_tool` raises.
        """
        parts = spoken(message)
        if self._turns:
            raise Busy("this handle", round((self._clock() - self._turns[0].at) * 1000))
        turn = self._queued(parts)
        try:
            return await self._run(await self._home.get(), turn, lambda _: None, wait=False)
        finally:
            self._turns.remove(turn)

    async def send(self, message: Prompt) -> None:
        """Say something; it is answered as soon as what was sent before is. `stream` tells what happens."""
        turn = self._queued(spoken(message))
        try:
            await self._home.get()
        except BaseException:
            self._turns.remove(turn)
            raise
        self._sent.put_nowait(turn)

    async def stream(self) -> AsyncGenerator[SDKMessage, None]:
        """The messages of the oldest prompt sent that has not been told to its end, up to its result.

        Waits for one to be sent. Left early, the next call goes on there. Ends when the session is closed.
        """
        while (message := await self._told.get()) is not None:
            if isinstance(message, Exception):
                raise message
            yield message
            if isinstance(message, SDKResultMessage):
                return
        self._told.put_nowait(None)

    async def interrupt(self) -> bool:
        """End the running turn; what was said in it is kept, and its result says so. False if none runs.

        A turn that is about to begin ends when it has begun. What was sent after it goes on.
        """
        if not self._turns:
            return False
        if self._open is None or not self._open.turns.cancel():
            self._turns[0].interrupted = True
        return True

    async def close(self) -> None:
        """End what runs, and let go of everything that was opened; the session stays in the store."""
        try:
            await self._home.close()
        finally:
            self._told.put_nowait(None)

    def _queued(self, parts: tuple[Part, ...]) -> _Turn:
        turn = _Turn(parts, self._clock())
        self._turns.append(turn)
        return turn

    async def _run(self, home: Open, turn: _Turn, show: Show, *, wait: bool) -> SDKResultMessage:
        """Have a prompt answered, showing its messages; the last one comes back."""
        account = Account(self._id, self._clock, partial=self._options.include_partial_messages)
        show(home.init)
        while self._notices:
            show(notice(self._id, self._notices.popleft()))

        def emit(update: Update) -> None:
            if turn.interrupted:
                turn.interrupted = False
                home.turns.cancel()
            if (message := account.told(update)) is not None:
                show(message)

        try:
            outcome = await home.turns.prompt(
                turn.parts,
                choices=self._options.choices,
                ask=self._asking(home, turn),
                emit=emit,
                wait=wait,
            )
            result = account.result(outcome)
        except ModelMissing:
            raise
        except EngineError as error:
            result = account.failure(error)
        if turn.broken is not None:
            raise turn.broken
        show(result)
        return result

    def _asking(self, home: Open, turn: _Turn) -> Ask | None:
        """Asks the caller's function; if that raises, the turn ends and the caller gets what it raised."""
        if self._options.can_use_tool is None:
            return None
        ask = asking(self._id, self._options.can_use_tool)

        async def asked(call: ToolCall) -> Choice | Verdict:
            try:
                return await ask(call)
            except Exception as error:  # noqa: BLE001 - it is the caller's, and comes out of the caller's await
                turn.broken = error
                home.turns.cancel()
                return Verdict(allowed=False, reason="nobody could be asked")

        return asked

    async def _answer_sent(self, home: Open) -> None:
        """Answer what is sent, one after the other."""
        while True:
            turn = await self._sent.get()
            try:
                await self._run(home, turn, self._told.put_nowait, wait=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, it comes out of `stream`
                self._told.put_nowait(error)
            finally:
                self._turns.remove(turn)

    @asynccontextmanager
    async def _opening(self) -> AsyncIterator[Open]:
        everything = opening(
            self._begin, self._options, report=self._notices.append, improve_titles=self._improve_titles
        )
        async with everything as home, asyncio.TaskGroup() as tasks:
            self._open = home
            self._id, self._resumed_from = home.init.session_id, home.init.forked_from
            answering = tasks.create_task(self._answer_sent(home), name="sent")
            try:
                yield home
            finally:
                answering.cancel()
