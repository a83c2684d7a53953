"""Every statement of an operation is the one at which PostgreSQL is cut off, before it and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.support.homes import CARELESS
from tests.support.postgres_server import PORT, SUPERUSER, PostgresServer
from torture.faults.cutting_relay import HOST, CuttingRelay, relayed
from torture.faults.judging import Judge, Right, is_failure, right_of, tried
from torture.faults.operations import OPERATIONS, Ids, Operation, opened, prepare
from torture.faults.sqlite import OPEN, Told, outcome_of, tell, told_by
from torture.trial.program import Environment, apart
from torture.trial.row import Outcome, Setting

SHORT = ("append", "list")
TRIED, KEPT = "faults_tried", "kept"
DROP = "drop database if exists {} with (force)"
TABLES = "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
END_OTHERS = """
select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
AFTER = "cut off after a statement"
WAYS = ("cut off before a statement", AFTER)


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """All operations; some in the short form, and of a broken program."""
    names = list(SHORT) if setting.short or environment else [each.name for each in OPERATIONS] + [OPEN]
    # Nothing is killed here: what PostgreSQL has done, it keeps.
    told = list[Told]()
    with PostgresServer() as server:
        for name in names:
            told.append(apart(cut_in_turn, environment, folder=str(server.folder), operations=[name]))
            tell(setting, name, told[-1])
    return outcome_of(setting, told, len(names))


def cut_in_turn(folder: str, operations: Sequence[str], ways: Sequence[str] = WAYS) -> Told:
    """In a process of the program under trial: the cuts, and what was wrong after each."""
    return asyncio.run(_cut_in_turn(Path(folder), operations, ways))


async def _cut_in_turn(folder: Path, operations: Sequence[str], ways: Sequence[str]) -> Told:
    async with relayed(folder / f".s.PGSQL.{PORT}") as relay:
        trial = _Trial(folder, relay)
        await trial.run(operations, ways)
    return told_by(trial.judge)


class _Trial:
    def __init__(self, folder: Path, relay: CuttingRelay) -> None:
        self._folder, self._relay = folder, relay
        self._tables: list[str] = []
        self.judge = Judge(certain=False)

    async def run(self, names: Sequence[str], ways: Sequence[str]) -> None:
        """Cut each operation off at each of its statements, before or after it."""
        await asyncio.to_thread(self._execute, "create database {}", TRIED)
        await prepare(self._url)
        await asyncio.to_thread(self._keep)
        for name in names:
            operation = next((each for each in OPERATIONS if each.name == name), None)
            right = None if operation is None else await self._right(operation)
            for way in ways:
                once = (
                    partial(self._opening, way == AFTER)
                    if operation is None or right is None
                    else partial(self._operating, operation, right, way == AFTER)
                )
                await self.judge.in_turn(f"{name}, {way}", once)
        await self._relay.forget()
        await asyncio.to_thread(self._execute, DROP, TRIED)

    async def _right(self, operation: Operation) -> Right:
        await self._put_back()
        return await right_of(self._url, operation)

    async def _operating(self, operation: Operation, right: Right, after: bool, at: int) -> bool:
        await self._put_back()
        struck = await self.judge.operated(
            self._url,
            operation,
            right,
            self._relay.cutting(at, after=after),
            lambda _: self._relay.has_struck,
        )
        await self.judge.examine(self._url, right.after)
        return struck

    async def _opening(self, after: bool, at: int) -> bool:
        await self._put_back()
        store = opened(self._url, Ids(1))
        with self._relay.cutting(at, after=after):
            answer = await tried(store.__aenter__())
        failed = is_failure(answer)
        if failed:
            self.judge.expect_typed(answer)
        else:
            await store.__aexit__(None, None, None)
        self.judge.count(self._relay.has_struck, refused=failed)
        await self.judge.examine(self._url, None)
        return self._relay.has_struck

    def _keep(self) -> None:
        """Keep a copy of every row."""
        with self._connected(TRIED) as connection:
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(KEPT)))
            self._tables = [name for (name,) in connection.execute(TABLES)]
            for name in self._tables:
                connection.execute(
                    sql.SQL("create table {} as table {}").format(
                        sql.Identifier(KEPT, name), sql.Identifier("public", name)
                    )
                )

    async def _put_back(self) -> None:
        """Make the rows what they were: much quicker than a new database for each fault."""
        await self._relay.forget()
        await asyncio.to_thread(self._replace_rows)

    def _replace_rows(self) -> None:
        with self._connected(TRIED) as connection:
            connection.execute(END_OTHERS)
            # As a replica does: in any order, whatever refers to what, and without triggers.
            connection.execute("set session_replication_role = replica")
            replaced = sql.SQL("; ").join(
                sql.SQL("delete from {}; insert into {} overriding system value table {}").format(
                    sql.Identifier("public", name), sql.Identifier("public", name), sql.Identifier(KEPT, name)
                )
                for name in self._tables
            )
            with connection.transaction():
                connection.execute(replaced)

    @property
    def _url(self) -> str:
        place = f"{SUPERUSER}@{HOST}:{self._relay.port}/{TRIED}"
        return f"postgresql://{place}?sslmode=disable&gssencmode=disable{CARELESS}"

    def _execute(self, statement: Any, *names: str) -> None:
        with self._connected("postgres") as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def _connected(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        """Not through the relay, which goes on meanwhile: PostgreSQL waits until nobody uses the database."""
        where = f"postgresql://{SUPERUSER}@/{database}?host={self._folder}&port={PORT}"
        return psycopg.connect(where, autocommit=True)
