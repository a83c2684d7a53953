"""Work that may take long, in processes of its own, which can be ended: its reader leaves, or its time is over."""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from hitherto.errors import TooLarge
from hitherto.gateway.server.worker import HEAD, pickled
from hitherto.service.transfer.export import Beside
from hitherto.tasks import Turns, wait_all

COUNT = 2
COMMAND = (sys.executable, "-P", "-m", "hitherto.gateway.server.worker")
"""`-P`: nothing is imported from the folder in which the server was started."""

log = logging.getLogger(__name__)
Run = Callable[..., Awaitable[bytes]]
"""The result of a function of some module, given what can be pickled."""


def beside(run: Run) -> Beside:
    """The same for results of every kind that can be pickled."""

    async def result(work: Callable[..., Any], *given: Any) -> Any:
        return pickle.loads(await run(pickled, work, *given))  # noqa: S301 - our own worker wrote it

    return result


class WorkFailed(Exception):
    """The work raised an error; the message has its traceback."""


class WorkTooSlow(Exception):
    """The work took too long, also without the parts that are bounded."""


class Workers:
    """A few worker processes, started when they are needed. Each owner has at most one at a time.

    `effort`: CPU seconds for the parts that are bounded; `seconds`: when a worker that does not answer is killed.
    """

    def __init__(self, effort: float, seconds: float) -> None:
        self._effort, self._seconds = effort, seconds
        self._places = asyncio.Semaphore(COUNT)
        self._turns = Turns()
        self._idle: list[_Worker] = []
        self._busy = 0

    def __len__(self) -> int:
        """How many are working."""
        return self._busy

    async def make(self, owner: str, work: Callable[..., Any], *given: Any) -> Any:
        """Make a page of an owner's file; between two of them others may be made. Raises `TooLarge`."""
        try:
            async with self.turn(owner) as run:
                return await beside(run)(work, *given)
        except WorkTooSlow:
            raise TooLarge("this takes too long to make here: use `hitherto export`") from None

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[Run]:
        """Wait until nothing else runs for this owner, and for a free worker only then.

        What the block reads for its work is in memory once for each owner, however many requests wait.
        """
        async with self._turns.turn(owner):
            yield self._run

    async def close(self) -> None:
        """End all workers that are idle; those that work are ended by whoever waits for them."""
        while self._idle:
            await self._idle.pop().end()

    async def _run(self, work: Callable[..., bytes], *given: Any) -> bytes:
        """The result. Work that overruns its time is tried once more without the parts that are bounded."""
        try:
            return await self._attempt(self._effort, work, given)
        except (TimeoutError, EOFError, BrokenPipeError, ConnectionError):
            log.warning("something took too long to render, and is shown plainly")
        try:
            return await self._attempt(0.0, work, given)
        except (TimeoutError, EOFError, BrokenPipeError, ConnectionError) as error:
            raise WorkTooSlow from error

    async def _attempt(self, effort: float, work: Callable[..., bytes], given: tuple[Any, ...]) -> bytes:
        async with self._places:
            self._busy += 1
            worker: _Worker | None = None
            try:
                async with asyncio.timeout(self._seconds):
                    worker = self._idle.pop() if self._idle else await _Worker.start()
                    result = await worker.answer(pickle.dumps((effort, work, given)))
                self._idle.append(worker)
                worker = None
                return result
            except WorkFailed:
                if worker is not None:
                    self._idle.append(worker)
                    worker = None
                raise
            finally:
                self._busy -= 1
                if worker is not None:
                    await worker.end()


class _Worker:
    """One process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        self._process, self._given, self._taken = process, process.stdin, process.stdout

    @classmethod
    async def start(cls) -> _Worker:
        """A new process."""
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe))

    async def answer(self, message: bytes) -> bytes:
        """The answer to a message. Raises `EOFError` if the process has ended."""
        self._given.write(HEAD.pack(True, len(message)) + message)
        await self._given.drain()
        done, size = HEAD.unpack(await self._taken.readexactly(HEAD.size))
        result = await self._taken.readexactly(size)
        if not done:
            raise WorkFailed(result.decode("utf-8", "replace"))
        return result

    async def end(self) -> None:
        """Kill it, and see that it is gone."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._given.close()
        await wait_all(asyncio.ensure_future(self._process.wait()))
