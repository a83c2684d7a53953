"""A store that this process may not write to: on a read-only disk, in somebody else's folder, on a medium of backups.

With a log (`-wal`) beside the file SQLite needs a third file, in which readers and writers agree. If it is there, readers
use it. If it is not, nobody writes, and it cannot be made: then the log is read without it, and without locks. Whoever
does so looks after each transaction whether the files are still as they were.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import apsw

from hitherto.errors import StoreUnavailable
from hitherto.stores.sqlite.connection import (
    READING_KIB,
    check_version,
    fetch,
    keep_plans,
    patience,
    translate_errors,
)

WITHOUT_LOCKS = "unix-none"
LOOK = "SELECT count(*) FROM sqlite_schema"
PRAGMAS = """
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
"""


def can_be_written(path: Path) -> bool:
    """Whether this process may write to the file, and make others beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(each, os.W_OK, effective_ids=effective) for each in (path, path.parent))


def open_read_only(path: Path) -> apsw.Connection:
    """A connection to a file that is there; it makes and changes nothing."""
    check_version()
    with translate_errors(path):
        try:
            return _opened(str(path))
        except (apsw.CantOpenError, apsw.ReadOnlyError):  # a log needs a file that cannot be made
            return open_without_locks(path)


def open_without_locks(path: Path) -> apsw.Connection:
    """The same, for a caller who knows that nobody writes to the file or its log, or looks whether somebody did."""
    if path.with_name(path.name + "-wal").exists():
        return _opened(str(path), vfs=WITHOUT_LOCKS)
    return _opened(f"{path.as_uri()}?immutable=1", apsw.SQLITE_OPEN_URI)


def _opened(name: str, flags: int = 0, *, vfs: str | None = None) -> apsw.Connection:
    db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | flags, vfs=vfs)
    try:
        db.set_busy_handler(patience(lambda: True))
        keep_plans(db)
        if vfs is not None:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            fetch(db, "PRAGMA locking_mode = EXCLUSIVE")
        fetch(db, LOOK)
        fetch(db, PRAGMAS)
        db.execute(f"PRAGMA cache_size = -{READING_KIB}")
    except BaseException:
        db.close()
        raise
    return db


class Stillness:
    """The files of a store as they were: who reads without locks must know that nobody writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = self._seen()

    def check(self) -> None:
        """Raises `StoreUnavailable` if somebody has written since."""
        if self._seen() != self._before:
            raise StoreUnavailable(
                f"{self._path.name} was changed while it was read, by somebody who may write to it: try again"
            )

    def _seen(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(self._path.with_name(self._path.name + suffix)) for suffix in ("", "-wal")]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class NoWriter:
    """In place of the thread that writes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def submit(self, work: object) -> NoReturn:
        """Refuse."""
        raise StoreUnavailable(
            f"{self._path.name} cannot be written: it, or its folder, is read-only for this process"
        )

    def submit_quietly(self, work: object) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
