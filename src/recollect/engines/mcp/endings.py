"""Ends that must be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def to_the_end(work: Coroutine[None, None, None]) -> None:
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
