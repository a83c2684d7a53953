"""A guard beside a command: should this process be killed, the command's process group does not outlive it."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

SCRIPT = """\
read -r group || exit 0
read -r over && exit 0
kill -s TERM -- "-$group"
sleep 2
kill -s KILL -- "-$group"
"""
"""Waits for the number of a group, and then for the word that all is over. If its input ends without it, we are gone."""


@asynccontextmanager
async def guard() -> AsyncIterator[Callable[[int], None]]:
    """A small shell, in a session of its own, that watches over the group it is told of until the block ends."""
    reads, writes = os.pipe()
    try:
        watching = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", SCRIPT, stdin=reads, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except BaseException:
        os.close(writes)
        raise
    finally:
        os.close(reads)
    try:
        yield lambda group: _tell(writes, str(group))
    finally:
        _tell(writes, "over")
        os.close(writes)
        await watching.wait()


def _tell(writes: int, word: str) -> None:
    with suppress(BrokenPipeError):  # somebody has killed the guard
        os.write(writes, f"{word}\n".encode())
