"""Older programs beside newer ones: who is too old stops writing at once, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

import hitherto
from hitherto.errors import SchemaTooNew
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Principal
from hitherto.ports import Writer
from hitherto.stores import connector
from hitherto.stores.postgres import migrate as postgres
from hitherto.stores.postgres.transactions import opened
from hitherto.stores.sqlite import migrate as sqlite
from hitherto.stores.sqlite.commit_queue import Numbers, Work, WriterThread
from hitherto.stores.sqlite.connection import fetch, open_file
from hitherto.stores.sqlite.recovery import recover
from hitherto.stores.sqlite.store import file_of
from tests.support.conversations import everything, listed, say, told
from tests.support.homes import CARELESS, TEMPLATE
from tests.support.postgres_server import PostgresServer
from tests.support.waits import arrives, until
from torture.storage.versions import Sqlite, fill

SHARED = ("sqlite", "postgres")
ANN = Principal(owner="ann")
RENAMED_BY = 9
ADDS = {
    "sqlite": "CREATE TABLE tomorrow (x INTEGER)",
    "postgresql": "CREATE TABLE tomorrow (x integer)",
}
"""A step of a newer program that only adds."""
SHUTS_OUT = {
    "sqlite": "UPDATE store_meta SET value = CAST('{}' AS BLOB) WHERE name = 'oldest_writer'",
    "postgresql": "SELECT shut_out_writers({})",
}
"""A step of a newer program beside which no older one may write."""


async def migrate_further(url: str, statements: dict[str, str]) -> int:
    """Do what a newer program does when it opens the store; returns the new schema."""
    kind = url.partition(":")[0]
    if kind == "sqlite":
        newer = sqlite.shipped()[-1].version + 1
        db = open_file(file_of(url))
        try:
            step = sqlite.Migration(newer, "tomorrow", statements[kind].format(newer))
            sqlite.migrate(db, [*sqlite.shipped(), step])
        finally:
            db.close()
        return newer
    newer = postgres.migrations()[-1].version + 1
    async with await opened(url) as connection:
        step_ = postgres.Migration(newer, "tomorrow", statements[kind].format(newer))
        await postgres.migrate(connection, [*postgres.migrations(), step_])
    return newer


@pytest.fixture(params=SHARED)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a store that no other test uses, since its schema changes."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'hitherto.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    yield server.create_database("versions", template=TEMPLATE) + CARELESS
    server.drop_database("versions")


async def test_a_program_that_is_too_old_stops_writing_at_once_and_says_what_to_do(place: str) -> None:
    async with hitherto.open(place) as sessions:
        await sessions.create(ANN, session_id="one")
        await sessions.append(ANN, "one", say("before"))
        newer = await migrate_further(place, SHUTS_OUT)
        for attempt in ("after", "and again"):
            with pytest.raises(SchemaTooNew, match=f"schema {newer}.*install a newer Hitherto"):
                await sessions.append(ANN, "one", say(attempt))
        with pytest.raises(SchemaTooNew):
            await sessions.create(ANN, session_id="two")
        with pytest.raises(SchemaTooNew):
            await sessions.admin.forget_notes()
        assert await told(sessions, ANN, "one") == ["before"]
        assert await listed(sessions, ANN) == ["one"]
    with pytest.raises(SchemaTooNew, match=f"schema {newer}"):
        async with hitherto.open(place):
            pass


async def test_beside_a_newer_program_whose_steps_only_add_an_older_one_writes_and_starts(place: str) -> None:
    async with hitherto.open(place) as sessions:
        await sessions.create(ANN, session_id="one")
        await sessions.append(ANN, "one", say("before"))
        await migrate_further(place, ADDS)
        await sessions.append(ANN, "one", say("after"))
    async with hitherto.open(place) as again:
        await again.append(ANN, "one", say("restarted"))
        assert await told(again, ANN, "one") == ["before", "after", "restarted"]
        assert (await again.admin.check(repair=True)).problems == ()


async def test_a_repair_by_a_program_that_is_too_old_changes_nothing(place: str) -> None:
    async with hitherto.open(place) as sessions:
        await sessions.create(ANN, session_id="one", tags=["x"])
        spoil(place)
        await migrate_further(place, SHUTS_OUT)
        with pytest.raises(SchemaTooNew):
            await sessions.admin.check(repair=True)
    assert tags_in(place) == 0


def spoil(url: str) -> None:
    """Remove something that is derived."""
    if url.startswith("sqlite"):
        db = open_file(file_of(url))
        db.execute("DELETE FROM tag")
        db.close()
    else:
        with psycopg.connect(url) as connection:
            connection.execute("DELETE FROM tag")


def tags_in(url: str) -> int:
    if url.startswith("sqlite"):
        db = open_file(file_of(url))
        try:
            return int(fetch(db, "SELECT count(*) FROM tag")[0][0])
        finally:
            db.close()
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM tag").fetchone()
        assert row is not None
        return int(row[0])


OF_0_1 = {
    "sqlite": (
        "UPDATE session SET change = 1, change_kind = 'append', revision = 2 WHERE num = 1",
        "UPDATE session SET order_at = 1, hot = 0, change = 1, change_kind = 'meta' WHERE num = 1",
        "INSERT INTO session (owner, order_at, hot, change, change_kind) VALUES (1, 1, 0, 1, 'create')",
        "UPDATE session SET change = 1, change_kind = 'live' WHERE num = 1",
        "INSERT OR IGNORE INTO garbage (log) SELECT log FROM span WHERE session = 1 UNION SELECT 1",
        "SELECT log FROM garbage LIMIT 1",
    ),
    "postgresql": (
        "INSERT INTO session (owner, num, change_kind, change) SELECT 'ann', 1, 'create', 1",
        "UPDATE session SET revision = 2, change_kind = 'append', change = 1 WHERE owner = 'ann' AND num = 1",
        "UPDATE session SET change_kind = 'live', change = 1 WHERE owner = 'ann' AND num = 1",
        "INSERT INTO garbage AS g (owner, log) VALUES ('ann', 1) ON CONFLICT (owner, log) DO UPDATE SET log = g.log",
        "SELECT owner, log FROM garbage LIMIT 1 FOR UPDATE SKIP LOCKED",
    ),
}
"""What programs write and collect by that never look who may write, shortened to the names that matter."""


async def test_what_a_program_of_0_1_writes_and_collects_by_fails(place: str) -> None:
    async with hitherto.open(place):
        pass
    if place.startswith("sqlite"):
        db = open_file(file_of(place))
        for statement in OF_0_1["sqlite"]:
            with pytest.raises(apsw.SQLError, match=r"no (such )?column"):
                db.execute(f"EXPLAIN {statement}")
        db.close()
        return
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in OF_0_1["postgresql"]:
            with pytest.raises(psycopg.errors.UndefinedColumn):
                connection.execute(f"EXPLAIN {statement}".encode())


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
async def test_a_step_that_shuts_out_writers_waits_for_those_that_have_begun(place: str) -> None:
    async with hitherto.open(place) as sessions, connector(place)(place) as store:
        await sessions.create(ANN, session_id="one")
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def work(tx: Writer) -> None:
            assert await tx.session("ann", "one") is not None
            begun.set()
            await go_on.wait()

        writing = asyncio.create_task(store.write(work))
        await arrives(begun.wait(), "the writer to begin")
        step = asyncio.create_task(migrate_further(place, SHUTS_OUT))
        await until(lambda: waits_for_a_lock(place), "the step to wait for the writer")
        go_on.set()
        await arrives(writing, "the end of the writer")
        await arrives(step, "the step")
        with pytest.raises(SchemaTooNew):
            await sessions.append(ANN, "one", say("after"))


def waits_for_a_lock(url: str) -> bool:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool((row.fetchone() or (0,))[0])


async def test_who_writes_alone_to_a_file_is_checked_once(tmp_path: Path) -> None:
    checks: list[apsw.Connection] = []
    file = tmp_path / "some.db"
    writer = WriterThread(lambda may_wait: open_file(file, may_wait), checks.append)
    try:
        for number in range(5):
            await writer.submit(executing(f"CREATE TABLE t{number} (x)"))
        assert len(checks) == 1
        other = open_file(file)
        other.execute("CREATE TABLE other (x)")
        other.close()
        await writer.submit(executing("CREATE TABLE last (x)"))
        assert len(checks) == 2
    finally:
        writer.close()


def executing(statement: str) -> Work:
    async def work(db: apsw.Connection, _: Numbers) -> None:
        db.execute(statement)

    return work


async def test_a_file_of_an_earlier_schema_is_recovered_though_columns_had_other_names(
    tmp_path: Path,
) -> None:
    files = Sqlite(tmp_path)
    await fill(files.url("new"), 4, 3)
    files.make("old", RENAMED_BY - 1, "new")
    recovered = await asyncio.to_thread(recover, tmp_path / "old.db", tmp_path / "saved.db", now_ms)
    assert recovered.missing == []
    async with hitherto.open(files.url("new")) as sessions, hitherto.open(files.url("saved")) as saved:
        assert await everything(saved, LOCAL) == await everything(sessions, LOCAL)
        assert (await saved.admin.quarantined()) == []
