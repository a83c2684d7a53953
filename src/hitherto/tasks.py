"""Work that comes to its end, however often whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 10.0
"""How long a cancelled caller waits for work that does not stop, such as a disk that does not answer."""


async def wait_all(*tasks: asyncio.Future[Any]) -> None:
    """Wait until all of these are done. If the caller is cancelled meanwhile, that is raised only then."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        for task in tasks:
            if not task.cancelled():
                task.exception()  # seen: the caller gets the cancellation instead
        raise cancelled


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these, and wait until all of them are done, in the same way. Nobody hears what they come to."""
    pending = tuple(tasks)
    for task in pending:
        task.cancel()
    await wait_all(*pending)


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of this work, which runs to its end even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    await wait_all(task)
    return task.result()


async def finish_or_stop(work: asyncio.Task[T], stop: Callable[[], None] = lambda: None) -> T:
    """The result of this work. If the caller is cancelled, `stop` is called, and the work ends before this does."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop()
        work.add_done_callback(_seen)
        loop = asyncio.get_running_loop()
        until = loop.time() + STOP_SECONDS
        while not work.done() and loop.time() < until:
            # Cancelled once more: it is already ending.
            with suppress(asyncio.CancelledError):
                await asyncio.wait((work,), timeout=until - loop.time())
        raise


def _seen(work: asyncio.Task[Any]) -> None:
    """Nobody else hears what it comes to."""
    if not work.cancelled():
        work.exception()


async def in_thread(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """`finish_or_stop` for blocking work, in a thread."""
    return await finish_or_stop(asyncio.create_task(asyncio.to_thread(work)), stop)


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event happens within so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


class Turns:
    """For each name, one at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def is_taken(self, name: str) -> bool:
        """Whether somebody of this name is inside, or waits."""
        return name in self._locks

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait until nobody else of this name is inside."""
        await self.enter(name)
        try:
            yield
        finally:
            self.leave(name)

    async def enter(self, name: str, seconds: float | None = None) -> None:
        """Be inside until `leave`; waiting for longer than so many seconds is a `TimeoutError`."""
        lock, count = self._locks.get(name) or (asyncio.Lock(), 0)
        self._locks[name] = (lock, count + 1)
        try:
            if count:
                async with asyncio.timeout(seconds):
                    await lock.acquire()
            else:
                await lock.acquire()  # at once: a clock would cost more than the lock
        except BaseException:
            self._forget(name)
            raise

    def leave(self, name: str) -> None:
        """Let the next one in."""
        self._locks[name][0].release()
        self._forget(name)

    def _forget(self, name: str) -> None:
        lock, count = self._locks.pop(name)
        if count > 1:
            self._locks[name] = (lock, count - 1)
