"""Requests that are cancelled on PostgreSQL: the cancellation reaches nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hitherto.errors import StoreUnavailable
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions
from hitherto.stores.postgres import connect, transactions
from hitherto.stores.postgres.transactions import CONNECTIONS
from tests.support.homes import CARELESS, TEMPLATE
from tests.support.postgres_server import PORT, PostgresServer
from tests.support.waits import arrives, until

CANCEL_REQUEST = 80_877_102
"""What PostgreSQL's protocol begins a cancel request with, instead of a version."""
_numbers = itertools.count(1)

Database = psycopg.AsyncConnection[tuple[Any, ...]]


class LateCancels:
    """A relay in front of PostgreSQL that holds cancel requests back until `deliver`, as a slow network does."""

    def __init__(self, behind: Path) -> None:
        self._behind = behind / f".s.PGSQL.{PORT}"
        self._held: list[bytes] = []
        self.asked = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = await reader.readexactly(8)
            length, code = struct.unpack("!ii", head)
            if code == CANCEL_REQUEST:
                self._held.append(head + await reader.readexactly(length - 8))
                self.asked.set()
                return
            to_reader, to_writer = await asyncio.open_unix_connection(self._behind)
            to_writer.write(head)
            with contextlib.closing(to_writer):
                await asyncio.wait(
                    [
                        asyncio.create_task(_copied(reader, to_writer)),
                        asyncio.create_task(_copied(to_reader, writer)),
                    ],
                    return_when=asyncio.FIRST_COMPLETED,
                )

    async def deliver(self) -> None:
        """Send what is held, and return when PostgreSQL has acted on it."""
        for request in self._held:
            reader, writer = await asyncio.open_unix_connection(self._behind)
            writer.write(request)
            await reader.read()
            writer.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"postgres_cancel_{next(_numbers)}"
    yield postgres_server.create_database(name, template=TEMPLATE) + CARELESS
    postgres_server.drop_database(name)


@pytest.fixture
async def relay(postgres_server: PostgresServer, tmp_path: Path) -> AsyncIterator[LateCancels]:
    late = LateCancels(postgres_server.folder)
    server = await asyncio.start_unix_server(late.serve, tmp_path / f".s.PGSQL.{PORT}")
    yield late
    server.close()


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """A look at the tables, past the store and past the relay."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


@contextlib.asynccontextmanager
async def locked(url: str, *session_ids: str) -> AsyncIterator[None]:
    """Whoever writes to the sessions waits, until this ends."""
    async with await psycopg.AsyncConnection.connect(url) as holder:
        await holder.execute("select from session where id = any(%s) for update", [list(session_ids)])
        yield


WAITING = """
select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
"""


async def waiting(database: Database, count: int = 1) -> list[int]:
    """The processes of PostgreSQL that wait for a lock, as soon as there are so many."""

    async def found() -> list[int]:
        pids = [pid for (pid,) in await (await database.execute(WAITING)).fetchall()]
        return pids if len(pids) >= count else []

    return await until(found, f"{count} that wait for a lock")


async def gone(database: Database, process: int) -> None:
    """Wait until this process of PostgreSQL, and its connection with it, has ended."""

    async def found() -> bool:
        asked = await database.execute("select from pg_stat_activity where pid = %s", [process])
        return await asked.fetchone() is None

    await until(found, f"the end of PostgreSQL's process {process}")


def say(text: str) -> Draft:
    return Draft(role="user", parts=(Text(text=text),))


async def texts(sessions: Sessions, session_id: str) -> list[str]:
    found = await sessions.history(LOCAL, session_id)
    return [part.text for entry in found.entries for part in entry.parts if isinstance(part, Text)]


async def test_a_cancellation_that_arrives_late_strikes_nobody_else(
    url: str, postgres_server: PostgresServer, relay: LateCancels, database: Database, tmp_path: Path
) -> None:
    behind_the_relay = url.replace(str(postgres_server.folder), str(tmp_path))
    async with connect(behind_the_relay) as store:
        sessions = Sessions(store)
        given_up = await sessions.create(LOCAL)
        # As many as the store has connections: one of them would have the one that was cancelled.
        innocent = [(await sessions.create(LOCAL)).id for _ in range(CONNECTIONS)]
        async with locked(url, given_up.id):
            cancelled = asyncio.create_task(sessions.append(LOCAL, given_up.id, say("never mind")))
            (process,) = await waiting(database)
            cancelled.cancel()
            await arrives(relay.asked.wait(), "the request to cancel")
        # The statement has gone through after all, and its cancellation is still on the way.
        with pytest.raises(asyncio.CancelledError):
            await arrives(cancelled, "the end of the append")
        await gone(database, process)
        async with locked(url, *innocent):
            later = [asyncio.create_task(sessions.append(LOCAL, each, say("hello"))) for each in innocent]
            await waiting(database, CONNECTIONS)
            await relay.deliver()
        await arrives(asyncio.gather(*later), "the end of the append")
        assert [await texts(sessions, each) for each in innocent] == [["hello"]] * CONNECTIONS
        # Its end was on its way together with all the rest.
        assert await texts(sessions, given_up.id) in ([], ["never mind"])


async def test_a_cancellation_that_nobody_here_asked_for_is_tried_again(url: str, database: Database) -> None:
    async with connect(url) as store:
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        async with locked(url, session.id):
            writing = asyncio.create_task(sessions.append(LOCAL, session.id, say("hello")))
            (struck,) = await waiting(database)
            await database.execute("select pg_cancel_backend(%s)", [struck])
            assert await waiting(database)
            assert not writing.done()
        await arrives(writing, "the end of the append")
        assert await texts(sessions, session.id) == ["hello"]


async def test_a_statement_that_takes_too_long_is_not_tried_again(
    url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "STATEMENT_SECONDS", 0.0)
    async with connect(url) as store:
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        async with locked(url, session.id):
            writing = asyncio.create_task(sessions.append(LOCAL, session.id, say("hello")))
            await database.execute("select pg_cancel_backend(%s)", await waiting(database))
            with pytest.raises(StoreUnavailable, match="took too long"):
                await arrives(writing, "the end of the append")
