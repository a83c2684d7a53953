"""A store that grows: how it is filled, and what each kind of use costs it in CPU time and in pages that are looked at.

125 sessions a day, ten messages in each: so a week of a large store is as full as a week of a small one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import apsw
import psutil
import psycopg

import hitherto
from bench.workloads.messages import message
from hitherto.model import LOCAL, Draft, Entry, Filter, Session, Text
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.append import append_entries
from hitherto.stores import connector
from hitherto.values.days import DAY_MS, day_of, day_text

Json = dict[str, Any]
MESSAGES = 10
PER_DAY = 125
FIRST_AT = 11_600 * DAY_MS
CHARACTERS = 150
BATCH = 1_000
LONG, OF, LONG_MESSAGES = 7, 1_000, 500
"""One of so many sessions has more messages than others."""
RARE_SESSIONS = 12
"""The oldest ones: the word is looked for from the newest on."""
ROUNDS = 10_000
TICK = 0.01
"""The CPU of other processes is told in steps of this."""
CLIENT = "[local]"
"""So PostgreSQL calls its processes that have a client."""
OTHERS = """
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
PAGES = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
COMMON, RARE, NOWHERE = "aubergine", "salsify", "qqqqqq"


def name_of(number: int) -> str:
    """The id of a session."""
    return f"{number:08d}-grown"


def at_of(number: int) -> int:
    """When it began."""
    return FIRST_AT + number * DAY_MS // PER_DAY


def _session(number: int) -> Session:
    return Session(
        id=name_of(number),
        revision=1,
        created_at=at_of(number),
        updated_at=at_of(number),
        project=f"host/{number % 97}",
        agent_id=f"agent-{number % 7}",
        title=f"Session {number} about {('bread', 'soup', 'saffron')[number % 3]}",
        title_by="user",
    )


def _entries(number: int) -> list[Entry]:
    count = LONG_MESSAGES if number % OF == LONG else MESSAGES
    return [_entry(number, place) for place in range(count)]


def _entry(number: int, place: int) -> Entry:
    words = message(number * MESSAGES + place, CHARACTERS).text
    words += f" {COMMON}" * (place % 2) + f" {RARE}" * (number < RARE_SESSIONS and place == 0)
    role = ("user", "assistant")[place % 2]
    return Entry(id=f"e{place}", at=at_of(number) + place, role=role, parts=(Text(text=words),))  # type: ignore[arg-type]


async def _fill(url: str, first: int, until: int) -> None:
    """Add these sessions, many in a transaction."""
    async with connector(url)(url, None) as store:
        for start in range(first, until, BATCH):

            async def work(tx: Writer, some: range = range(start, min(start + BATCH, until))) -> None:
                for number in some:
                    record = await add_session(tx, LOCAL.owner, _session(number))
                    await append_entries(tx, record, _entries(number), at_of(number + 1), store.secret)

            await store.write(work)
    async with hitherto.open(url) as sessions:
        await sessions.search(LOCAL, NOWHERE)


def fill(url: str, first: int, until: int) -> None:
    """See `_fill`; in a process of its own."""
    asyncio.run(_fill(url, first, until))


# What is done to it

Use = Callable[[Sessions, random.Random, int], Awaitable[object]]


async def _append(sessions: Sessions, dice: random.Random, size: int) -> None:
    number = dice.randrange(size)
    text = message(number, CHARACTERS).text
    await sessions.append(LOCAL, name_of(number), Draft(role="user", parts=(Text(text=text),)))


async def _list(sessions: Sessions, _dice: random.Random, _size: int) -> None:
    assert len((await sessions.find(LOCAL, limit=50)).sessions) == 50


async def _list_middle(sessions: Sessions, _dice: random.Random, size: int) -> None:
    given = Filter(updated_before=at_of(size // 2))
    assert len((await sessions.find(LOCAL, given, limit=50)).sessions) == 50


async def _search(sessions: Sessions, _dice: random.Random, _size: int, word: str, hits: int) -> None:
    assert len((await sessions.search(LOCAL, word, limit=20)).hits) == hits, word


async def _open(sessions: Sessions, _dice: random.Random, _size: int) -> None:
    await sessions.get(LOCAL, name_of(LONG))
    page = await sessions.history(LOCAL, name_of(LONG), view="conversation", last=True, limit=100)
    assert len(page.raw) == 100


async def _overview(sessions: Sessions, _dice: random.Random, size: int) -> None:
    until = day_of(at_of(size)) - 1
    since = max(day_of(FIRST_AT), until - 6)
    found = await sessions.statistics.overview(LOCAL, since_day=day_text(since), until_day=day_text(until))
    assert found.days


class Kind(NamedTuple):
    """Something that is done, and how often it is done to be measured."""

    use: Use
    calls: int


USES: dict[str, Kind] = {
    "list, newest 50": Kind(_list, 100),
    "list, 50 from the middle": Kind(_list_middle, 100),
    "search, common word": Kind(partial(_search, word=COMMON, hits=20), 50),
    "search, rare word": Kind(partial(_search, word=RARE, hits=RARE_SESSIONS), 50),
    "open a transcript": Kind(_open, 100),
    "overview of a week": Kind(_overview, 50),
    "append": Kind(_append, 200),
}
"""Last what changes the store."""


class SessionUsage(NamedTuple):
    """CPU seconds, and pages that were looked at, in a cache or not."""

    cpu: float
    pages: float

    def minus(self, other: SessionUsage, calls: int) -> SessionUsage:
        """What one call costs more than the other."""
        return SessionUsage(max(self.cpu - other.cpu, TICK) / calls, (self.pages - other.pages) / calls)


def _is_client(process: psutil.Process) -> bool:
    """Whether a process of PostgreSQL still serves somebody."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE or CLIENT in " ".join(process.cmdline())
    return False


def _server_cpu(pid: int | None) -> float:
    """What the processes of PostgreSQL have used that served somebody, once they have ended."""
    if pid is None:
        return 0.0
    server = psutil.Process(pid)
    for _ in range(ROUNDS):
        if not any(map(_is_client, server.children())):
            break
    used = server.cpu_times()
    return float(used.children_user + used.children_system)


def _server_pages(url: str) -> int:
    """What PostgreSQL has looked at, told when all its clients have left."""
    if url.startswith("sqlite"):
        return 0
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(ROUNDS):
            if _told(connection, OTHERS) == 0:
                return _told(connection, PAGES)
    raise TimeoutError("a client of PostgreSQL does not leave")


def _told(connection: psycopg.Connection, question: str) -> int:
    row = connection.execute(question.encode()).fetchone()
    return int(row[0]) if row else 0


def _own_pages() -> int:
    """What the SQLite connections of this process have looked at."""
    return sum(map(_looked_at, apsw.connections()))


def _looked_at(connection: apsw.Connection) -> int:
    """Told when no thread is busy with the connection."""
    kinds = (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
    for _ in range(ROUNDS):
        with contextlib.suppress(apsw.ThreadingViolationError):
            return sum(connection.status(kind)[0] for kind in kinds)
    raise TimeoutError("a connection of SQLite stays busy")


async def _spent(url: str, server: int | None, kind: Kind, seed: int, size: int) -> SessionUsage:
    """What it takes to open the store and do it so often."""
    dice, pages = random.Random(seed), _server_pages(url)
    cpu = _server_cpu(server) + time.process_time()
    async with hitherto.open(url) as sessions:
        await kind.use(sessions, random.Random(seed + 1), size)
        for _ in range(kind.calls):
            await kind.use(sessions, dice, size)
        if kind.use is _append:
            await sessions.search(LOCAL, NOWHERE)
        own = _own_pages()
    spent = time.process_time()
    pages = _server_pages(url) - pages + own
    return SessionUsage(spent + _server_cpu(server) - cpu, pages)


async def _measured(url: str, size: int, seed: int, server: int | None, few: bool) -> dict[str, SessionUsage]:
    found = dict[str, SessionUsage]()
    for name, (use, calls) in USES.items():
        many = Kind(use, calls // 10 if few and use is not _append else calls)
        once = await _spent(url, server, Kind(use, 0), seed, size)
        found[name] = (await _spent(url, server, many, seed, size)).minus(once, many.calls)
    return found


def measured(
    url: str, size: int, seed: int, server: int | None = None, few: bool = False
) -> dict[str, SessionUsage]:
    """What each use costs a store of this size, once it is open; `server` is PostgreSQL's process.

    A few calls do for the pages, which are the same each time, but for an append.
    """
    return asyncio.run(_measured(url, size, seed, server, few))


def grown(url: str, sizes: list[int], seed: int, few: bool) -> list[dict[str, SessionUsage]]:
    """What each use costs a store that grows from one size to the next."""
    found = []
    for first, size in zip([0, *sizes], sizes, strict=False):
        fill(url, first, size)
        found.append(measured(url, size, seed, few=few))
    return found


def checked(url: str) -> list[str]:
    """What is wrong with a store."""

    async def problems() -> list[str]:
        async with connector(url)(url, None) as store:
            return list((await store.check(repair=False)).problems)

    return asyncio.run(problems())
