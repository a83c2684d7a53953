"""agno: SqliteDb. Its unit is a run, so one message is one run with one message."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contenders.port import Lists
from bench.workloads.messages import Message


class SqliteDb(Lists):
    """`upsert_run` alone; agno's agent also rewrites the session row after each run, which costs more."""

    async def open(self, place: str) -> None:
        self._message = import_module("agno.models.message").Message
        run = import_module("agno.run.agent")
        self._run, self._status = run.RunOutput, run.RunStatus
        self._session = import_module("agno.session.agent").AgentSession
        self._agent = import_module("agno.db.base").SessionType.AGENT
        self._db = import_module("agno.db.sqlite").SqliteDb(db_file=str(Path(place) / "agno.db"))
        self._next: dict[str, int] = {}

    async def append(self, session: str, message: Message) -> None:
        if session not in self._next:
            self._create(session)
        index = self._next.setdefault(session, 0)
        run = self._run(
            run_id=f"{session}-{index}",
            session_id=session,
            agent_id="bench",
            status=self._status.completed,
            messages=[self._message(role=message.role, content=message.text)],
        )
        self._db.upsert_run(run, session_id=session, run_index=index)
        self._next[session] = index + 1

    async def history(self, session: str) -> Sequence[object]:
        return self._messages(self._db.get_session(session, session_type=self._agent))

    async def last(self, session: str, count: int) -> Sequence[object]:
        return self._messages(self._db.get_session(session, session_type=self._agent, runs_limit=count))

    async def make_sessions(self, count: int) -> None:
        for number in range(count):
            self._create(f"session-{number}")

    async def newest(self, count: int) -> Sequence[object]:
        listed: list[object] = self._db.get_sessions(
            session_type=self._agent, limit=count, sort_by="updated_at", sort_order="desc", include_runs=False
        )
        return listed

    async def close(self) -> None:
        self._db.close()

    def _create(self, name: str) -> None:
        self._db.upsert_session(self._session(session_id=name, agent_id="bench"))

    def _messages(self, session: Any) -> list[object]:
        return [message for run in session.runs for message in run.messages]
