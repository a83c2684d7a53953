"""What sync has read of each session, and the state to continue from: a small file of our own on this machine.

It is derived data. If it is lost, sync reads everything once more and imports nothing twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import apsw

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA secure_delete = ON;
DROP TABLE IF EXISTS file;
CREATE TABLE IF NOT EXISTS read (
    source  TEXT NOT NULL,
    key     BLOB NOT NULL,
    stamp   BLOB NOT NULL,
    session TEXT NOT NULL,
    damaged INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    state   BLOB NOT NULL,
    PRIMARY KEY (source, key)
) WITHOUT ROWID;
-- What became of the records: how many are shown, and how many of each kind are not, as JSON.
CREATE TABLE IF NOT EXISTS census (
    source   TEXT NOT NULL,
    key      BLOB NOT NULL,
    shown    INTEGER NOT NULL,
    left_out BLOB NOT NULL,
    PRIMARY KEY (source, key)
) WITHOUT ROWID;
-- By which version of its reader a source was read last.
CREATE TABLE IF NOT EXISTS reader (source TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
-- Every sync reads all stamps, and rarely anything else.
CREATE INDEX IF NOT EXISTS stamped ON read (source, key, stamp);
"""
SEEN = """
SELECT key, stamp, session, damaged, unknown, ifnull(shown, 0), ifnull(left_out, x'7b7d')
FROM read LEFT JOIN census USING (source, key) WHERE source = ?
"""
STAMPS = "SELECT CAST(key AS TEXT), stamp FROM read WHERE source = ?"
STATE = "SELECT state FROM read WHERE source = ? AND key = ?"
PUT = "INSERT OR REPLACE INTO read VALUES (?, ?, ?, ?, ?, ?, ?)"
PUT_CENSUS = "INSERT OR REPLACE INTO census VALUES (?, ?, ?, ?)"
CLEAR = "UPDATE read SET state = x'' WHERE session = ? AND state <> x''"
READER = "SELECT version FROM reader WHERE source = ?"
PUT_READER = "INSERT OR REPLACE INTO reader VALUES (?, ?)"
FORGET = "DELETE FROM {} WHERE source = ? AND key = ?"

DAMAGED = (apsw.NotADBError, apsw.CorruptError)


class Seen(NamedTuple):
    """The stamp that a source's session had when it was last read, its id here, and how many of its records were damaged,
    of an unknown kind, and shown; `left_out` has how many of each kind were not, as JSON."""

    stamp: bytes
    session: str
    damaged: int = 0
    unknown: int = 0
    shown: int = 0
    left_out: bytes = b"{}"


class Ledger:
    """The ledger in one file. A damaged ledger is replaced by an empty one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        try:
            self._db = _open(path)
        except DAMAGED:
            self._db = _open_empty(path)

    def seen(self, source: str) -> dict[str, Seen]:
        """Every session of a source that was read, by key."""
        return {os.fsdecode(key): Seen(*rest) for key, *rest in self._rows(SEEN, source)}

    def stamps(self, source: str) -> dict[str, bytes]:
        """The stamp of every session of a source when it was last read, by key."""
        try:
            return dict(cast(Any, self._db.execute(STAMPS, (source,))))
        except (UnicodeDecodeError, *DAMAGED):
            # A key is not valid text: decode each one from its bytes, which takes longer.
            return {key: seen.stamp for key, seen in self.seen(source).items()}

    def state(self, source: str, key: str) -> bytes | None:
        """The state to continue from."""
        return next((state for (state,) in self._rows(STATE, source, os.fsencode(key))), None)

    def reader(self, source: str) -> int:
        """By which version of its reader a source was read last; 1 if that is not known."""
        return next((version for (version,) in self._rows(READER, source)), 1)

    def put_reader(self, source: str, version: int) -> None:
        """Note that all of a source was read by this version."""
        with self._db:
            self._db.execute(PUT_READER, (source, version))

    def put(self, read: Iterable[tuple[str, str, Seen, bytes]]) -> None:
        """Note what was read: source, key, what was seen, and the state to continue from."""
        noted = [(source, os.fsencode(key), seen, state) for source, key, seen, state in read]
        rows = [(source, key, *seen[:4], state) for source, key, seen, state in noted]
        census = [(source, key, seen.shown, seen.left_out) for source, key, seen, _ in noted]
        try:
            self._put(rows, census)
        except DAMAGED:
            self._start_again()
            self._put(rows, census)

    def _put(self, rows: Sequence[tuple[Any, ...]], census: Sequence[tuple[Any, ...]]) -> None:
        with self._db:
            self._db.executemany(PUT, rows)
            self._db.executemany(PUT_CENSUS, census)

    def clear(self, sessions: Iterable[str]) -> None:
        """Forget how to continue these sessions, which has words of theirs: their files are read from the beginning again."""
        with self._db:
            self._db.executemany(CLEAR, [(session,) for session in sessions])
        if self._db.changes():
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def forget(self, source: str, key: str) -> None:
        """Forget a session that is gone."""
        for table in ("read", "census"):
            self._rows(FORGET.format(table), source, os.fsencode(key))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _rows(self, sql: str, *given: str | bytes) -> list[Any]:
        try:
            return self._db.execute(sql, given).fetchall()
        except (UnicodeDecodeError, *DAMAGED):
            self._start_again()
            return []

    def _start_again(self) -> None:
        self._db.close(True)
        self._db = _open_empty(self._path)


def _open_empty(path: Path) -> apsw.Connection:
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
    return _open(path)


def _open(path: Path) -> apsw.Connection:
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    db.execute(SCHEMA).fetchall()
    return db
