"""What was read of each source file, and how to go on with it: a small file of our own, on this machine.

It is derived: losing it costs reading everything once more, and nothing is taken in twice.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS file (
    path     BLOB PRIMARY KEY,
    device   INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    noted_ns INTEGER NOT NULL,
    session  TEXT NOT NULL,
    state    BLOB NOT NULL
);
"""
SEEN = "SELECT path, device, inode, size, mtime_ns, noted_ns, session FROM file"
STATE = "SELECT state FROM file WHERE path = ?"
PUT = "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
FORGET = "DELETE FROM file WHERE path = ?"


class Seen(NamedTuple):
    """A file as it was when it was last read, and the session it belongs to."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    noted_ns: int
    session: str


class Ledger:
    """The ledger in one file; a damaged one is begun anew."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._db = _opened(path)
        except (apsw.NotADBError, apsw.CorruptError):
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).unlink()
            self._db = _opened(path)

    def seen(self) -> dict[str, Seen]:
        """Every file that was read, by its path."""
        return {os.fsdecode(path): Seen(*rest) for path, *rest in cast(Any, self._db.execute(SEEN))}

    def state(self, path: str) -> bytes | None:
        """How to go on with a file."""
        rows = self._db.execute(STATE, (os.fsencode(path),)).fetchall()
        return cast("bytes", rows[0][0]) if rows else None

    def put(self, path: str, seen: Seen, state: bytes) -> None:
        """A file was read up to here."""
        self._db.execute(PUT, (os.fsencode(path), *seen, state))

    def forget(self, path: str) -> None:
        """A file is gone."""
        self._db.execute(FORGET, (os.fsencode(path),))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def _opened(path: Path) -> apsw.Connection:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    db.execute(SCHEMA).fetchall()
    return db
