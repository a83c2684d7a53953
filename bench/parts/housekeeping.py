"""Resets by the clock in a store with very many chats: what a sweep costs that finds a few."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration
from bench.harness.sizes import Sizes

DUE, HOUR, LIMIT = 100, 3_600_000, 0.05
NOW = 1_750_000_000_000
FIND, START = f"finding {DUE} that are due", f"finding them and starting them anew, {DUE} transactions"
# Chats of today: rows of sessions only, since a sweep never looks further.
MANY = """
INSERT INTO session ({columns})
SELECT {values} FROM session CROSS JOIN ({series}) AS n WHERE id = 'first'
"""
MOVED = {
    "num": "num + n.n",
    "id": "'chat' || n.n",
    "key": "'agent:main:irc:dm:' || n.n",
    "change": "change + n.n",
}
EMPTY = "NULL"
SQLITE_SERIES = (
    "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {count}) SELECT n FROM s"
)
POSTGRES_SERIES = "SELECT n FROM generate_series(1, {count}) AS n"
PROMISE = "a sweep of {many:,} chats of which 100 are due, {engine}: finding them under 50 ms of CPU"


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge, on both stores."""
    meter.begin("housekeeping", 2)
    found = {}
    for engine, measured in (("SQLite", _on_sqlite), ("PostgreSQL", _on_postgres)):
        found[engine] = measured(sizes, folder)
        meter.step()
    bars = [_bar(engine, costs[FIND], sizes.chats) for engine, costs in found.items()]
    rows = [[name, *(duration(costs[name]) for costs in found.values())] for name in (FIND, START)]
    return Part(
        title="Housekeeping",
        method=(
            f"{sizes.chats:,} chats in which somebody has written today, and {DUE} whose user has been silent for longer than the"
            f" policy allows. CPU of the program and of PostgreSQL's process together; the median of {sizes.chat_rounds} sweeps."
        ),
        bars=bars,
        tables=[Table("One sweep.", ["", *found], rows)],
    )


def _bar(engine: str, seconds: float, many: int) -> Bar:
    return at_most(PROMISE.format(many=many, engine=engine), seconds, LIMIT, duration(seconds))


def _on_sqlite(sizes: Sizes, folder: Path) -> dict[str, float]:
    import apsw

    file = folder / "chats.db"
    address = f"sqlite:///{file}"

    def fill() -> None:
        database = apsw.Connection(str(file))
        columns = [name for (name,) in database.execute("SELECT name FROM pragma_table_info('session')")]
        database.execute(_multiplied(columns, SQLITE_SERIES.format(count=sizes.chats)))
        database.execute("ANALYZE")
        database.close()

    return asyncio.run(_measured(address, fill, time.process_time, sizes.chat_rounds))


def _on_postgres(sizes: Sizes, _folder: Path) -> dict[str, float]:
    import psycopg

    from tests.support.postgres_server import PostgresServer

    with PostgresServer(fast=False) as server:
        address = server.create_database("chats")
        with psycopg.connect(address, autocommit=True) as connection:
            own = connection.info.backend_pid

            def fill() -> None:
                found = connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = 'session'"
                )
                columns = [name for (name,) in found]
                connection.execute(_multiplied(columns, POSTGRES_SERIES.format(count=sizes.chats)).encode())
                connection.execute("SELECT setval('session_num', (SELECT max(num) FROM session))")
                connection.execute("VACUUM ANALYZE")

            def cpu() -> float:
                found = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                )
                pids = [pid for (pid,) in found if pid != own]
                return time.process_time() + sum(_on_cpu(pid) for pid in pids)

            return asyncio.run(_measured(address, fill, cpu, sizes.chat_rounds))


def _multiplied(columns: list[str], series: str) -> str:
    # A checksum says where its row belongs: a copy has none.
    values = (MOVED.get(name, EMPTY if name.endswith("crc") else name) for name in columns)
    return MANY.format(columns=", ".join(columns), values=", ".join(values), series=series)


def _on_cpu(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


async def _measured(
    address: str, fill: Callable[[], None], cpu: Callable[[], float], rounds: int
) -> dict[str, float]:
    from hitherto.model import LOCAL, Draft, Text
    from hitherto.service import Sessions, parse_resets
    from hitherto.stores import connector

    times = {FIND: list[float](), START: list[float]()}
    policy = parse_resets("idle@4h")
    async with connector(address)(address) as store:
        sessions = Sessions(store, now=lambda: NOW)

        async def say(session_id: str, at: int) -> None:
            await sessions.append(LOCAL, session_id, Draft(role="user", at=at, parts=(Text(text="Hello"),)))

        await sessions.create(LOCAL, session_id="first", key="agent:main:irc:dm:0", channel="irc")
        await say("first", NOW)
        fill()
        old = Sessions(store, now=lambda: NOW - 9 * HOUR)
        for number in range(DUE):
            await old.create(
                LOCAL, session_id=f"old{number}", key=f"agent:main:irc:dm:old{number}", channel="irc"
            )

        async def find() -> int:
            return len(await sessions.resets.due(LOCAL, policy))

        async def start() -> int:
            return sum([len(done) async for done in sessions.resets.sweep(policy)])

        for _ in range(rounds + 1):
            for number in range(DUE):
                await say(f"old{number}", NOW - 5 * HOUR)
            for name, work in ((FIND, find), (START, start)):
                times[name].append(await _spent(work, cpu))
    return {name: median(spent[1:]) for name, spent in times.items()}


async def _spent(work: Callable[[], Awaitable[int]], cpu: Callable[[], float]) -> float:
    before = cpu()
    found = await work()
    spent = cpu() - before
    if found != DUE:
        raise RuntimeError(f"{found} of {DUE} chats were found")
    return spent
