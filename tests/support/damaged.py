"""A store whose rows a test alters past the program, as a failing disk would."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import apsw
import psycopg

from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions
from tests.support.homes import Home, PostgresHome

WORDS = ["one", "two", "three", "four", "five"]


class Damaged:
    """A store of which a test may alter rows, past the program."""

    def __init__(self, home: Home, sessions: Sessions) -> None:
        self.home, self.sessions = home, sessions

    async def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement; `?` stands for a value."""
        if isinstance(self.home, PostgresHome):
            async with await psycopg.AsyncConnection.connect(self.home.url, autocommit=True) as connection:
                done = await connection.execute(statement.replace("?", "%s"), values)
                return await done.fetchall() if done.description else []
        path = Path(self.home.url.removeprefix("sqlite:///"))
        return await asyncio.to_thread(_in_file, path, statement, values)

    @property
    def is_postgres(self) -> bool:
        """Whether it is in PostgreSQL, where columns have other names."""
        return isinstance(self.home, PostgresHome)

    async def entries(self) -> int:
        """How many entries there are."""
        return int((await self.sql("SELECT count(*) FROM entry"))[0][0])

    async def forked(self) -> str:
        """A session whose messages are all in the log of one that was deleted."""
        source = await self.talk()
        fork = await self.sessions.fork(LOCAL, source)
        await self.sessions.delete(LOCAL, source)
        return fork.id

    async def talk(self) -> str:
        """A session of five messages."""
        made = await self.sessions.create(LOCAL, title="talk")
        for word in WORDS:
            await self.sessions.append(LOCAL, made.id, Draft(role="user", parts=(Text(text=word),)))
        return made.id

    async def said(self, session_id: str) -> list[str]:
        """The words of a session."""
        page = await self.sessions.history(LOCAL, session_id)
        return [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]


def _in_file(path: Path, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    database = apsw.Connection(str(path))
    try:
        database.set_busy_timeout(60_000)
        return database.execute(statement, values).fetchall()
    finally:
        database.close()
