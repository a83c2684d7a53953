"""Reading another program's SQLite database while that program may be using it, and leaving nothing behind.

A database with a write-ahead log is read together with it, as SQLite does it: shared locks only, nothing written, not
even marks in the index of the log. One without a log that is in use is read as a plain file: opening it in the usual way
would leave a log and its index beside it. Should a writer come meanwhile, what was read so is not used, and it is read
again with its log. One with a rollback journal is being written, or was when its writer died: SQLite decides whether it
can be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import apsw

T = TypeVar("T")
BUSY_MS = 2_000
TRIES = 3
LOGS = ("-wal", "-journal")
STILL, LOGGED, INDEXED = "&immutable=1", "&readonly_shm=1", ""
"""How a database is opened: as a plain file; with its log; with its log, of which SQLite has to make the index."""


def read_database(path: Path, work: Callable[[apsw.Connection], T]) -> T:
    """What `work` finds in the database. `OSError` if it is not there or cannot be read; `ValueError` if it is damaged."""
    for _ in range(TRIES):
        before = _state(path)
        found = _read_logged(path, work) if before.log else _read(path, work, STILL)
        if before.log or _state(path) == before:
            return found
    raise OSError(f"{path.name} is being written all the time")


class _State(NamedTuple):
    """What tells whether anybody wrote."""

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
        raise ValueError(f"{path.name} cannot be understood: {error}") from error
    except apsw.Error as error:
        raise OSError(f"{path.name} cannot be read: {error}") from error
