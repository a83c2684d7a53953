"""Places where a store can live for one test, one class for each kind of store. Tests themselves name none of them."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import apsw
import psycopg
from psycopg import sql

from hitherto.stores.memory import store as memory
from hitherto.stores.sqlite.connection import open_file
from hitherto.stores.sqlite.migrate import migrate, shipped
from tests.support.postgres_server import PostgresServer

TEMPLATE = "hitherto_template"
CARELESS = "&options=-c%20synchronous_commit%3Doff"
"""What an address must say, or the store refuses a server that gives up durability for speed."""
PARTITIONS = os.environ.get("HITHERTO_TEST_PARTITIONS", "")
"""Into how many parts the tables of tests are split; as a rule they are whole."""


class Home(Protocol):
    """`url` opens an empty store, as often as one likes; `rows` counts what is kept in it, by table."""

    url: str

    def rows(self) -> dict[str, int]: ...


class MemoryHome:
    """A store in this process, shared by its name."""

    _names = itertools.count(1)

    def __init__(self) -> None:
        self._name = f"test-{next(self._names)}"
        self.url = f"memory:{self._name}"

    def rows(self) -> dict[str, int]:
        owners = list(memory._named[self._name].tables.owners.values())
        spans = [list_ for own in owners for lists in own.spans.values() for list_ in lists.values()]
        return {
            "sessions": sum(len(own.sessions) for own in owners),
            "entries": sum(len(log.entries) for own in owners for log in own.logs.values()),
            "spans": sum(map(len, spans)),
            "checkpoints": sum(len(known) for own in owners for known in own.checkpoints.values()),
            "documents": sum(len(own.documents) for own in owners),
            "tombstones": sum(len(own.tombstones) for own in owners),
            "memos": sum(len(own.memos) for own in owners),
            "facts": sum(len(own.facts) for own in owners),
            "session_usage": sum(len(own.usage) for own in owners),
        }


class SqliteHome:
    """A file in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hitherto.db"
        if not self._file.exists():
            self._file.write_bytes(_empty_file())
            self._file.chmod(0o600)
        self.url = f"sqlite:///{self._file}"

    def rows(self) -> dict[str, int]:
        database = apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return {name: _single(database, f'select count(*) from "{name}"') for name in _tables(database)}
        finally:
            database.close()


@functools.cache
def _empty_file() -> bytes:
    """The newest schema, before a store makes its own key: the steps to it take longer than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "empty.db")
        database = open_file(file)
        migrate(database, shipped())
        database.close()
        return file.read_bytes()


def _tables(database: apsw.Connection) -> list[str]:
    found = database.execute("select name from pragma_table_list where schema = 'main' and type = 'table'")
    return [name for (name,) in found if not name.startswith("sqlite_")]


def _single(database: apsw.Connection, question: str) -> int:
    return int(next(database.execute(question))[0])


class PostgresHome:
    """A database that a test finds empty: cloned once from a template, then only emptied, which takes milliseconds."""

    def __init__(self, server: PostgresServer, name: str, template: str = TEMPLATE) -> None:
        self.url = server.create_database(name, template=template) + CARELESS
        self._cleaner: psycopg.Connection | None = None
        with psycopg.connect(self.url) as connection:
            self._tables = [name for (name,) in connection.execute(_PLAIN_TABLES)]
            # What the migrations themselves put there, such as the schema's version and the key of cursors, stays.
            self._emptied = [name for name in self._tables if not _count(connection, name)]

    def empty(self) -> None:
        """Remove all rows that were written since the database was made."""
        deletions = [sql.SQL("delete from {}").format(sql.Identifier(name)) for name in self._emptied]
        if self._cleaner is None:
            # Kept: to connect takes the server longer than to empty.
            self._cleaner = psycopg.connect(self.url)
            # As a replica does: in any order, whatever refers to what.
            self._cleaner.execute("set session_replication_role = replica")
        self._cleaner.execute(sql.SQL("; ").join(deletions))
        self._cleaner.commit()

    def close(self) -> None:
        if self._cleaner is not None:
            self._cleaner.close()

    def rows(self) -> dict[str, int]:
        with psycopg.connect(self.url) as connection:
            return {name: _count(connection, name) for name in self._tables}


_PLAIN_TABLES = """
select relname from pg_class
where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace
"""


def _count(connection: psycopg.Connection, table: str) -> int:
    row = connection.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(table))).fetchone()
    return int(row[0]) if row else 0


def counting(start: int = 1) -> Iterator[str]:
    """Ids that look like real ones and rise by one."""
    return (f"00000000-0000-7000-8000-{number:012x}" for number in itertools.count(start))


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self, now: int = 1_750_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, ms: int = 1_000) -> int:
        """Move on, and return the new time."""
        self.now += ms
        return self.now
