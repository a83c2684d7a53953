"""OpenClaw's databases and files: the records in both are Pi's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zstandard

from tests.sources.database_rows import Database
from tests.sources.pi.pi_files import PiWriter

Json = dict[str, Any]
KEY = "agent:main:main"
PACKED_FROM = 1_024
SECRET = "sk-never-to-be-read"  # noqa: S105 - it opens nothing
SCHEMA = f"""
CREATE TABLE session_nodes (
    session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL,
    updated_at INTEGER NOT NULL, status TEXT, created_via TEXT, parent_session_key TEXT, spawned_by TEXT,
    fork_source_session_id TEXT, label TEXT, display_name TEXT, archived_at INTEGER
) STRICT;
CREATE TABLE session_windows (
    session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, reason TEXT,
    created_at INTEGER, updated_at INTEGER NOT NULL, transcript_updated_at INTEGER, chat_type TEXT, channel TEXT,
    display_name TEXT
) STRICT;
CREATE TABLE transcript_events (
    session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
    event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
    PRIMARY KEY (session_id, seq)
) STRICT;
CREATE TABLE transcript_rewrite_watermarks (
    session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE auth_profile_store (store_key TEXT NOT NULL PRIMARY KEY, store_json TEXT NOT NULL) STRICT;
INSERT INTO auth_profile_store VALUES ('main', '{{"key": "{SECRET}"}}');
"""
OLDEST = """
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, PRIMARY KEY (session_id, seq));
"""


class OpenclawWriter(Database):
    """Writes the database of an agent."""

    def __init__(self, home: Path, agent: str = "main", schema: str = SCHEMA) -> None:
        super().__init__(home / "agents" / agent / "agent" / "openclaw-agent.sqlite", schema)
        self._dated = schema == SCHEMA
        self._written: dict[str, int] = {}

    def node(self, session_id: str, key: str = KEY, **fields: Any) -> None:
        """A logical session, and the transcript in which it goes on."""
        told = {"session_key": key, "current_session_id": session_id, "entry_json": "{}", "updated_at": 5}
        self.add("session_nodes", **told, **fields)

    def window(self, session_id: str, key: str = KEY, **fields: Any) -> None:
        self.add(
            "session_windows", **{"session_id": session_id, "session_key": key, "updated_at": 5, **fields}
        )

    def write(self, made: PiWriter) -> None:
        """The records that were not written yet."""
        done = self._written.get(made.session_id, 0)
        for seq, record in enumerate(made.records[done:], done):
            more = {"created_at": 5} if self._dated else {}
            told = {"session_id": made.session_id, "seq": seq}
            self.add("transcript_events", **told, **more, **self._payload(record))
        self._written[made.session_id] = len(made.records)

    def _payload(self, record: Json) -> Json:
        """The columns of an event: those that are long enough are packed."""
        event = json.dumps(record)
        if not self._dated or len(data := event.encode()) < PACKED_FROM:
            return {"event_json": event}
        packed = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(data)
        return {"event_zstd": packed, "event_utf8_bytes": len(data), "navigation_json": "{}"}


def save(home: Path, made: PiWriter, agent: str = "main") -> Path:
    """A transcript in a file, as it was before."""
    path = home / "agents" / agent / "sessions" / f"{made.session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.data())
    return path
