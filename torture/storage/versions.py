"""Stores as earlier versions of the schema held them, with all that is in a store of today, and what is in them.

A store of an earlier version is made by that version's own steps; its rows are those of a store that the program of
today has written, without the columns that there were not yet.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg
from psycopg import sql

import hitherto
from hitherto.model import LOCAL, Draft, Fact, Text
from hitherto.stores.postgres import migrate as postgres_steps
from hitherto.stores.postgres.transactions import opened
from hitherto.stores.sqlite import migrate as sqlite_steps
from hitherto.stores.sqlite.connection import fetch, open_file
from tests.support.postgres_server import PostgresServer

Columns = Mapping[str, Sequence[str]]
"""By table."""
Content = dict[str, tuple[int, str]]
"""By table, the number of rows and a hash of them all."""
OWN = ("schema_migration", "store_meta")
"""What a store says of itself: when it was made, and a key that is another in every store."""
DERIVE_FACETS = "DELETE FROM facet; INSERT INTO facet SELECT * FROM facet_as_it_should_be"


class Kind(Protocol):
    """A kind of store. Places are named; `url` is the address of one."""

    name: str
    newest: int
    derived: Collection[str]
    """Tables that a step of the schema makes anew from others: their rows need not be those of before it."""

    def url(self, place: str) -> str: ...

    def make(self, place: str, version: int, like: str) -> None:
        """A store of this version with the rows of another; of version 0, nothing."""

    def copy(self, place: str, fresh: str) -> None: ...

    def remove(self, place: str) -> None: ...

    def columns(self, place: str) -> Columns: ...

    def content(self, place: str, columns: Columns) -> Content: ...


async def fill(url: str, sessions_count: int, messages: int) -> None:
    """Write something of everything that earlier versions can hold."""
    async with hitherto.open(url) as sessions:
        for number in range(sessions_count):
            made = await sessions.create(
                LOCAL, title=f"Session {number}", tags=[f"t{number % 3}"], cwd="/srv/engine"
            )
            said = [Draft(role="user", parts=(Text(text=f"{number} {n} ä\0"),)) for n in range(messages)]
            done = await sessions.append(LOCAL, made.id, said)
            await sessions.transfer.keep_raw(LOCAL, made.id, "raw.jsonl", b"\0\xff" * 50)
            await sessions.memory.add(
                LOCAL, [Fact(id=f"f{number}", at=number, text=f"fact {number}", session=made.id)]
            )
            if number % 3 == 0:
                summary = Draft(role="system", parts=(Text(text="summary"),))
                await sessions.compact(LOCAL, made.id, summary, keep=1)
            if number % 4 == 0:
                await sessions.fork(LOCAL, made.id, at=done.entries[-1])
            if number % 5 == 0:
                await sessions.delete(LOCAL, (await sessions.create(LOCAL)).id)


NEW_NAMES = {(table, old): new for (table, new), old in sqlite_steps.RENAMED.items()}


def called(table: str, columns: Sequence[str], there: Sequence[str]) -> list[str]:
    """The names under which columns of any version are found in a table."""
    return [name if name in there else NEW_NAMES[table, name] for name in columns]


def _digest(rows: Iterable[Sequence[Any]]) -> tuple[int, str]:
    known = sorted(repr(tuple(row)) for row in rows)
    return len(known), hashlib.sha256("\n".join(known).encode()).hexdigest()


class Sqlite:
    """Files in a folder."""

    name = "SQLite"
    newest = sqlite_steps.shipped()[-1].version
    derived: Collection[str] = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _file(self, place: str) -> Path:
        return self._folder / f"{place}.db"

    def url(self, place: str) -> str:
        return f"sqlite:///{self._file(place)}"

    def make(self, place: str, version: int, like: str) -> None:
        if not version:
            return
        db = open_file(self._file(place))
        sqlite_steps.migrate(db, sqlite_steps.shipped()[:version])
        db.execute("ATTACH ? AS new", (str(self._file(like)),))
        for table, columns in self._columns(db).items():
            there = [row[1] for row in fetch(db, f"PRAGMA new.table_info({table})")]
            taken = ", ".join(called(table, columns, there))
            db.execute(
                f"DELETE FROM {table}; INSERT INTO {table} ({', '.join(columns)}) SELECT {taken} FROM new.{table}"
            )
        db.close()

    def copy(self, place: str, fresh: str) -> None:
        if self._file(place).exists():
            self._file(fresh).write_bytes(self._file(place).read_bytes())

    def remove(self, place: str) -> None:
        for file in self._folder.glob(f"{place}.db*"):
            file.unlink()

    def columns(self, place: str) -> Columns:
        if not self._file(place).exists():
            return {}
        db = open_file(self._file(place))
        try:
            return self._columns(db)
        finally:
            db.close()

    def content(self, place: str, columns: Columns) -> Content:
        db = open_file(self._file(place))
        try:
            there = self._columns(db)
            return {
                table: _digest(
                    fetch(db, f"SELECT {', '.join(called(table, names, there[table]))} FROM {table}")
                )
                for table, names in columns.items()
            }
        finally:
            db.close()

    def _columns(self, db: apsw.Connection) -> Columns:
        tables = fetch(db, "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
        return {
            table: [row[1] for row in fetch(db, f"PRAGMA table_info({table})")]
            for (table,) in tables
            if table not in OWN and not table.startswith("sqlite_")
        }


class Postgres:
    """Databases of a server that keeps what was committed when it is killed."""

    name = "PostgreSQL"
    newest = postgres_steps.migrations()[-1].version
    derived: Collection[str] = ("facet",)

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    def url(self, place: str) -> str:
        return self.server.uri(place)

    def make(self, place: str, version: int, like: str) -> None:
        self.server.create_database(place)
        if version:
            asyncio.run(self._migrate(place, version))
            with psycopg.connect(self.url(place)) as old, psycopg.connect(self.url(like)) as new:
                old.execute("SET session_replication_role = replica")
                there = self._columns(new)
                tables = self._columns(old)
                for table, columns in tables.items():
                    if table not in self.derived:
                        self._copy_table(old, new, table, columns, called(table, columns, there[table]))
                if "facet" in tables:
                    old.execute(DERIVE_FACETS)
                for name, value in new.execute(SEQUENCES).fetchall():
                    old.execute("SELECT setval(%s::regclass, %s)", (name, value))

    async def _migrate(self, place: str, version: int) -> None:
        async with await opened(self.url(place)) as connection:
            await postgres_steps.migrate(connection, postgres_steps.migrations()[:version])

    def _copy_table(
        self,
        old: psycopg.Connection[Any],
        new: psycopg.Connection[Any],
        table: str,
        columns: Sequence[str],
        taken: Sequence[str],
    ) -> None:
        old.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        reading = sql.SQL("COPY {} TO STDOUT").format(_named(table, taken))
        writing = sql.SQL("COPY {} FROM STDIN").format(_named(table, columns))
        with new.cursor().copy(reading) as rows, old.cursor().copy(writing) as target:
            for data in rows:
                target.write(data)

    def copy(self, place: str, fresh: str) -> None:
        self.server.create_database(fresh, template=place)

    def remove(self, place: str) -> None:
        self.server.drop_database(place)

    def columns(self, place: str) -> Columns:
        with psycopg.connect(self.url(place)) as connection:
            return self._columns(connection)

    def content(self, place: str, columns: Columns) -> Content:
        with psycopg.connect(self.url(place)) as connection:
            there = self._columns(connection)
            return {
                table: _digest(
                    connection.execute(
                        sql.SQL("SELECT {} FROM {}").format(
                            sql.SQL(", ").join(map(sql.Identifier, called(table, names, there[table]))),
                            sql.Identifier(table),
                        )
                    )
                )
                for table, names in columns.items()
            }

    def _columns(self, connection: psycopg.Connection[Any]) -> Columns:
        found: dict[str, list[str]] = {}
        for table, column in connection.execute(COLUMNS):
            if table not in OWN:
                found.setdefault(table, []).append(column)
        return found


def _named(table: str, columns: Sequence[str]) -> sql.Composed:
    return sql.SQL("{} ({})").format(sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns)))


SEQUENCES = "SELECT sequencename::text, last_value FROM pg_sequences WHERE last_value IS NOT NULL"
COLUMNS = """
SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c
JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
ORDER BY c.table_name, c.ordinal_position
"""
