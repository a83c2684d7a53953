"""Databases as other programs write them: tables with the columns that a version has, and rows."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any


class Database:
    """A database in the making. While it is open it has a log beside it, as one that is in use has."""

    def __init__(self, path: Path, schema: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(schema)

    def add(self, table: str, **values: Any) -> None:
        """A row; what is no plain value is written as JSON."""
        marks = ", ".join("?" * len(values))
        given = [json.dumps(each) if isinstance(each, dict | list) else each for each in values.values()]
        self._db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", given)

    def run(self, sql: str, *given: Any) -> None:
        """Any change."""
        self._db.execute(sql, given)

    def asked(self, sql: str, *given: Any) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._db.execute(sql, given).fetchall()

    def close(self) -> None:
        """All is in the file, and nothing beside it."""
        self._db.close()
