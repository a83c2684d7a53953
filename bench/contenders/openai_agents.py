"""openai-agents: SQLiteSession, and SQLAlchemySession over aiosqlite. Its items are plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.contenders.port import Contender
from bench.workloads.messages import Message


def _item(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.text}


class _Sessions(Contender):
    """One session object per conversation, made when first needed and kept."""

    async def open(self, place: str) -> None:
        self._sessions: dict[str, Any] = {}
        self._file = Path(place) / "openai.db"

    def _session(self, name: str) -> Any:
        if name not in self._sessions:
            self._sessions[name] = self._make(name)
        return self._sessions[name]

    def _make(self, name: str) -> Any:
        raise NotImplementedError

    async def append(self, session: str, message: Message) -> None:
        await self._session(session).add_items([_item(message)])

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        await self._session(session).add_items([_item(message) for message in messages])

    async def history(self, session: str) -> Sequence[object]:
        items: list[object] = await self._session(session).get_items()
        return items

    async def last(self, session: str, count: int) -> Sequence[object]:
        items: list[object] = await self._session(session).get_items(limit=count)
        return items


class SQLiteSession(_Sessions):
    """The class that its documentation begins with."""

    async def open(self, place: str) -> None:
        await super().open(place)
        self._kind = import_module("agents").SQLiteSession

    def _make(self, name: str) -> Any:
        return self._kind(name, self._file)

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


class SQLAlchemySession(_Sessions):
    """The class for any database that SQLAlchemy knows; all sessions share one engine."""

    async def open(self, place: str) -> None:
        await super().open(place)
        self._kind = import_module("agents.extensions.memory.sqlalchemy_session").SQLAlchemySession
        create = import_module("sqlalchemy.ext.asyncio").create_async_engine
        self._engine = create(f"sqlite+aiosqlite:///{self._file}")

    def _make(self, name: str) -> Any:
        return self._kind(name, engine=self._engine, create_tables=True)

    async def close(self) -> None:
        await self._engine.dispose()
