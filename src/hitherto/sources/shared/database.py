"""Sessions that another program keeps as rows of a SQLite database. Columns differ from version to version."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote

import apsw
import msgspec

from hitherto.claude.lines import decode
from hitherto.model import Json
from hitherto.service import Imported
from hitherto.sources.port import WITHIN, FoundSession, Reading, Source
from hitherto.sources.shared.conversation import Conversation, moment, objects
from hitherto.sources.shared.files import FoundFile

# Text is read as bytes: invalid UTF-8 costs only the bad bytes.
_PICKED = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END"
_MISSING = "NULL AS {0}"
# In ms; text is a date.
_MOMENT = "CASE typeof({0}) WHEN 'text' THEN round((julianday({0}) - 2440587.5) * 86400000) ELSE {0} END"


Changes = Mapping[str, str]
"""Columns of a table whose rows are updated in place, and SQL for a number that changes with each column."""


class ListedSession(msgspec.Struct, frozen=True, gc=False):
    """A session in a database: its id, when it last changed (in ms), and numbers that change with it."""

    id: str
    at: int
    stamp: tuple[int, ...]


class Row(msgspec.Struct, frozen=True, gc=False):
    """A session's database and its id there. Without an id: the database itself, which could not be read."""

    file: FoundFile
    id: str | None


def find_in_database(
    source: Source, file: FoundFile, listed: Callable[[apsw.Connection], Iterable[ListedSession]]
) -> Iterator[FoundSession]:
    """The sessions in a database; if it cannot be read, the database itself, so that sync reports it."""
    key = str(file.path)
    try:
        sessions = read_database(file.path, lambda database: list(listed(database)))
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        yield FoundSession(source, key, (), 0, Row(file, None))
        return
    size = file.size // max(len(sessions), 1)
    for each in sessions:
        stamp = (file.inode, *each.stamp)
        yield FoundSession(
            source, f"{key}{WITHIN}{each.id}", stamp, each.at, Row(file, each.id), size, each.id
        )


def reading_of(imported: Imported, conversation: Conversation, records: Sequence[str]) -> Reading:
    """A session whose rows were all read: `records` are the texts that the conversation was read from."""
    return Reading(
        imported=imported,
        entries=conversation.entries,
        total=len(conversation.entries),
        compactions=conversation.compactions,
        branches=conversation.branches,
        size=sum(map(len, records)),
        damaged=conversation.damaged,
        unknown=conversation.unknown,
        census=conversation.census,
    )


def select(
    database: apsw.Connection, table: str, columns: Sequence[str], rest: str = "", given: Sequence[Any] = ()
) -> Iterator[Json]:
    """These columns of a table's rows: None for a column that this version lacks, no rows if it lacks the table."""
    there = columns_of(database, table)
    if not there:
        return
    picked = ", ".join((_PICKED if name in there else _MISSING).format(name) for name in columns)
    sql = f"SELECT {picked} FROM {table} {rest}"  # noqa: S608 - the names are ours
    for row in database.execute(sql, tuple(given)):
        yield dict(zip(columns, map(_plain, row), strict=True))


def row_by_id(database: apsw.Connection, table: str, columns: Sequence[str], id: str | None) -> Json:
    """The row of this id. `OSError` if there is none (any more)."""
    for row in select(database, table, columns, "WHERE id = ?", [id]):
        return row
    raise OSError(
        "the database could not be read" if id is None else f"session {id} is no longer in the database"
    )


def list_sessions(
    database: apsw.Connection,
    table: str,
    columns: Sequence[str],
    at: str,
    counted: Mapping[str, Changes],
    rest: str = "",
) -> Iterator[ListedSession]:
    """The sessions in a table `s`, one row each; the column `at` has the time of a session's last change.

    A session has changed if one of these columns has, or, in the `counted` tables, the number of its rows, its newest
    row, or the number that changes with a row. All in one statement: there may be many sessions, and usually none has
    changed.
    """
    joined = [
        (f"c{place}", row_counts_sql(database, name, changes))
        for place, (name, changes) in enumerate(counted.items())
    ]
    numbers = "".join(
        f", ifnull({alias}.{name}, 0)" for alias, _ in joined for name in ("rows", "newest", "changes")
    )
    joins = " ".join(f"LEFT JOIN {rows} AS {alias} ON {alias}.session_id = s.id" for alias, rows in joined)
    return sessions_of_query(
        database,
        f"SELECT CAST(s.id AS BLOB), {_MOMENT.format('s.' + at)}, {change_bytes_sql(s=columns)}{numbers}"  # noqa: S608
        f" FROM {columns_sql(database, table, columns)} AS s {joins} {rest}",
    )


def sessions_of_query(database: apsw.Connection, sql: str) -> Iterator[ListedSession]:
    """The sessions that a statement returns: id, time of the last change, then bytes and numbers that change with it."""
    for id, at, row_bytes, *numbers in cast(Any, database.execute(sql)):
        when = moment(at) or 0
        yield ListedSession(_plain(id), when, (when, *numbers, zlib.crc32(row_bytes)))


def change_bytes_sql(**columns: Sequence[str]) -> str:
    """SQL for bytes that change with any of these columns; the argument names are the tables' aliases."""
    values = (f"ifnull({alias}.{name}, '-')" for alias, names in columns.items() for name in names)
    return f"CAST(concat_ws(',', {', '.join(values)}) AS BLOB)"


def columns_sql(database: apsw.Connection, table: str, columns: Sequence[str]) -> str:
    """SQL for these columns of a table's rows: NULL for a column that this version lacks, no row if it lacks the table."""
    there = columns_of(database, table)
    picked = ", ".join(name if name in there else _MISSING.format(name) for name in columns)
    return f"(SELECT {picked} FROM {table})" if there else f"(SELECT {picked} WHERE 0)"  # noqa: S608 - the names are ours


def row_counts_sql(database: apsw.Connection, table: str, changes: Changes = MappingProxyType({})) -> str:
    """SQL for the number of a session's rows in a table, the newest row's number, and a number that changes with any row;
    no row if there is no table."""
    there = columns_of(database, table)
    if not there:
        return "(SELECT NULL AS session_id, 0 AS rows, 0 AS newest, 0 AS changes WHERE 0)"
    terms = (f"ifnull({number}, 0)" for column, number in changes.items() if column in there)
    return (
        f"(SELECT session_id, count(*) AS rows, max(rowid) AS newest, {_sum(terms)} AS changes"  # noqa: S608
        f" FROM {table} GROUP BY session_id)"
    )


def _sum(numbers: Iterable[str]) -> str:
    # Only the last 32 bits of each, so that the sum does not overflow.
    term = " + ".join(numbers)
    return f"sum(({term}) & 4294967295)" if term else "0"


def columns_of(database: apsw.Connection, table: str) -> set[str]:
    """The columns of a table; none if there is no such table."""
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}


def json_object(row: Json, column: str) -> Json | None:
    """The JSON object in a column; None if there is no valid one."""
    value = _decoded(row[column])
    return value if isinstance(value, dict) else None


def json_objects(row: Json, column: str) -> list[Json] | None:
    """The objects of the JSON list in a column; None if there is no valid list."""
    value = _decoded(row[column])
    return list(objects(value)) if isinstance(value, list) else None


def _decoded(value: Any) -> object:
    try:
        return decode(value.encode("utf-8", "replace")) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


T = TypeVar("T")
BUSY_MS = 2_000
TRIES = 3
LOGS = ("-wal", "-journal")
STILL, LOGGED, INDEXED = "&immutable=1", "&readonly_shm=1", ""
"""How to open a database: as a plain file; with its log; with its log when SQLite must build the log's index."""


def read_database(path: Path, work: Callable[[apsw.Connection], T]) -> T:
    """What `work` returns for the database. `OSError` if it is missing or cannot be read; `ValueError` if it is damaged."""
    for _ in range(TRIES):
        before = _state(path)
        found = _read_logged(path, work) if before.log else _read(path, work, STILL)
        if before.log or _state(path) == before:
            return found
    raise OSError(f"{path.name} changes too often to be read; sync tries again when it is next run")


class _State(NamedTuple):
    """What changes when somebody writes to the database."""

    inode: int
    size: int
    mtime_ns: int
    log: bool


def _state(path: Path) -> _State:
    seen = os.lstat(path)
    log = any(path.with_name(path.name + suffix).exists() for suffix in LOGS)
    return _State(seen.st_ino, seen.st_size, seen.st_mtime_ns, log)


def _read_logged(path: Path, work: Callable[[apsw.Connection], T]) -> T:
    index = path.with_name(f"{path.name}-shm")
    return _read(path, work, LOGGED if index.exists() else INDEXED)


def _read(path: Path, work: Callable[[apsw.Connection], T], how: str) -> T:
    address = f"file:{quote(os.fsencode(path))}?mode=ro{how}"
    try:
        database = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            database.set_busy_timeout(BUSY_MS)
            database.execute("PRAGMA query_only = ON")
            database.execute("BEGIN").fetchall()
            return work(database)
        finally:
            database.close()
    except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as error:
        raise ValueError(f"{path.name} is not a readable database: {error}") from error
    except apsw.Error as error:
        raise OSError(f"{path.name} cannot be read: {error}") from error
