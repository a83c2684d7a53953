"""Ends that must be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


async def to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for `work` to its end, however often the waiting is cancelled; only then let it be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these, and wait for all of them in the same way. What they come to is theirs to tell."""
    pending = set(tasks)
    for task in pending:
        task.cancel()
    if pending:
        await to_the_end(_over(pending))


async def _over(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.wait(tasks)
