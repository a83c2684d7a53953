"""`hitherto append` is killed on its way, while others write: what it printed an id for is there, and theirs too."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import hitherto
from bench.workloads.messages import prose
from hitherto.model import LOCAL
from torture.clients import writer_processes
from torture.kills.outcome import AcknowledgementLog, KillTally, Message, compare_with_store, entries_of
from torture.kills.server import now
from torture.trial.program import Environment
from torture.trial.row import Setting
from torture.trial.stores import FILES, StoreProvider, examined, of

LONGEST = 4_000
WHEN = (0.75, 1.15)
"""When a command dies, as a share of the time that one takes: before that it only imports."""
LATER, SOONER = 1.05, 0.95
"""How the estimate of that time goes with a machine that is more or less busy."""
PATIENCE_SECONDS = 60.0
OTHERS, REST_SECONDS = 2, 0.02
"""Processes that append to the same store all the time, and how long each rests after two messages."""


class ToolOutput(NamedTuple):
    """How a command ended."""

    acknowledged: bool
    killed: bool
    seconds: float


def commands_killed(
    setting: Setting, environment: Environment, kills: int, store_provider: StoreProvider = FILES
) -> KillTally:
    """Append from the command line, one command after the other, until so many of them were killed."""
    folder = setting.folder / "commands"
    folder.mkdir(mode=0o700)
    given = {"HITHERTO_DATA_DIR": str(folder), **of(store_provider, folder, environment)}
    return asyncio.run(_killed(store_provider, folder, given, kills, setting.dice("kills of commands")))


async def _killed(
    store_provider: StoreProvider, folder: Path, given: Environment, kills: int, dice: random.Random
) -> KillTally:
    url = store_provider.store(folder)
    await writer_processes.prepare(url, OTHERS)
    async with hitherto.open(url) as sessions:
        talk = (await sessions.create(LOCAL)).id
    book = AcknowledgementLog(_messages(talk, dice))
    with writer_processes.writing(folder, url, OTHERS, given, rest=REST_SECONDS) as others:
        problems = await _until_killed(url, book, given, kills, dice)
        notes = others.notes()
    found = await compare_with_store(url, [talk], book) + await _beside(url, notes)
    problems += await examined(url)
    return found + KillTally(Counter(append=kills), examinations=kills + 1, problems=tuple(problems))


async def _until_killed(
    url: str, book: AcknowledgementLog, given: Environment, kills: int, dice: random.Random
) -> list[str]:
    """Run commands until so many were killed; what the store's own check told after each kill."""
    problems, killed, usual = list[str](), 0, PATIENCE_SECONDS
    while killed < kills:
        message = book.next()
        assert message is not None
        ran = await _appended(given, message, usual * dice.uniform(*WHEN))
        if ran.acknowledged:
            book.acknowledged[message.mark] = "append"
        elif ran.killed:
            book.unknown[message.mark] = now()
        else:
            book.refused.append(f"{message.mark}: `hitherto append` failed")
        if ran.killed:
            killed += 1
            usual *= LATER
            problems += await examined(url)
        else:
            usual = min(usual * SOONER, ran.seconds)
    return problems


async def _beside(url: str, notes: writer_processes.Notes) -> KillTally:
    """What became of the messages of the others."""
    async with hitherto.open(url) as sessions:
        names = (writer_processes.COMMON, *map(writer_processes.own, range(OTHERS)))
        there = {entry.id for name in names async for entry in entries_of(sessions, name)}
    told = {each.entry for each in notes.acknowledged}
    return KillTally(
        acknowledged=Counter({"others beside `append`": len(told)}),
        lost=len(told - there),
        problems=tuple(f"refused to others beside `append`: {code}" for code in notes.errors),
    )


def _messages(session_id: str, dice: random.Random) -> Iterator[Message]:
    for number in itertools.count():
        text = f"m{number} {prose(dice, dice.randint(10, LONGEST))}"
        yield Message(f"m{number}", session_id, text)


async def _appended(given: Environment, message: Message, seconds: float) -> ToolOutput:
    """Run the command, and kill it if it takes longer than this."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hitherto", "append", message.session_id, message.text),
        env={**os.environ, **given},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    told, ended = asyncio.create_task(process.stdout.read()), asyncio.create_task(process.wait())
    try:
        await asyncio.wait([ended], timeout=seconds)
    finally:
        killed = process.returncode is None
        if killed:
            process.kill()
    await ended
    # An id is printed in one line, and only a whole line is an answer.
    return ToolOutput((await told).endswith(b"\n"), killed, time.monotonic() - began)
