"""Opening SQLite files: modes, pragmas, patience with other processes, and errors in our own words.

Only SQLite may open these files: closing any other descriptor of one would drop this process's locks on it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from hitherto.errors import StoreDamaged, StoreError, StoreFull, StoreUnavailable

T = TypeVar("T")

OLDEST_SAFE = (3, 51, 3)
"""Older versions can damage a WAL when two connections write and checkpoint at the same instant."""

PATIENCE_SECONDS = 60.0
PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA journal_size_limit = 67108864;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = ON;
PRAGMA trusted_schema = OFF;
"""

NO_SPACE = frozenset({apsw.SQLITE_IOERR_SHMSIZE})
"""What SQLite calls a failure of the disk and is a full one: no room for what connections share, at the first of them."""

READING_KIB = 2_048
WRITING_KIB = 65_536
"""What a connection remembers of the file. Readers leave it to the system: many processes read, few write much."""


def open_file(
    path: Path, may_wait: Callable[[], bool] = lambda: True, *, cache_kib: int = READING_KIB
) -> apsw.Connection:
    """A connection to the file, which is made (for its owner alone) if it is not there.

    While another process writes, it waits for its turn, unless `may_wait` says no.
    """
    check_version()
    with translate_errors(path):
        make_private(path)
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            db.set_busy_handler(patience(may_wait))
            keep_plans(db)
            _set_up(db, path, patience(may_wait))
            db.execute(f"PRAGMA cache_size = -{cache_kib}")
        except BaseException:
            # Left to the collector it would be closed, and its log be copied, while no other thread may run.
            db.close()
            raise
    return db


def check_version() -> None:
    """Raises `StoreUnavailable` if the SQLite of this process must not be used."""
    if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SAFE:
        raise StoreUnavailable(f"SQLite {apsw.sqlite_lib_version()} can damage files: install a newer apsw")


def keep_plans(db: apsw.Connection) -> None:
    """Plan each statement once. SQLite would look at its values, because indexes are partial, and then plan it anew for each call:
    of a page of a list that took a third. Every statement names the index that it needs, or has only one."""
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def fetch(db: apsw.Connection, sql: str, bound: Any = ()) -> list[Any]:
    """All rows of a query."""
    return db.execute(sql, bound).fetchall()


def undo_unfinished(db: apsw.Connection) -> None:
    """Undo what is still open because its own end failed, for want of memory say: else nothing could begin any more."""
    if db.in_transaction:
        db.execute("ROLLBACK")


@contextlib.contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """All of it or nothing; the lock for writing is taken at once."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def snapshot(db: apsw.Connection) -> Iterator[None]:
    """All reads see the store as it was at the first of them."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:  # a failing disk has ended it: report that error
            db.execute("COMMIT")


def make_private(path: Path) -> None:
    """Make the file and the folders above it, closed to others whatever the umask; leave what exists alone."""
    # Not for folders that are there: to make "/" is not everywhere answered with "it exists".
    missing = list(itertools.takewhile(lambda folder: not folder.exists(), path.parents))
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.fchmod(descriptor, 0o600)
    os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable: a new name is a change of the folder, not of the file."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _set_up(db: apsw.Connection, path: Path, go_on: Callable[[int], bool]) -> None:
    for attempt in itertools.count():
        try:
            fetch(db, PRAGMAS)  # to the end: a statement that answers would stop before the next
            break
        except apsw.BusyError:
            # Two that make the log of a new file at once would wait for each other: SQLite refuses one of them, and asks no
            # busy handler.
            if not go_on(attempt):
                raise
    mode = fetch(db, "PRAGMA journal_mode")[0][0]
    sync = fetch(db, "PRAGMA synchronous")[0][0]
    if mode != "wal" or sync != 2:
        raise StoreUnavailable(
            f"{path.name}: this file system does not allow SQLite's write-ahead log (got {mode})"
        )


def patience(may_wait: Callable[[], bool]) -> Callable[[int], bool]:
    """A busy handler that tries often and gives up late: SQLite's own is unfair among many writers."""
    began = 0.0

    def wait(attempts: int) -> bool:
        nonlocal began
        if not may_wait():
            return False
        if attempts == 0:
            began = time.monotonic()
        time.sleep(random.uniform(0.0002, 0.002))  # noqa: S311 - spreads writers, guards nothing
        return time.monotonic() - began < PATIENCE_SECONDS

    return wait


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """SQLite's errors and the system's as errors of the store."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError) as error:
        raise StoreDamaged(
            f"{path.name} is damaged or no store: {error}; `hitherto recover` copies what can be read into a new store,"
            " `hitherto restore-backup` goes back to a backup"
        ) from error
    except apsw.FullError as error:
        raise StoreFull(f"{path.name}: no space left on the disk") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.BusyError, OSError) as error:
        raise StoreUnavailable(f"{path.name} cannot be opened or written: {error}") from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", None) in NO_SPACE:
            raise StoreFull(f"{path.name}: no space left on the disk") from error
        raise StoreUnavailable(f"{path.name}: the disk failed: {error}") from error
    except (MemoryError, apsw.NoMemError) as error:
        raise StoreError(f"{path.name}: not enough memory") from error
    except apsw.Error as error:
        raise StoreError(f"{path.name}: {type(error).__name__}: {error}") from error


def drive(waiting: Awaitable[T]) -> T:
    """Run a transaction's coroutine to its end; it awaits nothing but the transaction, which never suspends."""
    coroutine = cast("Coroutine[Any, Any, T]", waiting)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    coroutine.close()
    raise RuntimeError("a transaction may only await itself")
