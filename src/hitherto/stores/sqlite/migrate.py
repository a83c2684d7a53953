"""Bringing a file to the newest schema: numbered SQL files, each applied with its record in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import apsw

from hitherto.errors import SchemaTooNew
from hitherto.ids import now_ms
from hitherto.stores.sqlite.connection import fetch, transaction

RECORDS = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version    INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at INTEGER NOT NULL
)"""
NEWEST = "SELECT coalesce(max(version), 0) FROM schema_migration"
RECORD = "INSERT INTO schema_migration (version, name, applied_at) VALUES (?, ?, ?)"
OLDEST_WRITER = """
SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM store_meta WHERE name = 'oldest_writer'
"""

RENAMED = {("session", "kind_of_change"): "change_kind", ("garbage", "unreached"): "log"}
"""What columns were called in earlier schemas."""


class Migration(NamedTuple):
    """One step."""

    version: int
    name: str
    sql: str


@cache
def shipped() -> tuple[Migration, ...]:
    """The steps this program knows, in order."""
    folder = files("hitherto.stores.sqlite") / "sql"
    named = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(
        Migration(int(file.name.partition("_")[0]), file.name, file.read_text(encoding="utf-8"))
        for file in named
    )


def migrate(db: apsw.Connection, steps: Sequence[Migration]) -> None:
    """Apply the steps that the file lacks; another process may be doing the same.

    A file with more steps is left as it is. Raises `SchemaTooNew` if one of them forbids this program to write.
    """
    known = steps[-1].version
    if version(db) < known:
        for step in steps:
            _apply(db, step)
    check_writer(db, known)


def check_writer(db: apsw.Connection, known: int | None = None) -> None:
    """Raise `SchemaTooNew` if programs that know no later schema than this, or than `shipped`, may not write any more."""
    known = shipped()[-1].version if known is None else known
    oldest = fetch(db, OLDEST_WRITER)
    # A store that says nothing of it was written by programs that asked for the same schema.
    if (oldest[0][0] if oldest else version(db)) > known:
        raise SchemaTooNew(version(db), known)


@contextmanager
def writing(db: apsw.Connection) -> Iterator[None]:
    """A transaction of a program that may still write. Raises `SchemaTooNew`."""
    with transaction(db):
        check_writer(db)
        yield


def _apply(db: apsw.Connection, step: Migration) -> None:
    with transaction(db):
        db.execute(RECORDS)
        if fetch(db, NEWEST)[0][0] < step.version:
            db.execute(step.sql)
            db.execute(RECORD, (step.version, step.name, now_ms()))


def version(db: apsw.Connection) -> int:
    """The schema of the file; 0 if it is no store."""
    there = fetch(db, "SELECT 1 FROM sqlite_schema WHERE name = 'schema_migration'")
    return int(fetch(db, NEWEST)[0][0]) if there else 0
