"""Work that is over when its caller is: nothing that a tool has begun goes on behind a cancelled call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 10.0
"""How long a cancelled caller waits for work that does not stop, such as a disk that does not answer."""


async def seen_out(work: asyncio.Task[T], stop: Callable[[], None] = lambda: None) -> T:
    """What the work comes to. If the caller is cancelled, `stop` is called, and the work ends before this does."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop()
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while not work.done() and loop.time() < until:
            # Cancelled once more: it is already ending.
            with suppress(asyncio.CancelledError):
                await asyncio.wait((work,), timeout=until - loop.time())
        raise


async def in_thread(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """The same for blocking work, in a thread."""
    return await seen_out(asyncio.create_task(asyncio.to_thread(work)), stop)
