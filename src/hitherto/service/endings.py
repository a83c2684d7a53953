"""Ends that must be reached, however often somebody is cancelled on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do this to its end even if the caller is cancelled meanwhile; the cancellation is felt afterwards."""
    task = asyncio.ensure_future(work)
    await ended(task)
    return task.result()


async def ended(*tasks: asyncio.Future[Any]) -> None:
    """Wait until all of these are done; a cancellation of the caller is felt only then."""
    cancelled: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        for task in tasks:
            if not task.cancelled():
                task.exception()  # seen: the cancellation is what the caller hears of
        raise cancelled


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event happens within so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
