"""Bringing a file to the newest schema: numbered SQL files, each applied with its record in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
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


class Migration(NamedTuple):
    """One step."""

    version: int
    name: str
    sql: str


def shipped() -> list[Migration]:
    """The steps this program knows, in order."""
    folder = files("hitherto.stores.sqlite") / "sql"
    named = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return [
        Migration(int(file.name.partition("_")[0]), file.name, file.read_text(encoding="utf-8"))
        for file in named
    ]


def migrate(db: apsw.Connection, steps: Sequence[Migration]) -> None:
    """Apply the steps that the file lacks; another process may be doing the same."""
    known = steps[-1].version
    if version(db) < known:
        for step in steps:
            _apply(db, step)
    if (found := version(db)) > known:
        raise SchemaTooNew(found, known)


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
