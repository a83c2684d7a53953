"""The limit: apsw and nothing else, one bare row per message, one durable transaction each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from bench.contenders.port import KeepsBytes, Lists
from bench.workloads.messages import Message

MESSAGES = "CREATE TABLE message (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
SESSIONS = "CREATE TABLE session (id INTEGER PRIMARY KEY, updated_at INTEGER NOT NULL, title TEXT NOT NULL)"
NEWEST_FIRST = "CREATE INDEX newest ON session (updated_at DESC, id DESC)"
APPEND = "INSERT INTO message (id, body) VALUES (?, ?)"
READ = "SELECT body FROM message WHERE id BETWEEN ? AND ? ORDER BY id"
LAST = "SELECT body FROM message WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
MAKE = "INSERT INTO session (updated_at, title) VALUES (?, ?)"
PAGE = "SELECT id, updated_at, title FROM session ORDER BY updated_at DESC, id DESC LIMIT ?"

# A session's messages lie together: its number, then the message's place in 24 bits.
SESSION_BITS = 24


class Line(msgspec.Struct, frozen=True):
    """A message as the bare table keeps it."""

    role: str
    content: str


class Raw(KeepsBytes, Lists):
    """No sessions table to keep, no counters, no search, no thread: what SQLite itself takes."""

    async def open(self, place: str) -> None:
        self._db = apsw.Connection(str(Path(place) / "raw.db"))
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "full")
        for statement in (MESSAGES, SESSIONS, NEWEST_FIRST):
            self._db.execute(statement)
        self._next: dict[str, int] = {}
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Line).decode

    async def append(self, session: str, message: Message) -> None:
        place = self._place(session)
        self._db.execute(APPEND, (place, self._encode(Line(message.role, message.text))))
        self._next[session] = place + 1

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        with self._db:
            for message in messages:
                await self.append(session, message)

    async def history(self, session: str) -> list[Line]:
        decode = self._decode
        return [decode(body) for (body,) in self._db.execute(READ, self._range(session))]

    async def stored(self, session: str) -> list[bytes]:
        return [body for (body,) in self._db.execute(READ, self._range(session))]

    async def last(self, session: str, count: int) -> list[Line]:
        rows = self._db.execute(LAST, (*self._range(session), count)).fetchall()
        return [self._decode(body) for (body,) in reversed(rows)]

    async def make_sessions(self, count: int) -> None:
        now = time.time_ns()
        with self._db:
            self._db.executemany(MAKE, ((now + n, f"session {n}") for n in range(count)))

    async def newest(self, count: int) -> Sequence[object]:
        return self._db.execute(PAGE, (count,)).fetchall()

    async def close(self) -> None:
        self._db.close()

    def _place(self, session: str) -> int:
        return self._next.setdefault(session, (len(self._next) + 1) << SESSION_BITS)

    def _range(self, session: str) -> tuple[int, int]:
        last = self._next[session]
        return last >> SESSION_BITS << SESSION_BITS, last
