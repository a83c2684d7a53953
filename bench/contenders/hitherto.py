"""Hitherto itself, by the calls that its users have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path

import apsw

import hitherto
from bench.contenders.port import KeepsBytes, Lists
from bench.workloads.messages import Message
from hitherto.model import (
    LOCAL,
    Draft,
    Entry,
    Filter,
    Page,
    Principal,
    Role,
    SearchPage,
    Session,
    Text,
    decode_entry,
    search_text,
)
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.append import append_entries
from hitherto.service.search.sessions import Order
from hitherto.stores import connector
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.rows import READ
from hitherto.values import words

# What one transaction takes when the store is filled.
BATCH = 1_000
WHOLE = 10_000
# No message has this word: searching for it only brings the index up to date.
NOWHERE = "qqqqqq"
BARE_PAGE = f"""
SELECT {", ".join(READ)} FROM session WHERE owner = 1 AND archived = 0 ORDER BY order_at DESC, id DESC LIMIT ?
"""
FIRST_MOMENT = 1_700_000_000_000
YEAR, MINUTE = 365 * 86_400_000, 60_000
PLAIN_INDEX = """
CREATE VIRTUAL TABLE doc USING fts5 (own, text, content = '', contentless_delete = 1, tokenize = 'ascii');
INSERT INTO doc (doc, rank) VALUES ('automerge', 8);
"""
SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
PLAIN_ADD = "INSERT INTO doc (rowid, own, text) VALUES (?, ?, ?)"
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

    async def fill(self, session: str, messages: Sequence[Message], moment: float | None = None) -> None:
        """`moment` is the part of a year that had passed when they were said, one each minute; without it they are said now."""
        known = await self._id(session)
        begun = None if moment is None else FIRST_MOMENT + round(moment * YEAR)
        for start in range(0, len(messages), BATCH):
            drafts = [
                _draft(message, None if begun is None else begun + number * MINUTE)
                for number, message in enumerate(messages[start : start + BATCH], start)
            ]
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

    async def search(self, query: str, limit: int, order: Order = "newest") -> SearchPage:
        """A page of hits."""
        return await self.sessions.search(LOCAL, query, limit=limit, order=order)

    def index_sizes(self) -> tuple[int, int]:
        """The bytes of the search index, and of a bare one with the same words in the order of commits."""
        main = Path(self._url.removeprefix("sqlite:///"))
        index, plain = main.with_name(f"{main.name}-search"), main.with_name("plain-index")
        source, bare = apsw.Connection(str(main)), apsw.Connection(str(plain))
        bare.execute(PLAIN_INDEX)
        rows = source.execute("SELECT number, pos >> 24, payload FROM entry ORDER BY number")
        while batch := list(islice(rows, BATCH)):
            read = [(number, log, decode_entry(payload)) for number, log, payload in batch]
            with bare:
                bare.executemany(
                    PLAIN_ADD,
                    [(n, f"o1 k{e.role} l{log}", words.searchable(search_text(e))) for n, log, e in read],
                )
        sizes = [fetch(apsw.Connection(str(path)), SIZE)[0][0] for path in (index, plain)]
        source.close()
        bare.close()
        plain.unlink()
        return sizes[0], sizes[1]

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


def _draft(message: Message, at: int | None = None) -> Draft:
    return Draft(role=ROLE[message.role], parts=(Text(text=message.text),), at=at)
