"""Transcripts as Pi writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "019a8c0e-1111-7000-8000-000000000001"
CWD = "/srv/engine"


class PiWriter:
    """Writes a tree of records; each follows the last one unless told otherwise."""

    def __init__(self, session_id: str = SESSION, cwd: str = CWD, **header: Any) -> None:
        self._minute = 0
        self._number = 0
        self.leaf: str | None = None
        told = {"type": "session", "version": 3, "id": session_id, "timestamp": self._now(), "cwd": cwd}
        self.session_id, self.records = session_id, [{**told, **header}]

    def _now(self) -> str:
        self._minute += 1
        return f"2026-11-01T{10 + self._minute // 60}:{self._minute % 60:02d}:00.000Z"

    def add(self, kind: str, **fields: Any) -> str:
        """A record behind the leaf, which is its id from now on."""
        self._number += 1
        id = f"{self._number:08x}"
        record = {"type": kind, "id": id, "parentId": self.leaf, "timestamp": self._now(), **fields}
        self.records.append(record)
        self.leaf = id
        return id

    def user(self, text: str) -> str:
        return self.add("message", message={"role": "user", "content": text, "timestamp": 0})

    def answer(self, *blocks: dict[str, Any], **fields: Any) -> str:
        usage = {
            "input": 10,
            "output": 5,
            "cacheRead": 100,
            "cacheWrite": 7,
            "totalTokens": 122,
            "cost": {"input": 0.1, "output": 0.2, "total": 0.25},
        }
        told = {"role": "assistant", "content": list(blocks), "api": "anthropic-messages", "usage": usage}
        return self.add(
            "message",
            message={
                **told,
                "provider": "anthropic",
                "model": "claude-sonnet-5",
                "stopReason": "stop",
                **fields,
            },
        )

    def say(self, text: str) -> str:
        return self.answer({"type": "text", "text": text})

    def data(self) -> bytes:
        return b"".join(json.dumps(record).encode() + b"\n" for record in self.records)

    def save(self, home: Path, name: str = "2026-11-01T10-00-00-000Z") -> Path:
        folder = home / f"--{CWD.strip('/').replace('/', '-')}--"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}_{self.session_id}.jsonl"
        path.write_bytes(self.data())
        return path
