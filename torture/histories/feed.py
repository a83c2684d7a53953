"""The change feed of PostgreSQL alone: many writers, broken transactions, killed connections, a move by `pg_dump`, and readers
that go on with their positions at another server.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from hitherto.errors import HithertoError
from hitherto.model import Draft, Filter, Principal, Text
from hitherto.ports import Reader, Store, Writer
from hitherto.service import Sessions
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.history.entries import Entries
from hitherto.stores import connector
from hitherto.values.positions import BEGINNING
from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer, binaries
from torture.trial.program import Environment, apart
from torture.trial.row import Outcome, Setting

OWNER, EVERYTHING = Principal(owner="gateway"), Filter(archived="include")
READERS, SERVERS, SHARED, PAGE = 4, 2, 8, 7
TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'hitherto' AND state <> 'idle'
ORDER BY random() LIMIT 1
"""


class Broken(Exception):
    """A transaction that its client gives up."""


class Cursor:
    """A reader: how far it has come, and the last revision of each session that it was given."""

    def __init__(self, position: str = BEGINNING, seen: dict[str, int | None] | None = None) -> None:
        self.position, self.seen = position, seen or {}
        self.twice = 0

    async def read(self, store: Store) -> int:
        """The next changes; returns how many."""

        async def page(tx: Reader) -> Any:
            return await tx.changes(OWNER.owner, self.position, PAGE)

        changes = await store.read(page)
        for change in changes:
            known = self.seen.get(change.session, 0)
            if known is not None and change.revision is not None and change.revision <= known:
                self.twice += 1
            self.seen[change.session] = change.revision
        self.position = changes[-1].position if changes else self.position
        return len(changes)


class Task(NamedTuple):
    """What is done in one database."""

    url: str
    seed: int
    part: int
    writers: int
    calls: int
    kills: int


def said(text: str) -> Draft:
    """A message."""
    return Draft(role="user", parts=(Text(text=text),))


async def _several(sessions: Sessions, names: Sequence[str], *, breaks: bool) -> None:
    """Sessions that are made in one transaction, which may be given up at its end."""

    async def work(tx: Writer) -> None:
        core = sessions.core.within(tx)
        for name in names:
            await Catalog(core).create(OWNER, session_id=name)
            await Entries(core).append(OWNER, name, said("in a transaction"))
        if breaks:
            raise Broken

    with suppress(Broken):
        await sessions.core.store.write(work)


async def _write(task: Task, number: int, stores: Sequence[Sessions]) -> int:
    """One writer; returns how many calls were acknowledged."""
    dice, done = random.Random(f"{task.seed}:{task.part}:{number}"), 0
    for call in range(task.calls):
        sessions, name = dice.choice(stores), f"{task.part}-{number}-{call}"
        with suppress(HithertoError):  # a connection was killed: what came of it is seen in the end
            match dice.randrange(4):
                case 0:
                    await sessions.append(OWNER, f"shared-{dice.randrange(SHARED)}", said(name))
                case 1:
                    names = [f"{name}-{each}" for each in range(dice.randrange(2, 12))]
                    await _several(sessions, names, breaks=dice.random() < 0.3)
                case _:
                    await sessions.create(OWNER, session_id=name)
                    await sessions.append(OWNER, name, said(name))
            done += 1
    return done


async def _follow(cursor: Cursor, stores: Sequence[Sessions], first: int, ended: asyncio.Event) -> None:
    """Read until the writers have ended and nothing is new, now at this server, now at that."""
    turn = first
    while True:
        over, turn = ended.is_set(), turn + 1
        with suppress(HithertoError):
            if not await cursor.read(stores[turn % len(stores)].core.store) and over:
                return


async def _kill(task: Task, ended: asyncio.Event) -> int:
    """End connections that are at work; returns how many."""
    killed = 0
    async with await psycopg.AsyncConnection.connect(task.url, autocommit=True) as connection:
        while killed < task.kills and not ended.is_set():
            found = await (await connection.execute(TERMINATE)).fetchone()
            killed += found is not None
    return killed


async def _phase(task: Task, cursors: Sequence[Cursor]) -> tuple[int, int, dict[str, int]]:
    ended = asyncio.Event()
    async with AsyncExitStack() as stack:
        open_ = connector(task.url)
        stores = [Sessions(await stack.enter_async_context(open_(task.url))) for _ in range(SERVERS)]
        if not task.part:
            for number in range(SHARED):
                await stores[0].create(OWNER, session_id=f"shared-{number}")
        reading = [asyncio.create_task(_follow(each, stores, at, ended)) for at, each in enumerate(cursors)]
        killing = asyncio.create_task(_kill(task, ended))
        done = await asyncio.gather(*(_write(task, number, stores) for number in range(task.writers)))
        ended.set()
        await asyncio.gather(*reading)
        there = {each.id: each.revision async for each in stores[0].catalog.every(OWNER, EVERYTHING)}
        return sum(done), await killing, there


def phase(task: list[Any], cursors: list[list[Any]]) -> dict[str, Any]:
    """Writers and readers in one database, in the process of the program that is tried. All values are plain JSON."""
    readers = [Cursor(position, seen) for position, seen in cursors]
    done, killed, there = asyncio.run(_phase(Task(*task), readers))
    return {
        "done": done,
        "killed": killed,
        "sessions": len(there),
        "missed": sum(
            each.seen.get(name) != revision for each in readers for name, revision in there.items()
        ),
        "twice": sum(each.twice for each in readers),
        "cursors": [[each.position, each.seen] for each in readers],
    }


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """One database, then what `pg_dump` makes of it."""
    writers, calls = setting.of(short=16, full=64), setting.of(short=8, full=150)
    kills = setting.of(short=4, full=200)
    cursors: list[list[Any]] = [[BEGINNING, {}] for _ in range(READERS)]
    found = []
    with PostgresServer() as server:
        first, second = (server.create_database(name) for name in ("before", "after"))
        for part, address in enumerate((first, second)):
            if part:
                _move(first, second)
            task = Task(address + CARELESS, setting.seed, part, writers, calls, kills)
            found.append(apart(phase, environment, task=list(task), cursors=cursors))
            cursors = found[-1]["cursors"]
    missed, twice, done, killed = (
        sum(each[name] for each in found) for name in ("missed", "twice", "done", "killed")
    )
    return Outcome(
        met=not missed and not twice and done > 0,
        figure=(
            f"{writers} writers, {done:,} calls acknowledged in {found[-1]['sessions']:,} sessions, {killed:,} connections killed,"
            f" one move by pg_dump, {READERS} readers at {SERVERS} servers: {missed:,} missed, {twice:,} twice or out of order"
        ),
        counts={"faults": killed + 1, "acknowledged": done, "lost": missed},
    )


def _move(old: str, new: str) -> None:
    dumped = subprocess.run([binaries() / "pg_dump", "-d", old], capture_output=True, check=True)
    restore: list[str | Path] = [binaries() / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", new]
    subprocess.run(restore, input=dumped.stdout, capture_output=True, check=True)
