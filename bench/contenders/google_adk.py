"""google-adk: SqliteSessionService, and DatabaseSessionService over SQLAlchemy and aiosqlite."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contenders.port import Lists
from bench.workloads.messages import Message

APP = "bench"
USER = "local"


class _Service(Lists):
    """Events are appended to a session object that the caller keeps, as ADK's own runner does."""

    async def open(self, place: str) -> None:
        self._event = import_module("google.adk.events.event").Event
        self._types = import_module("google.genai.types")
        self._recent = import_module("google.adk.sessions.base_session_service").GetSessionConfig
        self._service = self._make(Path(place) / "adk.db")
        self._sessions: dict[str, Any] = {}

    def _make(self, file: Path) -> Any:
        raise NotImplementedError

    async def append(self, session: str, message: Message) -> None:
        kept = self._sessions.get(session)
        if kept is None:
            kept = await self._create(session)
            self._sessions[session] = kept
        await self._service.append_event(kept, self._as_event(message))

    async def history(self, session: str) -> Sequence[object]:
        return await self._events(session, None)

    async def last(self, session: str, count: int) -> Sequence[object]:
        return await self._events(session, self._recent(num_recent_events=count))

    async def make_sessions(self, count: int) -> None:
        for number in range(count):
            await self._create(f"session-{number}")

    async def newest(self, count: int) -> Sequence[object]:
        listed = (await self._service.list_sessions(app_name=APP, user_id=USER)).sessions
        newest: list[object] = listed[-count:][::-1]
        return newest

    async def close(self) -> None:
        await self._service.close()

    async def _create(self, name: str) -> Any:
        return await self._service.create_session(app_name=APP, user_id=USER, session_id=name)

    async def _events(self, name: str, config: object) -> Sequence[object]:
        found = await self._service.get_session(app_name=APP, user_id=USER, session_id=name, config=config)
        events: list[object] = found.events
        return events

    def _as_event(self, message: Message) -> Any:
        content = self._types.Content(role=message.role, parts=[self._types.Part(text=message.text)])
        return self._event(author=message.role, content=content)


class SqliteSessionService(_Service):
    """The service for one file."""

    def _make(self, file: Path) -> Any:
        return import_module("google.adk.sessions.sqlite_session_service").SqliteSessionService(str(file))


class DatabaseSessionService(_Service):
    """The service for any database that SQLAlchemy knows."""

    def _make(self, file: Path) -> Any:
        service = import_module("google.adk.sessions.database_session_service").DatabaseSessionService
        return service(f"sqlite+aiosqlite:///{file}")
