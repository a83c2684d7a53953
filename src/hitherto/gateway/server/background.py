"""Long requests: they continue when their client disconnects, and end when their token is revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.transport.responses import unauthenticated

T = TypeVar("T")


class BackgroundRequest:
    """One long request, with the caller whose token it needs."""

    def __init__(self, caller: Caller, task: asyncio.Task[Any]) -> None:
        self._caller, self.task = caller, task
        self.is_revoked = False

    async def check(self) -> None:
        """Cancel it if its token was revoked."""
        if not self.is_revoked and not await self._caller.holds():
            self.is_revoked = True
            self.task.cancel()


class BackgroundRequests:
    """The long requests of one server."""

    def __init__(self) -> None:
        self._running: set[BackgroundRequest] = set()

    async def run(
        self,
        caller: Caller,
        doing: Coroutine[object, object, bytes],
        left: Callable[[], bool] = lambda: False,
        after: Callable[[], None] = lambda: None,
    ) -> bytes:
        """Run it and return its result. If the waiting task is cancelled, so is the request, unless the client has `left`.
        `after` is called when it has ended, in whichever way.

        Raises `Refusal` if the token is revoked while it runs.
        """
        task = asyncio.create_task(doing)
        task.add_done_callback(lambda _: after())
        request = self._track(caller, task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if request.is_revoked and request.task.cancelled():
                raise unauthenticated() from None
            if not left():
                request.task.cancel()
                await asyncio.wait([request.task])
            elif not request.task.done():
                request.task.add_done_callback(_ignore_outcome)
            raise

    def start(self, caller: Caller, doing: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start it without waiting for its result."""
        task = asyncio.create_task(doing)
        self._track(caller, task).task.add_done_callback(_ignore_outcome)
        return task

    def _track(self, caller: Caller, task: asyncio.Task[Any]) -> BackgroundRequest:
        request = BackgroundRequest(caller, task)
        self._running.add(request)
        task.add_done_callback(lambda _: self._running.discard(request))
        return request

    async def check(self) -> None:
        """Cancel the requests whose token was revoked."""
        for request in tuple(self._running):
            await request.check()

    async def end(self) -> None:
        """Cancel all and wait until they have ended."""
        tasks = [request.task for request in self._running]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _ignore_outcome(task: asyncio.Task[Any]) -> None:
    """Mark the exception as retrieved: nobody awaits this task."""
    if not task.cancelled():
        task.exception()
