"""Requests that take long: they go on when their client leaves, and end when their token is good for nothing any more."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.transport.responses import unauthenticated

T = TypeVar("T")


class Work:
    """One of them."""

    def __init__(self, caller: Caller, task: asyncio.Task[Any]) -> None:
        self._caller, self.task = caller, task
        self.is_revoked = False

    async def check(self) -> None:
        """End it if its token is good for nothing any more."""
        if not self.is_revoked and not await self._caller.holds():
            self.is_revoked = True
            self.task.cancel()


class Works:
    """Those of one server."""

    def __init__(self) -> None:
        self._running: set[Work] = set()

    async def done(
        self,
        caller: Caller,
        doing: Coroutine[object, object, bytes],
        left: Callable[[], bool] = lambda: False,
    ) -> bytes:
        """The result. Whoever is cancelled while they wait for it ends it, unless the client has just `left`.

        Raises `Refusal` if the token is revoked meanwhile.
        """
        task = asyncio.create_task(doing)
        work = self._begun(caller, task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if work.is_revoked and work.task.cancelled():
                raise unauthenticated() from None
            if not left():
                work.task.cancel()
                await asyncio.wait([work.task])
            elif not work.task.done():
                work.task.add_done_callback(_seen)
            raise

    def begin(self, caller: Caller, doing: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do this beside whoever asks, who need not wait for it."""
        task = asyncio.create_task(doing)
        self._begun(caller, task).task.add_done_callback(_seen)
        return task

    def _begun(self, caller: Caller, task: asyncio.Task[Any]) -> Work:
        work = Work(caller, task)
        self._running.add(work)
        task.add_done_callback(lambda _: self._running.discard(work))
        return work

    async def check(self) -> None:
        """End those whose token is good for nothing any more."""
        for work in tuple(self._running):
            await work.check()

    async def end(self) -> None:
        """End them all."""
        tasks = [work.task for work in self._running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _seen(task: asyncio.Task[Any]) -> None:
    """Nobody waits for how it ends."""
    if not task.cancelled():
        task.exception()


class Outgoing:
    """Bytes by token. What is on its way counts; what is about to be made waits until there is room for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes: Counter[str] = Counter()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def making(self, token: str, size: int) -> AsyncIterator[None]:
        """Make an answer of at most this size while the block runs; one alone may always be made."""
        while size and self._bytes[token] and self._bytes[token] + size > self._most:
            gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(token, []).append(gone)
            await gone
        with self.sending(token, size):
            yield

    @contextmanager
    def sending(self, token: str, size: int) -> Iterator[None]:
        """So much is on its way to the reader while the block runs."""
        self._bytes[token] += size
        try:
            yield
        finally:
            self._bytes[token] -= size
            if not self._bytes[token]:
                del self._bytes[token]
            for gone in self._waiting.pop(token, ()):
                if not gone.done():
                    gone.set_result(None)
