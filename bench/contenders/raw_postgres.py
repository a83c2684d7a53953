"""The limit of PostgreSQL as psycopg reaches it: one bare row per message, one durable statement each."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import psycopg

from bench.contenders.port import KeepsBytes, Lists
from bench.contenders.raw import Line
from bench.workloads.messages import Message

MESSAGES = "CREATE TABLE message (session int, seq int, body bytea NOT NULL, PRIMARY KEY (session, seq))"
SESSIONS = "CREATE TABLE session (id int PRIMARY KEY, updated_at bigint NOT NULL, title text NOT NULL)"
NEWEST_FIRST = "CREATE INDEX ON session (updated_at DESC, id DESC)"
APPEND = "INSERT INTO message (session, seq, body) VALUES (%s, %s, %s)"
READ = "SELECT body FROM message WHERE session = %s ORDER BY seq"
LAST = "SELECT body FROM message WHERE session = %s ORDER BY seq DESC LIMIT %s"
MAKE = "COPY session (id, updated_at, title) FROM STDIN"
PAGE = "SELECT id, updated_at, title FROM session ORDER BY updated_at DESC, id DESC LIMIT %s"


class RawPostgres(KeepsBytes, Lists):
    """One connection, no pool, no thread, binary results."""

    async def open(self, place: str) -> None:
        self._db = psycopg.connect(place, autocommit=True)
        for statement in (MESSAGES, SESSIONS, NEWEST_FIRST):
            self._db.execute(statement)
        self._places: dict[str, tuple[int, int]] = {}
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Line).decode

    async def append(self, session: str, message: Message) -> None:
        number, seq = self._places.setdefault(session, (len(self._places), 0))
        self._db.execute(APPEND, (number, seq, self._encode(Line(message.role, message.text))))
        self._places[session] = (number, seq + 1)

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        with self._db.transaction():
            for message in messages:
                await self.append(session, message)

    async def history(self, session: str) -> list[Line]:
        return [self._decode(body) for body in await self.stored(session)]

    async def stored(self, session: str) -> list[bytes]:
        rows = self._db.execute(READ, (self._places[session][0],), binary=True)
        return [body for (body,) in rows]

    async def last(self, session: str, count: int) -> list[Line]:
        rows = self._db.execute(LAST, (self._places[session][0], count), binary=True).fetchall()
        return [self._decode(body) for (body,) in reversed(rows)]

    async def make_sessions(self, count: int) -> None:
        now = time.time_ns() // 1_000_000
        with self._db.cursor() as cursor, cursor.copy(MAKE) as copy:
            for number in range(count):
                copy.write_row((number, now + number, f"session {number}"))
        self._db.execute("ANALYZE session")

    async def newest(self, count: int) -> Sequence[object]:
        return self._db.execute(PAGE, (count,), binary=True).fetchall()

    async def close(self) -> None:
        self._db.close()
