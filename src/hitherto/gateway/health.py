"""`/health`: the process runs. `/ready`: it can answer, so requests may be sent to it."""

from __future__ import annotations

import asyncio

from hitherto.errors import HithertoError
from hitherto.service import Sessions

READY_SECONDS = 2.0
HEALTHY = b'{"status":"ok"}'
READY = b'{"status":"ready"}'
ENDING = b'{"status":"ending"}'
NO_STORE = b'{"status":"the store does not answer"}'


async def readiness(sessions: Sessions, *, ending: bool) -> tuple[int, bytes]:
    """A status and what to say: whether the store answers, and nothing about what is in it."""
    if ending:
        return 503, ENDING
    try:
        async with asyncio.timeout(READY_SECONDS):
            await sessions.access_generation()
    except (HithertoError, TimeoutError):
        return 503, NO_STORE
    return 200, READY
