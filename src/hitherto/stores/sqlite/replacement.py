"""Putting a backup in place of a store.

The files that belong to the old one (its log, the memory of that, its index) go with it: a log that is left beside another
file would be taken for that file's own.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import apsw

from hitherto.errors import Conflict, InvalidInput, StoreDamaged, StoreNotFound
from hitherto.ports import Losses
from hitherto.stores.sqlite.connection import fetch, make_private, sync_folder, translate_errors
from hitherto.stores.sqlite.migrate import version
from hitherto.stores.sqlite.read_only import open_read_only, open_without_locks

T = TypeVar("T")

SUFFIXES = ("", "-wal", "-shm", "-search", "-search-wal", "-search-shm")
FORGET_GENERATION = "PRAGMA journal_mode = MEMORY; DELETE FROM store_meta WHERE name = 'generation'"
LOST = """
SELECT printf('%d %d %d %d', (SELECT count(*) FROM erased), (SELECT max(at) FROM erased),
    (SELECT count(*) FROM tombstone), (SELECT max(change) FROM tombstone))
"""
REWRITTEN = "SELECT value FROM store_meta WHERE name = 'rewritten'"
NOTE_REWRITTEN = "INSERT OR REPLACE INTO store_meta (name, value) VALUES ('rewritten', ?)"
SECRET = "SELECT value FROM store_meta WHERE name = 'secret'"
DELETED = "SELECT o.name, t.id FROM tombstone AS t JOIN owner AS o ON o.num = t.owner ORDER BY t.at"
HAS_ERASED = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'erased'"
ERASED = "SELECT o.name, e.session, e.mark FROM erased AS e JOIN owner AS o ON o.num = e.owner"

# Where SQLite locks a file, in every version of it: whoever has a store open holds a shared lock on the last of these.
PENDING, LOCKED = 0x40000000, 512
SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
FLOCK = "hhqqi4x"
REPLACED = ".replaced-"


def copy_whole(source: apsw.Connection, target: Path) -> None:
    """VACUUM INTO a file beside the target, then put it in place: never a half copy under the target's name."""
    with _copied(source, target) as part:
        part.replace(target)
        sync_folder(target.parent)


class Replaced(NamedTuple, Generic[T]):
    """Where the old store is now, None if there was none, and what came of its losses, None if they are not known."""

    aside: Path | None
    lost: T | None


def restore_backup(path: Path, backup: Path, lose: Callable[[Path, Losses], T]) -> Replaced[T]:
    """Put a copy of the backup in place of the store, after `lose` has taken out of it what the old store lost.

    Raises `Conflict` while somebody has the store open, and `StoreNotFound` or `StoreDamaged` if the backup is not a whole
    store; nothing has changed then.
    """
    if path.exists() and backup.exists() and path.samefile(backup):
        raise InvalidInput(f"{backup} is the store itself: name a backup of it")
    with translate_errors(backup):
        source = _checked(backup)
        try:
            with translate_errors(path), _copied(source, path) as part, _alone(path):
                losses = _losses(path)
                lost = None if losses is None else lose(part, losses)
                _settle(part, anew=lost is not None)
                aside = _set_aside(path)
                part.replace(path)
                sync_folder(path.parent)
                return Replaced(aside, lost)
        finally:
            source.close()


@contextlib.contextmanager
def _copied(source: apsw.Connection, target: Path) -> Iterator[Path]:
    """A durable copy beside the target, which is gone at the end unless it was renamed."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    make_private(part)
    try:
        # The copy inherits this: else pages that it splits keep second copies of words, which no erasure would reach.
        fetch(source, "PRAGMA secure_delete = ON")
        source.execute("VACUUM INTO ?", (str(part),))
        _settle(part)
        yield part
    finally:
        for suffix in SUFFIXES:
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _losses(path: Path) -> Losses | None:
    """What was deleted and erased in the store, which nobody has open; None if it is not there or cannot be read."""
    if not path.exists():
        return None
    try:
        db = open_without_locks(path)
        try:
            erased = fetch(db, ERASED) if fetch(db, HAS_ERASED)[0][0] else ()
            return Losses(bytes(fetch(db, SECRET)[0][0]), tuple(fetch(db, DELETED)), tuple(erased))
        finally:
            db.close()
    except (apsw.Error, IndexError):
        return None


def _checked(backup: Path) -> apsw.Connection:
    """A connection to a backup that is whole."""
    if not backup.is_file() or backup.stat().st_size == 0:
        raise StoreNotFound(str(backup))
    db = open_read_only(backup)
    try:
        found = fetch(db, "PRAGMA integrity_check(1)")[0][0]
        if found != "ok":
            raise StoreDamaged(f"{backup.name} is damaged: {found}; take another backup")
        if version(db) == 0:
            raise StoreNotFound(str(backup))
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody has the file open, and nobody opens it until the end."""
    if not path.exists():
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.fcntl(
                descriptor, SET_LOCK, struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, PENDING, LOCKED, 0)
            )
        except OSError as error:
            raise Conflict(
                f"{path.name} is open in another process: stop it first, for example `hitherto serve` or `sync --watch`"
            ) from error
        yield
    finally:
        os.close(descriptor)


def set_aside(path: Path) -> list[Path]:
    """The stores beside this one that backups have taken the place of."""
    beside = tuple(filter(None, SUFFIXES))
    found = path.parent.glob(f"{glob.escape(path.name + REPLACED)}*")
    return sorted(each for each in found if not each.name.endswith(beside))


def _set_aside(path: Path) -> Path | None:
    """Rename the store and what belongs to it, the file itself first: without it the rest is nobody's."""
    stem = f"{path.name}{REPLACED}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
    moved = [
        suffix
        for suffix in SUFFIXES
        if _renamed(path.with_name(path.name + suffix), path.with_name(stem + suffix))
    ]
    sync_folder(path.parent)
    return path.with_name(stem) if "" in moved else None


def _renamed(old: Path, new: Path) -> bool:
    try:
        old.rename(new)
    except FileNotFoundError:
        return False
    return True


def rewrite(db: apsw.Connection, beside: Callable[[], None]) -> None:
    """Write the whole file anew from its rows, if something was erased or deleted since that was done; `beside` does it
    with the index.

    SQLite overwrites what it frees. But when it divides or joins pages it moves rows, and leaves what they were in the free
    space of the page that they were on.
    """
    (lost,) = fetch(db, LOST)
    if fetch(db, REWRITTEN) != [lost]:
        beside()
        db.execute("PRAGMA temp_store = FILE")  # it takes as much as the store has
        db.execute("VACUUM")
        db.execute(NOTE_REWRITTEN, lost)


def _settle(part: Path, *, anew: bool = False) -> None:
    """Make a copy durable, in one file, and another store than the one that it was copied from."""
    db = apsw.Connection(str(part))
    try:
        fetch(db, FORGET_GENERATION)
        if anew:
            fetch(db, "PRAGMA secure_delete = ON; VACUUM")
    finally:
        db.close()
    with part.open("rb") as copy:
        os.fsync(copy.fileno())
