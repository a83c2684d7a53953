"""Databases as opencode writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sources.database_rows import Database

SESSION = "ses_6a0000000001AbCdEfGhIjKlMn"
CWD = "/srv/engine"
START = 1_793_700_000_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, fork_session_id TEXT, slug TEXT, directory TEXT, title TEXT,
    version TEXT, summary_diffs TEXT, cost REAL DEFAULT 0, tokens_input INTEGER DEFAULT 0,
    tokens_output INTEGER DEFAULT 0, revert TEXT, time_created INTEGER, time_updated INTEGER, time_archived INTEGER
);
CREATE TABLE IF NOT EXISTS message (
    id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT
);
CREATE TABLE IF NOT EXISTS part (
    id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT
);
CREATE TABLE IF NOT EXISTS session_message (
    id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, time_updated INTEGER, data TEXT
);
CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, data TEXT);
CREATE TABLE IF NOT EXISTS credential (id TEXT PRIMARY KEY, value TEXT);
"""
OLDEST = """
CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
"""
TOKENS = {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 100, "write": 7}}


class OpencodeWriter(Database):
    """Writes sessions in both forms."""

    def __init__(self, home: Path, name: str = "opencode.db", schema: str = SCHEMA) -> None:
        super().__init__(home / name, schema)
        self._number = 0

    def _next(self) -> tuple[int, int]:
        self._number += 1
        return self._number, START + self._number * 1000

    def session(self, id: str = SESSION, **fields: Any) -> str:
        told = {"directory": CWD, "title": "New session - 2026-11-01T10:00:00.000Z"}
        self.add("session", **{"id": id, **told, "time_created": START, "time_updated": START, **fields})
        return id

    def touch(self, id: str) -> None:
        self.run("UPDATE session SET time_updated = ? WHERE id = ?", START + self._number * 1000, id)

    def message(self, role: str, *parts: dict[str, Any], session: str = SESSION, **fields: Any) -> str:
        """A message of the older form and its parts."""
        number, at = self._next()
        id = f"msg_{number:08x}"
        data = {"role": role, "time": {"created": at}, **fields}
        self.add("message", id=id, session_id=session, time_created=at, data=data)
        for place, part in enumerate(parts):
            own = f"prt_{number:08x}{place}"
            self.add("part", id=own, message_id=id, session_id=session, data=part)
        self.touch(session)
        return id

    def answer(self, *parts: dict[str, Any], session: str = SESSION, **fields: Any) -> str:
        told = {"modelID": "claude-sonnet-5", "providerID": "anthropic", "cost": 0.25, "tokens": TOKENS}
        return self.message("assistant", *parts, session=session, **told, **fields)

    def user(self, said: str, session: str = SESSION) -> str:
        return self.message("user", text(said), session=session)

    def row(self, kind: str, session: str = SESSION, **fields: Any) -> str:
        """A message of the newer form."""
        number, at = self._next()
        id = f"msg_new{number:08x}"
        data = {"time": {"created": at}, **fields}
        self.add(
            "session_message", id=id, session_id=session, type=kind, seq=number, time_created=at, data=data
        )
        self.touch(session)
        return id


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def tool(name: str, given: dict[str, Any], call: str = "c1", **state: Any) -> dict[str, Any]:
    told = {"status": "completed", "input": given, "output": "done", "title": "", "metadata": {}, **state}
    return {"type": "tool", "callID": call, "tool": name, "state": told}
