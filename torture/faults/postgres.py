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
from torture.faults.sqlite import OPEN, Told, outcome_of, told_by
from torture.trial.program import Environment, apart
from torture.trial.row import Outcome, Setting

SHORT = ("append", "list")
MODEL, TRIED = "faults_model", "faults_tried"
DROP = "drop database if exists {} with (force)"
AFTER = "cut off after a statement"
WAYS = ("cut off before a statement", AFTER)


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """All operations; some in the short form, and of a broken program."""
    names = list(SHORT) if setting.short or environment else [each.name for each in OPERATIONS] + [OPEN]
    # Nothing is killed here: what PostgreSQL has done, it keeps.
    with PostgresServer() as server:
        told = apart(cut_in_turn, environment, folder=str(server.folder), operations=names)
    return outcome_of(setting, [told], len(names))


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
        self.judge = Judge(certain=False)

    async def run(self, names: Sequence[str], ways: Sequence[str]) -> None:
        """Cut each operation off at each of its statements, before or after it."""
        await asyncio.to_thread(self._execute, "create database {}", MODEL)
        await prepare(self._url(MODEL))
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
        await self._drop()
        await asyncio.to_thread(self._execute, DROP, MODEL)

    async def _right(self, operation: Operation) -> Right:
        await self._copy()
        return await right_of(self._url(TRIED), operation)

    async def _operating(self, operation: Operation, right: Right, after: bool, at: int) -> bool:
        await self._copy()
        struck = await self.judge.operated(
            self._url(TRIED),
            operation,
            right,
            self._relay.cutting(at, after=after),
            lambda _: self._relay.has_struck,
        )
        await self.judge.examine(self._url(TRIED), right.after)
        return struck

    async def _opening(self, after: bool, at: int) -> bool:
        await self._copy()
        store = opened(self._url(TRIED), Ids(1))
        with self._relay.cutting(at, after=after):
            answer = await tried(store.__aenter__())
        failed = is_failure(answer)
        if failed:
            self.judge.expect_typed(answer)
        else:
            await store.__aexit__(None, None, None)
        self.judge.count(self._relay.has_struck, refused=failed)
        await self.judge.examine(self._url(TRIED), None)
        return self._relay.has_struck

    async def _copy(self) -> None:
        await self._drop()
        await asyncio.to_thread(self._execute, "create database {} template {}", TRIED, MODEL)

    async def _drop(self) -> None:
        await self._relay.forget()
        await asyncio.to_thread(self._execute, DROP, TRIED)

    def _url(self, name: str) -> str:
        place = f"{SUPERUSER}@{HOST}:{self._relay.port}/{name}"
        return f"postgresql://{place}?sslmode=disable&gssencmode=disable{CARELESS}"

    def _execute(self, statement: Any, *names: str) -> None:
        """Not through the relay, which goes on meanwhile: PostgreSQL waits until nobody uses the database."""
        where = f"postgresql://{SUPERUSER}@/postgres?host={self._folder}&port={PORT}"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
