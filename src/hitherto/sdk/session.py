"""A session to talk in."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from hitherto.engine import Notice
from hitherto.errors import Busy
from hitherto.sdk.blocks import Prompt, prompt_parts
from hitherto.sdk.messages import SDKMessage, SDKResultMessage
from hitherto.sdk.open import LazyResource, OpenedSession, StartSession, open_session
from hitherto.sdk.options import Options
from hitherto.sdk.prompt import QueuedPrompt
from hitherto.sdk.turn_messages import TurnReport


class SDKSession:
    """A session that keeps its conversation from prompt to prompt, in this program and in those that come later.

    Nothing is opened before the first use. Use it with `async with`, or close it. It belongs to one event loop.
    """

    def __init__(
        self,
        session_id: str,
        start: StartSession,
        options: Options,
        *,
        improve_titles: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._id, self._start, self._options = session_id, start, options
        self._improve_titles, self._clock = improve_titles, clock
        self._resumed_from: str | None = None
        self._resource = LazyResource(self._open_everything)
        self._turns: deque[QueuedPrompt] = deque()
        self._turn_lock = asyncio.Lock()
        self._running: QueuedPrompt | None = None
        self._sent: asyncio.Queue[QueuedPrompt | None] = asyncio.Queue()
        self._messages: asyncio.Queue[SDKMessage | Exception | None] = asyncio.Queue()
        self._notices: deque[Notice] = deque()

    @property
    def session_id(self) -> str:
        """The id of the session. If it continues another agent's session, the given id until it is open."""
        return self._id

    @property
    def resumed_from(self) -> str | None:
        """The session of another agent that this one is a fork of, once it is open; None for a session of our own."""
        return self._resumed_from

    async def __aenter__(self) -> Self:
        await self._resource.get()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def prompt(self, message: Prompt) -> SDKResultMessage:
        """Send a prompt and wait for the result; a failure of the provider is a result too.

        Raises `Busy`, and nothing is stored, while another turn of the session runs, here or elsewhere;
        `ModelMissing` if nothing can answer; `LeaseLost` if another process has taken the session over meanwhile;
        what `can_use_tool` raises.
        """
        parts = prompt_parts(message)
        if self._turns:
            raise Busy("this handle", round((self._clock() - self._turns[0].at) * 1000))
        turn = self._enqueue(QueuedPrompt(parts, self._clock(), _discard))
        try:
            return await self._run(await self._resource.get(), turn, wait=False)
        finally:
            self._turns.remove(turn)

    async def send(self, message: Prompt) -> None:
        """Queue a prompt; it runs after those sent before. Read its messages with `stream`."""
        turn = self._enqueue(QueuedPrompt(prompt_parts(message), self._clock(), self._messages.put_nowait))
        try:
            await self._resource.get()
        except BaseException:
            self._turns.remove(turn)
            raise
        self._sent.put_nowait(turn)

    async def stream(self) -> AsyncGenerator[SDKMessage, None]:
        """The messages of the oldest sent prompt that was not read to the end, up to its result.

        Waits until one is sent. If you leave early, the next call continues there. After the session is closed, it yields
        what is left, and then ends at once.
        """
        while (message := await self._messages.get()) is not None:
            if isinstance(message, Exception):
                raise message
            yield message
            if isinstance(message, SDKResultMessage):
                return
        self._messages.put_nowait(None)

    async def interrupt(self) -> bool:
        """End the oldest prompt that is not answered; what was said in it is kept, and its result says so. False if
        there is none.

        One that has not begun, since the session is being opened or another process has its turn, is not stored. What
        was sent after it continues.
        """
        if not self._turns:
            return False
        self._turns[0].interrupt()
        return True

    async def close(self) -> None:
        """End what runs, and let go of everything that was opened; the session stays in the store.

        What was sent and has not begun is not stored; each stream ends with a result that says `cancelled`.
        """
        try:
            await self._resource.close()
        finally:
            self._messages.put_nowait(None)

    def _enqueue(self, turn: QueuedPrompt) -> QueuedPrompt:
        self._turns.append(turn)
        return turn

    async def _run(self, opened: OpenedSession, turn: QueuedPrompt, *, wait: bool) -> SDKResultMessage:
        """Run a prompt after those before it."""
        async with self._turn_lock:
            turn_report = TurnReport(self._id, self._clock, partial=self._options.include_partial_messages)
            turn.begin(opened, turn_report)
            self._running = turn
            while self._notices:
                turn.emit(self._notices.popleft())
            try:
                return await turn.run(opened, turn_report, self._options, wait=wait)
            finally:
                self._running = None

    def _report(self, notice: Notice) -> None:
        """Show a notice in the running turn, else in the next one."""
        if self._running is not None:
            self._running.emit(notice)
        else:
            self._notices.append(notice)

    async def _answer_sent(self, opened: OpenedSession) -> None:
        """Run the sent prompts one after the other."""
        while (turn := await self._sent.get()) is not None:
            try:
                await self._run(opened, turn, wait=True)
            except Exception as error:  # noqa: BLE001 - whatever it is, it comes out of `stream`
                self._messages.put_nowait(error)
            finally:
                self._turns.remove(turn)

    @asynccontextmanager
    async def _open_everything(self) -> AsyncIterator[OpenedSession]:
        everything = open_session(
            self._start, self._options, report=self._report, improve_titles=self._improve_titles
        )
        async with everything as opened, asyncio.TaskGroup() as tasks:
            self._id, self._resumed_from = opened.init.session_id, opened.init.forked_from
            tasks.create_task(self._answer_sent(opened), name="sent")
            try:
                yield opened
            finally:
                for turn in self._turns:
                    turn.interrupt()
                self._sent.put_nowait(None)


def _discard(_: SDKMessage) -> None:
    """Shows nothing: whoever prompts gets the result alone."""
