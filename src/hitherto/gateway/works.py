"""Requests that take long: they go on when their client leaves, and end when their token is good for nothing any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hitherto.gateway.bearer import Caller
from hitherto.gateway.replies import unauthenticated

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
