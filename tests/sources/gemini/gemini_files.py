"""Transcripts as Gemini CLI writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "5e551011-1111-4000-8000-000000000001"
CWD = "/srv/engine"
SLUG = "engine"
TOKENS = {"input": 117, "output": 5, "cached": 100, "thoughts": 2, "tool": 0, "total": 124}


class GeminiWriter:
    """Writes a log of operations."""

    def __init__(self, session_id: str = SESSION, **about: Any) -> None:
        self._number = 0
        self.session_id = session_id
        told = {
            "sessionId": session_id,
            "projectHash": "aa",
            "startTime": self._now(),
            "lastUpdated": self._now(),
        }
        self.records: list[dict[str, Any]] = [{**told, "kind": "main", **about}]

    def _now(self) -> str:
        self._number += 1
        return f"2026-11-01T10:{self._number // 60:02d}:{self._number % 60:02d}.000Z"

    def add(self, kind: str, content: Any, id: str | None = None, **fields: Any) -> str:
        """A message, followed by the note that the session has changed."""
        now = self._now()
        own = id or f"m{self._number}"
        self.records.append({"id": own, "timestamp": now, "type": kind, "content": content, **fields})
        self.set(lastUpdated=now)
        return own

    def user(self, said: str) -> str:
        return self.add("user", [{"text": said}])

    def say(self, said: str, **fields: Any) -> str:
        return self.add("gemini", said, model="gemini-3-pro", tokens=TOKENS, **fields)

    def set(self, **changes: Any) -> None:
        self.records.append({"$set": changes})

    def rewind(self, id: str) -> None:
        self.records.append({"$rewindTo": id})

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [record for record in self.records if "id" in record]

    def data(self) -> bytes:
        return b"".join(json.dumps(record).encode() + b"\n" for record in self.records)

    def document(self) -> bytes:
        """The same as one document, as older versions wrote it."""
        return json.dumps({**self.records[0], "messages": self.messages}, indent=2).encode()

    def save(self, home: Path, *, slug: str = SLUG, parent: str | None = None, old: bool = False) -> Path:
        chats = home / "tmp" / slug / "chats"
        name = f"session-2026-11-01T10-00-{self.session_id[:8]}.json{'' if old else 'l'}"
        path = chats / parent / f"{self.session_id}.jsonl" if parent else chats / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.document() if old else self.data())
        return path


def call(
    name: str, given: dict[str, Any], said: str = "done", id: str = "c1", **fields: Any
) -> dict[str, Any]:
    answer = {"functionResponse": {"id": id, "name": name, "response": {"output": said}}}
    return {"id": id, "name": name, "args": given, "status": "success", "result": [answer], **fields}


def mark(home: Path, slug: str = SLUG, folder: str = CWD) -> None:
    """Note which folder a project is in."""
    (home / "tmp" / slug).mkdir(parents=True, exist_ok=True)
    (home / "tmp" / slug / ".project_root").write_text(folder, encoding="utf-8")
