"""The disk fails: some of the calls by which the store reads, writes and syncs its files return an error."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.workloads.server_load import Server, served
from torture.clients.acknowledged import Client, Judged, clients, code_of, judged
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

FAULTS = {
    "posix/io/rw/pwrite": 0.02,
    "posix/io/rw/pwrite/reduce": 0.02,
    "posix/io/sync/fdatasync": 0.05,
    "posix/io/rw/pread": 0.01,
    "posix/io/rw/ftruncate": 0.05,
}
"""Calls that SQLite makes for its files and the server for nothing else, and how often each fails (or does half)."""
LIFE, APPENDS = 250, 1_500
"""So many refusals are seen of one server, or so many messages said, before another begins."""
OURS = frozenset({"store_unavailable", "store_full", "store_damaged"})
"""What a failing disk may be told as: a file that the disk cannot read is damaged to SQLite, as far as it can see."""
PATIENCE = 60


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Let the disk fail under one server after the other, until enough was refused; then hold the stores to what was said."""
    wanted, dice = setting.of(short=40, full=5_000), setting.dice("errors")
    told, verdict = Counter[str](), Judged()
    while told["faults"] < wanted and told["lives"] <= wanted // LIFE + 1:
        folder = setting.folder / f"life{told['lives']}"
        folder.mkdir()
        more, found = asyncio.run(_life(folder, environment, min(LIFE, wanted - told["faults"]), dice))
        told, verdict = told + more + Counter(lives=1), verdict + found
        setting.say(f"  {told['faults']:,} errors: {verdict.told()}")
    figure = (
        f"at least {told['faults']:,} errors injected, {verdict.acknowledged:,} acknowledged: {verdict.lost:,} lost,"
        f" {len(verdict.problems):,} stores damaged, {told['other']:,} answers in other words than the store's,"
        f" {told['stuck']:,} of {told['lives']:,} servers not at work when the disk was; {verdict.faults()}"
    )
    return Outcome(
        met=verdict.whole and told["faults"] >= wanted and not told["other"] and not told["stuck"],
        figure=figure,
        counts={"faults": told["faults"], "acknowledged": verdict.acknowledged, "lost": verdict.lost},
    )


async def _life(
    folder: Path, environment: Environment, wanted: int, dice: random.Random
) -> tuple[Counter[str], Judged]:
    """One server, which can be reached all the time and has to go on when the disk does."""
    told = Counter[str]()
    pipe = folder / "fiu"
    with (
        (folder / "log").open("wb") as log,
        served(folder, environment, log, ("fiu-run", "-x", "-f", str(pipe))) as server,
    ):
        async with clients(server, 2, dice) as (first, second):
            with _failing(server, pipe):
                told += await _appended(first, second, wanted)
            told["stuck"] += any([await client.say() is not None for client in (first, second)])
            pages = [first.pages, second.pages]
    told["other"] += sum(refusal.code not in OURS for each in pages for refusal in each.refused)
    return told, await judged(store_in(folder), pages)


async def _appended(first: Client, second: Client, wanted: int) -> Counter[str]:
    """Two who append until the first was refused so often. Each of these is one fault at least; the second's may be the same."""
    told, enough = Counter[str](), asyncio.Event()

    async def beside() -> None:
        while not enough.is_set():
            await second.say()

    async with asyncio.TaskGroup() as group:
        group.create_task(beside())
        while told["faults"] < wanted and told["said"] < APPENDS:
            told["said"] += 1
            if await first.say() is not None:
                told["faults"] += 1
                told["other"] += await _misread(first)
        enough.set()
    return told


async def _misread(client: Client) -> int:
    """Whether reading fails in other words than the store's; to fail is allowed."""
    answer = await client.ask("session.history", {"session_id": client.pages.session_id, "limit": 20})
    return code_of(answer) not in {None, *OURS}


@contextmanager
def _failing(server: Server, pipe: Path) -> Iterator[None]:
    """The server's calls fail, until the block ends."""
    for name, often in FAULTS.items():
        _tell(server, pipe, f"enable_random name={name},probability={often}")
    try:
        yield
    finally:
        for name in FAULTS:
            _tell(server, pipe, f"disable name={name}")


def _tell(server: Server, pipe: Path, words: str) -> None:
    command = ["fiu-ctrl", "-f", str(pipe), "-c", words, str(server.pid)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    if ran.stdout:
        raise RuntimeError(ran.stdout)
