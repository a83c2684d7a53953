"""The power fails: what a disk holds at some instant is copied, and the copy is all that the program finds afterwards.

The disk is a file in memory with ext4 on it. When the server is stopped for a cut, what it has in the kernel is still
being written, so a cut may go through the middle of a sync. The copy has what was synced, and of the rest whatever had
reached the disk by then.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import hitherto
from bench.workloads.server_load import served
from hitherto.model import LOCAL, Draft, Text
from torture.clients.acknowledged import Client, Judged, Pages, clients, judged
from torture.trial import disks
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

DISK_BYTES = 128 * 1024 * 1024
MEMORY = "size=512m"
CLIENTS = 4
LIFE = 10
"""So many cuts are made of one server before another begins on an empty disk."""
MOST_APPENDS = 150
"""At most so many messages are acknowledged between two cuts."""


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Cut again and again while clients append; hold each copy to what was acknowledged until then."""
    cuts, dice = setting.of(short=5, full=500), setting.dice("power cuts")
    found: list[Judged] = []
    acknowledged = lost = 0
    with disks.memory(setting.folder / "memory", MEMORY) as memory:
        while len(found) < cuts:
            more = asyncio.run(_life(memory, environment, min(LIFE, cuts - len(found)), dice))
            acknowledged += more[-1].acknowledged
            lost += max(each.lost for each in more)  # a later cut may lose the same ones again
            found += more
            setting.say(f"  {len(found)} cuts, {acknowledged:,} acknowledged")
    verdict = sum(found, Judged())
    lossy = [each.lost for each in found if each.lost]
    where = f" in {len(lossy):,} cuts, at most {max(lossy):,} at once" if lossy else ""
    return Outcome(
        met=verdict.whole,
        figure=f"{cuts:,} cuts, {acknowledged:,} acknowledged: {lost:,} lost{where}; {verdict.faults()}",
        counts={"faults": cuts, "acknowledged": acknowledged, "lost": lost},
    )


async def _life(memory: Path, environment: Environment, cuts: int, dice: random.Random) -> Sequence[Judged]:
    """One server on an empty disk, and what the copies of the disk hold."""
    image, copy = memory / "disk.img", memory / "copy.img"
    found: list[Judged] = []
    with (
        disks.image(image, DISK_BYTES),
        disks.mounted("ext4", str(image), memory / "disk", "loop") as disk,
        (memory / "log").open("wb") as log,
        served(disk / "data", environment, log) as server,
    ):
        async with clients(server, CLIENTS, dice) as them, _appending(them) as load:

            def cut() -> None:
                os.kill(server.pid, signal.SIGSTOP)
                try:
                    disks.copy_blocks(image, copy)
                finally:
                    os.kill(server.pid, signal.SIGCONT)

            for _ in range(cuts):
                pages = await load.then(dice.randint(1, MOST_APPENDS), cut)
                with disks.mounted("ext4", str(copy), memory / "after", "loop") as after:
                    found.append(await _held(after / "data", pages))
    return found


async def _held(folder: Path, pages: Sequence[Pages]) -> Judged:
    """What is there after the cut, and that one can go on with it."""
    verdict = await judged(store_in(folder), pages)
    async with hitherto.open(store_in(folder)) as sessions:
        fresh = await sessions.create(LOCAL)
        await sessions.append(LOCAL, fresh.id, Draft(role="user", parts=(Text(text="and on"),)))
    return verdict


class _Load:
    """Clients that append, until it is time for something."""

    def __init__(self, them: Sequence[Client]) -> None:
        self._them = them
        self._open = asyncio.Event()
        self._until, self._left = asyncio.Event(), 0
        self._time_for: Callable[[], None] = lambda: None
        self._pages: Sequence[Pages] = ()

    async def then(self, appends: int, time_for: Callable[[], None]) -> Sequence[Pages]:
        """Let them append so many messages, and do it at once, while others are on their way; what was acknowledged by then."""
        self._left, self._time_for = appends, time_for
        self._until.clear()
        self._open.set()
        await self._until.wait()
        return self._pages

    async def append(self, client: Client) -> None:
        """What one of them does."""
        while True:
            await self._open.wait()
            code = await client.say()
            if code is not None:
                raise RuntimeError(f"refused, though nothing fails: {code}")
            self._left -= 1
            if self._left == 0:
                self._open.clear()
                self._pages = [each.pages.copy() for each in self._them]
                self._time_for()
                self._until.set()


@asynccontextmanager
async def _appending(them: Sequence[Client]) -> AsyncIterator[_Load]:
    load = _Load(them)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(load.append(each)) for each in them]
        yield load
        for task in tasks:
            task.cancel()
