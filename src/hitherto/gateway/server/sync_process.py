"""Sync beside the server: a process of its own, so that no answer waits for it, which ends with the server."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import cast

import msgspec

from hitherto.sources import local_sources
from hitherto.sources.shared.files import folder_exists
from hitherto.sources.sync.sync import Progress, Report
from hitherto.tasks import wait_all

COMMAND = (sys.executable, "-P", "-m", "hitherto", "sync", "--beside")
"""`-P`: nothing is imported from the folder in which the server was started."""
LOOK_SECONDS = 5.0
"""How often to look whether an agent has come to a machine that had none."""
RETRY_SECONDS = 30.0
LINE_BYTES = 1 << 24
"""A report names each file that could not be read."""

log = logging.getLogger(__name__)


class SyncNews(msgspec.Struct, frozen=True):
    """What the process says in a line: how far it is, or what it did."""

    progress: Progress | None = None
    report: Report | None = None


async def keep_synced(told: Callable[[SyncNews], None]) -> None:
    """Import the sessions of this user's agents into the store that the environment names, and follow them, until cancelled."""
    while not _has_agents():  # noqa: ASYNC110 - no system tells of a folder that is not there yet
        await asyncio.sleep(LOOK_SECONDS)
    while True:
        async with aclosing(_news()) as lines:
            async for news in lines:
                told(news)
        log.warning("sync has ended and starts again in %.0f seconds", RETRY_SECONDS)
        await asyncio.sleep(RETRY_SECONDS)


def _has_agents() -> bool:
    return any(folder_exists(folder) for source in local_sources() for folder in source.folders())


async def _news() -> AsyncGenerator[SyncNews, None]:
    # In a session of its own: ^C at the terminal is for the server, which ends it.
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
        start_new_session=True,
    )
    try:
        while line := await cast(asyncio.StreamReader, process.stdout).readline():
            yield msgspec.json.decode(line, type=SyncNews)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await wait_all(asyncio.ensure_future(process.wait()))
