"""Hitherto itself, by the calls that its users have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import apsw

import hitherto
from bench.contenders.port import KeepsBytes, Lists
from bench.workloads.messages import Message
from hitherto.model import LOCAL, Draft, Entry, Filter, Page, Principal, Role, SearchPage, Session, Text
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.append import append_entries
from hitherto.stores import connector
from hitherto.stores.sqlite.rows import READ

# What one transaction takes when the store is filled.
BATCH = 1_000
WHOLE = 10_000
# No message has this word: searching for it only brings the index up to date.
NOWHERE = "qqqqqq"
BARE_PAGE = f"""
SELECT {", ".join(READ)} FROM session WHERE owner = 1 AND archived = 0 ORDER BY order_at DESC, id DESC LIMIT ?
"""
ROLE: dict[str, Role] = {"user": "user", "assistant": "assistant"}


class Hitherto(KeepsBytes, Lists):
    """A store in one SQLite file."""

    sessions: Sessions

    async def open(self, place: str) -> None:
        self._url = self._address(place)
        self._stack = AsyncExitStack()
        self.sessions = await self._stack.enter_async_context(hitherto.open(self._url))
        self._ids: dict[str, str] = {}
        self._making = asyncio.Lock()
        self._bare: apsw.Connection | None = None

    def _address(self, place: str) -> str:
        return f"sqlite:///{Path(place) / 'hitherto.db'}"

    async def append(self, session: str, message: Message) -> None:
        await self.sessions.append(LOCAL, await self._id(session), _draft(message))

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        known = await self._id(session)
        for start in range(0, len(messages), BATCH):
            drafts = [_draft(message) for message in messages[start : start + BATCH]]
            await self.sessions.append(LOCAL, known, drafts)

    async def history(self, session: str) -> Sequence[Entry]:
        return (await self.sessions.history(LOCAL, self._ids[session], limit=WHOLE)).entries

    async def stored(self, session: str) -> Sequence[bytes]:
        return (await self.sessions.history(LOCAL, self._ids[session], limit=WHOLE)).raw

    async def last(self, session: str, count: int) -> Sequence[Entry]:
        return (await self.sessions.history(LOCAL, self._ids[session], last=True, limit=count)).entries

    async def settle(self) -> None:
        await self.sessions.search(LOCAL, NOWHERE, limit=1)

    async def make_sessions(self, count: int) -> None:
        for number in range(count):
            await self.sessions.create(LOCAL, title=f"session {number}")
        await self.settle()

    async def newest(self, count: int) -> Sequence[Session]:
        return (await self.find(Filter(), None, count)).sessions

    async def add_sessions(self, sessions: Sequence[tuple[Session, Entry | None]]) -> None:
        """Store ready-made sessions, with times, states and sources that no call can give them; never measured."""
        async with connector(self._url)(self._url, None) as store:
            for start in range(0, len(sessions), BATCH):
                batch = sessions[start : start + BATCH]

                async def work(tx: Writer, batch: Sequence[tuple[Session, Entry | None]] = batch) -> None:
                    for session, entry in batch:
                        record = await add_session(tx, LOCAL.owner, session)
                        if entry is not None:
                            await append_entries(tx, record, [entry], session.updated_at, store.secret)

                await store.write(work)
        await self.settle()

    async def find(self, given: Filter, cursor: str | None, limit: int) -> Page:
        """A page of the list."""
        return await self.sessions.find(LOCAL, given, cursor=cursor, limit=limit)

    def bare_page(self, count: int) -> Sequence[object]:
        """The same columns of the newest sessions as `newest` reads, by a bare SELECT, as tuples."""
        if self._bare is None:
            self._bare = apsw.Connection(self._url.removeprefix("sqlite:///"))
        return self._bare.execute(BARE_PAGE, (count,)).fetchall()

    async def count(self, given: Filter) -> int:
        """How many sessions pass the filter."""
        return await self.sessions.count(LOCAL, given)

    async def search(self, query: str, limit: int) -> SearchPage:
        """A page of hits."""
        return await self.sessions.search(LOCAL, query, limit=limit)

    async def close(self) -> None:
        if self._bare is not None:
            self._bare.close()
        await self._stack.aclose()

    async def _id(self, session: str) -> str:
        if session not in self._ids:
            async with self._making:
                if session not in self._ids:
                    self._ids[session] = (await self.sessions.create(LOCAL)).id
        return self._ids[session]


class HithertoPostgres(Hitherto):
    """A store in a PostgreSQL database."""

    def _address(self, place: str) -> str:
        return place

    async def settle(self) -> None:
        """Words and counters are part of the append's own transaction: nothing follows."""

    async def append_as(self, owner: str, session: str, message: Message) -> None:
        """The same for a session of this owner, of which no other task makes one of that name."""
        who, name = Principal(owner=owner), f"{owner}: {session}"
        if name not in self._ids:
            self._ids[name] = (await self.sessions.create(who)).id
        await self.sessions.append(who, self._ids[name], _draft(message))


def _draft(message: Message) -> Draft:
    return Draft(role=ROLE[message.role], parts=(Text(text=message.text),))
