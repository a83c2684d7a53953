"""Databases as goose writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sources.database_rows import Database

SESSION = "20261101_1"
CWD = "/srv/engine"
START = 1_793_700_000
SCHEMA = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
INSERT INTO schema_version VALUES (17);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
    created_at TIMESTAMP, updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}', total_tokens INTEGER,
    accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, accumulated_cost REAL, provider_name TEXT,
    model_config_json TEXT, archived_at TIMESTAMP, parent_session_id TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL, role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, tokens INTEGER, metadata_json TEXT
);
CREATE TABLE usage_ledger (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER NOT NULL, model TEXT,
    input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER, cache_read_tokens INTEGER,
    cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0
);
"""
OLDEST = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL, created_at TIMESTAMP,
    updated_at TIMESTAMP, extension_data TEXT DEFAULT '{}', accumulated_input_tokens INTEGER
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL
);
"""
AGENT_ONLY: dict[str, Any] = {"userVisible": False, "agentVisible": True}
USER_ONLY: dict[str, Any] = {"userVisible": True, "agentVisible": False}
NOBODY: dict[str, Any] = {"userVisible": False, "agentVisible": False}


class GooseWriter(Database):
    """Writes sessions; each message comes a second after the one before."""

    def __init__(self, home: Path, schema: str = SCHEMA) -> None:
        super().__init__(home / "sessions" / "sessions.db", schema)
        self.ids = "message_id" in schema
        self.now = START

    def session(self, id: str = SESSION, **fields: Any) -> str:
        told = {"working_dir": CWD, "created_at": "2026-11-03 10:00:00", "updated_at": "2026-11-03 10:00:00"}
        self.add("sessions", **{"id": id, **told, **fields})
        return id

    def message(self, role: str, *content: dict[str, Any], session: str = SESSION, **seen: Any) -> str:
        self.now += 1
        id = f"msg_{self.now}"
        more = {"message_id": id, "metadata_json": seen or {"userVisible": True, "agentVisible": True}}
        told = {
            "session_id": session,
            "role": role,
            "content_json": list(content),
            "created_timestamp": self.now,
        }
        self.add("messages", **told, **(more if self.ids else {}))
        return id

    def user(self, said: str, session: str = SESSION, **seen: Any) -> str:
        return self.message("user", text(said), session=session, **seen)

    def say(self, said: str, **seen: Any) -> str:
        return self.message("assistant", text(said), **seen)

    def used(self, cost: float = 0.25, session: str = SESSION) -> None:
        """A row of the ledger, as it comes behind an answer."""
        told = {
            "session_id": session,
            "created_timestamp": self.now,
            "model": "claude-sonnet-5",
            "cost": cost,
        }
        self.add("usage_ledger", **told, input_tokens=117, output_tokens=5, cache_read_tokens=100)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def request(name: str, given: dict[str, Any], id: str = "c1") -> dict[str, Any]:
    value = {"name": name, "arguments": given}
    return {"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}}


def response(said: str, id: str = "c1", **fields: Any) -> dict[str, Any]:
    value = {"content": [text(said)], "isError": False, **fields}
    return {"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}
