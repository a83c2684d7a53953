"""Rollouts as Codex writes them, in both of its ways: `legacy`, and `paginated` with numbered records."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, Literal

import zstandard

SESSION = "019a8c0e-2222-7000-8000-000000000001"
PARENT = "019a8c0e-2222-7000-8000-0000000000aa"
CWD = "/srv/engine"
MODES: tuple[Mode, ...] = ("legacy", "paginated")

Mode = Literal["legacy", "paginated"]
Json = dict[str, Any]


class CodexWriter:
    """Writes records one after the other. In `paginated` rollouts they are numbered, and what is shown is told beside what
    the model has."""

    def __init__(
        self, mode: Mode = "paginated", session_id: str = SESSION, *, first: int = 0, **meta: Any
    ) -> None:
        self.mode, self.session_id = mode, session_id
        self.records: list[Json] = []
        self._ordinal, self._second, self._turn = first, 0, 0
        self._total = 1_000 * first  # a fork goes on counting
        told = {"id": session_id, "session_id": session_id, "cwd": CWD, "originator": "codex_cli_rs"}
        told |= {"cli_version": "0.158.0", "source": "cli", "model_provider": "openai", "history_mode": mode}
        git = {
            "commit_hash": "c0ffee",
            "branch": "main",
            "repository_url": "https://u:p@github.com/ada/engine.git",
        }
        self.line("session_meta", {**told, "timestamp": self.now(), "git": git, **meta})

    @property
    def paginated(self) -> bool:
        return self.mode == "paginated"

    def now(self) -> str:
        return f"2026-11-02T09:{self._second // 60:02d}:{self._second % 60:02d}.000Z"

    def line(self, kind: str, payload: Json, **more: Any) -> int:
        """A record; the number that it has."""
        self._second += 1
        ordinal = {"ordinal": self._ordinal} if self.paginated else {}
        self._ordinal += 1
        self.records.append({"timestamp": self.now(), **ordinal, "type": kind, "payload": payload, **more})
        return self._ordinal - 1

    def event(self, kind: str, **said: Any) -> int:
        return self.line("event_msg", {"type": kind, **said})

    def item(self, kind: str, **said: Any) -> int:
        return self.line("response_item", {"type": kind, **said})

    def shown(self, kind: str, **said: Any) -> int:
        item = {"type": kind, **said}
        return self.event("item_completed", thread_id=self.session_id, turn_id=self.turn_id, item=item)

    @property
    def turn_id(self) -> str:
        return f"turn-{self.session_id[-2:]}-{self._turn}"

    def begin(self, model: str = "gpt-5.5", cwd: str = CWD) -> None:
        """A turn begins."""
        self._turn += 1
        self.event("task_started", turn_id=self.turn_id)
        self.line("turn_context", {"turn_id": self.turn_id, "cwd": cwd, "model": model})

    def end(self) -> None:
        self.event("task_complete", turn_id=self.turn_id, last_agent_message=None)

    def user(self, said: str, **turn: str) -> None:
        """The user says something, which begins a turn."""
        self.begin(**turn)
        self.message("user", said)
        if self.paginated:
            content = [{"type": "text", "text": said, "text_elements": []}]
            self.shown("UserMessage", id=f"u{self._ordinal}", content=content)
        else:
            self.event("user_message", message=said, images=[])

    def message(self, role: str, said: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.item("message", role=role, content=[{"type": kind, "text": said}])

    def say(self, said: str) -> None:
        """The model answers."""
        self.message("assistant", said)
        if self.paginated:
            self.shown("AgentMessage", id=f"m{self._ordinal}", content=[{"type": "Text", "text": said}])
        else:
            self.event("agent_message", message=said)
        self.used()

    def think(self, said: str) -> None:
        self.item("reasoning", summary=[{"type": "summary_text", "text": said}], encrypted_content="xxx")
        if self.paginated:
            self.shown("Reasoning", id=f"r{self._ordinal}", summary_text=[said], raw_content=[])
        else:
            self.event("agent_reasoning", text=said)

    def used(self, fresh: int = 20, cached: int = 100, output: int = 5) -> None:
        """What the answer has used."""
        last = {"input_tokens": fresh + cached, "cached_input_tokens": cached, "cache_write_input_tokens": 0}
        last |= {"output_tokens": output, "total_tokens": fresh + cached + output}
        self._total += fresh + cached + output
        info = {"total_token_usage": {"total_tokens": self._total}, "last_token_usage": last}
        self.event("token_count", info=info, rate_limits=None)

    def call(self, id: str, name: str, **given: Any) -> None:
        self.item("function_call", name=name, arguments=json.dumps(given), call_id=id)
        self.used()

    def run(self, id: str, command: str, output: str, code: int = 0) -> None:
        """A command is run."""
        self.call(id, "exec_command", cmd=command)
        if self.paginated:
            done = {
                "command": ["bash", "-lc", command],
                "cwd": CWD,
                "aggregatedOutput": output,
                "exitCode": code,
            }
            self.shown("CommandExecution", id=id, status="failed" if code else "completed", **done)
        told = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        self.item("function_call_output", call_id=id, output=told)

    def patch(self, id: str, path: str, old: str, new: str, *, success: bool = True) -> None:
        """A file is changed."""
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
        self.item("custom_tool_call", name="apply_patch", input=patch, call_id=id, status="completed")
        diff = f"@@ -1 +1 @@\n-{old}\n+{new}\n"
        done = {
            "changes": {path: {"type": "update", "unified_diff": diff, "move_path": None}},
            "stdout": "Done.",
        }
        status = "completed" if success else "failed"
        if self.paginated:
            self.shown("FileChange", id=id, status=status, **done)
        else:
            self.event("patch_apply_end", call_id=id, success=success, status=status, stderr="", **done)
        self.item("custom_tool_call_output", call_id=id, output="Done.")

    def talk(self, *texts: str) -> CodexWriter:
        """A conversation: the user and the model in turn."""
        for number, said in enumerate(texts):
            self.say(said) if number % 2 else self.user(said)
        return self

    # Files

    def lines(self) -> list[bytes]:
        return [json.dumps(record).encode() + b"\n" for record in self.records]

    def data(self) -> bytes:
        return b"".join(self.lines())

    def save(self, home: Path, *, archived: bool = False, packed: bool = False, own: str = "") -> Path:
        """The rollout where Codex would have it; with an `own` id beside the thread's, after it went back."""
        folder = home / "archived_sessions" if archived else home / "sessions" / "2026" / "11" / "02"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"rollout-2026-11-02T09-00-00-{self.session_id}{f'_{own}' if own else ''}.jsonl"
        path = folder / f"{name}.zst" if packed else folder / name
        path.write_bytes(zstandard.compress(self.data()) if packed else self.data())
        return path

    def place(self) -> Json:
        """Where a fork that goes on here says that its history is."""
        return {
            "thread_id": self.session_id,
            "end_ordinal_exclusive": self._ordinal,
            "end_byte_offset": len(self.data()),
        }


def name_threads(home: Path, names: dict[str, str | None], *, paths: dict[str, Path] | None = None) -> None:
    """Codex's own database, in which threads have names."""
    home.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(home / "state_5.sqlite") as database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, title TEXT NOT NULL,"
            " first_user_message TEXT NOT NULL DEFAULT '', name TEXT)"
        )
        for id, name in names.items():
            path = str((paths or {}).get(id, ""))
            row = (id, path, "what was said first", "what was said first", name)
            database.execute("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?)", row)
    database.close()
