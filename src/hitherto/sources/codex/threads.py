"""What Codex keeps beside its rollouts: names of threads, and which rollout is a thread's current one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import cast

import apsw

from hitherto.claude.lines import decode_object, read_records
from hitherto.model import encode
from hitherto.sources.codex.records import text
from hitherto.sources.port import Unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.database import read_database

SUFFIX = ".sqlite"
_DATABASE = re.compile(rf"state_(\d{{1,6}}){re.escape(SUFFIX)}")
INDEX = "session_index.jsonl"
COLUMNS = "SELECT name FROM pragma_table_info('threads')"
ANY = "SELECT 1 FROM threads LIMIT 1"
NAMED = "SELECT id, name AS value FROM threads WHERE typeof(name) = 'text' AND name <> ''"
# Before there was a column for names, a title other than the first prompt was a name.
TITLED = """
SELECT id, title AS value FROM threads
WHERE typeof(title) = 'text' AND title <> '' AND trim(title) <> trim(first_user_message)
"""
ROLLOUTS = """
SELECT id, rollout_path AS value FROM threads
WHERE typeof(rollout_path) = 'text' AND id IN (SELECT value FROM json_each(?))
"""
AS_BYTES = "SELECT CAST(id AS BLOB), CAST(value AS BLOB) FROM ({0})"
Query = Callable[[apsw.Connection, Collection[str]], dict[str, str]]
"""A query on a database, given the columns of its table of threads."""


def names_of_threads(home: Path, unreadable: list[Unreadable]) -> dict[str, str] | None:
    """The names of threads by id; None if they cannot be read at the moment: then the database is added to `unreadable`."""
    found = _query_newest(home, _names, unreadable)
    return None if found is None else dict(_indexed(home)) | found


def rollouts_of_threads(home: Path, threads: Collection[str]) -> dict[str, str]:
    """The paths of the current rollouts of these threads, as far as Codex names them."""
    ids = encode(list(threads)).decode()
    return _query_newest(home, lambda database, _: _pairs(database, ROLLOUTS, ids), []) or {}


def files_beside(home: Path) -> list[Path]:
    """The files with names, including the logs of databases, which are written first."""
    there = files.list_folder(home, SUFFIX, f"{SUFFIX}-wal", INDEX, unreadable=[]).files
    return [each.path for each in there if each.name == INDEX or _DATABASE.match(each.name)]


def _query_newest(home: Path, query: Query, unreadable: list[Unreadable]) -> dict[str, str] | None:
    """The result from the newest database with threads: that of a newer version may still be empty."""
    for path in _databases(home):
        try:
            found = read_database(path, lambda database: _query(database, query))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            unreadable.append(Unreadable(str(path), f"{error}; titles of sessions are not updated"))
            return None
        if found is not None:
            return found
    return {}


def _databases(home: Path) -> list[Path]:
    """The databases, newest version first."""
    found = (
        (int(match[1]), file.name)
        for file in files.list_folder(home, SUFFIX, unreadable=[]).files
        if (match := _DATABASE.fullmatch(file.name))
    )
    return [home / name for _, name in sorted(found, reverse=True)]


def _query(database: apsw.Connection, query: Query) -> dict[str, str] | None:
    columns = {str(name) for (name,) in database.execute(COLUMNS)}
    return query(database, columns) if columns and database.execute(ANY).fetchall() else None


def _names(database: apsw.Connection, columns: Collection[str]) -> dict[str, str]:
    sql = NAMED if "name" in columns else TITLED if "first_user_message" in columns else None
    return _pairs(database, sql) if sql else {}


def _pairs(database: apsw.Connection, sql: str, *given: str) -> dict[str, str]:
    try:
        return dict(cast("Iterable[tuple[str, str]]", database.execute(sql, given)))
    except UnicodeDecodeError:
        # Invalid UTF-8 costs only the bad bytes.
        rows = cast("Iterable[tuple[bytes, bytes]]", database.execute(AS_BYTES.format(sql), given))
        return {id.decode("utf-8", "replace"): value.decode("utf-8", "replace") for id, value in rows}


def _indexed(home: Path) -> Iterator[tuple[str, str]]:
    """Names as older versions kept them: the last one of each thread."""
    try:
        lines, _ = read_records(files.read_whole(home / INDEX))
    except (OSError, ValueError):
        return
    for line in lines:
        entry = decode_object(line)
        if (id := text(entry, "id")) and (name := text(entry, "thread_name")):
            yield id, name
