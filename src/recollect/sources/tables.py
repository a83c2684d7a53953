"""Sessions that lie as rows in another program's SQLite database, whose columns differ from version to version."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import apsw

from recollect.claude.lines import decode
from recollect.model import Json, encode
from recollect.sources.databases import read_database
from recollect.sources.files import Seen
from recollect.sources.port import WITHIN, Found, Source
from recollect.sources.talk import objects

# Text comes as bytes: one that is no UTF-8 costs its bad bytes only.
_PICKED = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END AS {0}"
_MISSING = "NULL AS {0}"


class Listed(NamedTuple):
    """A session in a database: its id, when it was changed (in ms), and numbers that change when it does."""

    id: str
    at: int
    stamp: tuple[int, ...]


class Row(NamedTuple):
    """Where a session is: which of the database's. No id: the database could not be read."""

    file: Seen
    id: str | None


def found_in(
    source: Source, file: Seen, listed: Callable[[apsw.Connection], Iterable[Listed]]
) -> Iterator[Found]:
    """The sessions in a database; if it cannot be read, the database itself, so that it is told of."""
    key = str(file.path)
    try:
        sessions = read_database(file.path, lambda database: list(listed(database)))
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        yield Found(source, key, (), 0, Row(file, None))
        return
    for each in sessions:
        stamp = (file.inode, *each.stamp)
        yield Found(source, f"{key}{WITHIN}{each.id}", stamp, each.at, Row(file, each.id))


def select(
    database: apsw.Connection, table: str, columns: Sequence[str], rest: str = "", given: Sequence[Any] = ()
) -> Iterator[Json]:
    """These columns of a table's rows: None for a column that this version has not, nothing if it has no such table."""
    there = {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
    if not there:
        return
    picked = ", ".join((_PICKED if name in there else _MISSING).format(name) for name in columns)
    sql = f"SELECT {picked} FROM {table} {rest}"  # noqa: S608 - the names are ours
    for row in database.execute(sql, tuple(given)):
        yield dict(zip(columns, map(_plain, row), strict=True))


def the_one(database: apsw.Connection, table: str, columns: Sequence[str], id: str | None) -> Json:
    """The row of this id. `OSError` if it is not there (any more)."""
    for row in select(database, table, columns, "WHERE id = ?", [id]):
        return row
    raise OSError("it could not be read a moment ago" if id is None else f"{id} is there no more")


def marks(database: apsw.Connection, table: str) -> dict[str, tuple[int, int]]:
    """How many rows of a table belong to each session, and the number of the newest."""
    if not database.execute(f"PRAGMA table_info({table})").fetchall():
        return {}
    sql = f"SELECT CAST(session_id AS BLOB), count(*), max(rowid) FROM {table} GROUP BY session_id"  # noqa: S608
    return {str(_plain(id)): (count, newest) for id, count, newest in cast(Any, database.execute(sql))}


def fingerprint(row: Json) -> int:
    """A number that changes when one of a row's values does."""
    return zlib.crc32(encode(row))


def inner(row: Json, column: str) -> Json | None:
    """The JSON object in a column; None if there is none that can be read."""
    value = _decoded(row[column])
    return value if isinstance(value, dict) else None


def inner_list(row: Json, column: str) -> list[Json] | None:
    """The objects of the JSON list in a column; None if there is none that can be read."""
    value = _decoded(row[column])
    return list(objects(value)) if isinstance(value, list) else None


def _decoded(value: Any) -> object:
    try:
        return decode(value.encode("utf-8", "replace")) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
