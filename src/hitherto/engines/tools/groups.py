"""Process groups: whether something of one still runs, and ending all of it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

POLL = 0.01
GRACE = 2.0
"""How long a group has to end after being told to."""
LAST = 2.0
"""How long it has after being made to."""
PROCESSES = Path("/proc")
OVER = frozenset("ZX")
"""The states of a process that has ended and waits to be collected."""


async def end_group(group: int) -> None:
    """Tell a process group to end, then make it; at once if there is nothing left of it."""
    loop = asyncio.get_running_loop()
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, LAST)):
        until = loop.time() + seconds
        signalled(group, number)
        while is_running(group):
            if loop.time() >= until:
                break
            await asyncio.sleep(POLL)
        else:
            return


def signalled(group: int, number: int) -> bool:
    """Send a signal to a process group; whether there is one that is ours to end."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_running(group: int) -> bool:
    """Whether something of a group still runs.

    What has ended counts as a part of the group until it is collected, and in many a container nobody collects; where
    the system shows the states of processes, they decide.
    """
    if not signalled(group, 0):
        return False
    return not PROCESSES.joinpath("self/stat").exists() or any(state not in OVER for state in _states(group))


def _states(group: int) -> Iterator[str]:
    for process in PROCESSES.iterdir():
        with suppress(OSError):
            if process.name.isdigit():
                # The name, in brackets, may hold anything; behind it come state, parent and group.
                state, _, of = process.joinpath("stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(of) == group:
                    yield state.decode()
