"""Something that is opened at its first use, by a task that closes it again.

What is opened in one task and closed in another trips over tasks and scopes that belong to the first; so one task does
both, whoever asks. A program that ends without closing ends that task, and with it what it holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from hitherto.errors import InvalidInput

T = TypeVar("T")
_OWNERS: set[asyncio.Task[Any]] = set()
"""The loop itself holds tasks only weakly; these must live until they are done."""


class Owned(Generic[T]):
    """Opens at the first `get`, holds until `close`. If opening fails, each `get` tells so."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._opening = opening
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[T] | None = None
        self._owner: asyncio.Task[None] | None = None

    async def get(self) -> T:
        """What is open; it is opened if it is not yet. Raises `InvalidInput` if it is closed, or is so meanwhile."""
        self._check_open()
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._ready), name="session")
            _OWNERS.add(self._owner)
            self._owner.add_done_callback(_OWNERS.discard)
        value = await asyncio.shield(self._ready)
        self._check_open()
        return value

    async def close(self) -> None:
        """Close it, if it is open; from then on it cannot be opened."""
        self._closing.set()
        if self._owner is not None:
            await asyncio.wait([self._owner])
            if not self._owner.cancelled():
                self._owner.result()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise InvalidInput("the session is closed; resume it to go on")

    async def _own(self, ready: asyncio.Future[T]) -> None:
        try:
            async with self._opening() as value:
                ready.set_result(value)
                await self._closing.wait()
        except BaseException as error:
            if ready.done() or not isinstance(error, Exception):
                ready.cancel()
                raise
            ready.set_exception(error)
