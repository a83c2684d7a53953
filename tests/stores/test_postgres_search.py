"""Searches that take long on PostgreSQL: they end by themselves, and leave connections to the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from hitherto.errors import SearchTooBroad
from hitherto.model import LOCAL, Draft, Principal, Text
from hitherto.service import Sessions
from hitherto.stores.postgres import connect, transactions
from hitherto.stores.postgres.migrate import check_writer
from hitherto.stores.postgres.transactions import CONNECTIONS
from tests.support.homes import CARELESS, TEMPLATE
from tests.support.postgres_server import PostgresServer
from tests.support.waits import NEVER, arrives, until

DATABASE = "postgres_search"
HELLO = [Draft(role="user", parts=(Text(text="hello"),))]


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    yield postgres_server.create_database(DATABASE, template=TEMPLATE) + CARELESS
    postgres_server.drop_database(DATABASE)


@asynccontextmanager
async def slow(url: str) -> AsyncIterator[None]:
    """No search comes to its end until this does; lists of sessions do."""
    async with await psycopg.AsyncConnection.connect(url) as holder:
        await holder.execute("lock table entry in access exclusive mode")
        yield


async def waiting(url: str) -> bool:
    """Whether a search has begun."""
    async with await psycopg.AsyncConnection.connect(url) as connection:
        cursor = await connection.execute(
            "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
        return await cursor.fetchone() is not None


async def test_a_search_that_takes_too_long_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "SEARCH_SECONDS", 0.1)
    async with connect(url) as store:
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, HELLO)
        async with slow(url):
            with pytest.raises(SearchTooBroad, match=r"write more of each word"):
                await arrives(sessions.search(LOCAL, "hello"), "the end of the search")
            with pytest.raises(SearchTooBroad):
                await arrives(sessions.within(LOCAL, session.id, "hello"), "the end of the search")
        monkeypatch.setattr(transactions, "SEARCH_SECONDS", NEVER)
        assert len((await sessions.search(LOCAL, "hello")).hits) == 1


async def test_many_steps_of_a_search_have_no_more_time_than_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "SEARCH_SECONDS", 0.0)
    async with connect(url) as store:
        with pytest.raises(SearchTooBroad):
            await Sessions(store).search(LOCAL, "hello")


async def test_the_limit_of_a_search_is_that_of_no_later_transaction(url: str) -> None:
    async def limit(tx: transactions.Statements) -> object:
        return (await tx.rows("SELECT current_setting('statement_timeout')"))[0][0]

    async def limited(tx: transactions.Statements) -> object:
        await tx.limit_search()
        return await limit(tx)

    async with transactions.pool(url) as connections:
        run = transactions.Transactions(connections, check_writer()).run
        before = await run(transactions.READ, limit)
        assert await run(transactions.READ, limited) == f"{transactions.SEARCH_SECONDS:g}s" != before
        assert await run(transactions.READ, limit) == before


@pytest.mark.parametrize("owners", [1, CONNECTIONS + 2])
async def test_searches_leave_connections_to_others(
    url: str, owners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "SEARCH_SECONDS", NEVER)
    people = [Principal(f"owner{number % owners}") for number in range(CONNECTIONS + 2)]
    async with connect(url) as store:
        sessions = Sessions(store)
        for who in people[:owners]:
            await sessions.append(who, (await sessions.create(who)).id, HELLO)
        async with slow(url):
            searches = [asyncio.create_task(sessions.search(who, "hello")) for who in people]
            await until(
                lambda: waiting(url), "the first search to wait"
            )  # the others have asked for a connection
            assert (await arrives(sessions.find(LOCAL), "the list of somebody else")).sessions == ()
            assert not any(search.done() for search in searches)
        found = await arrives(asyncio.gather(*searches), "the end of all searches")
        assert [len(each.hits) for each in found] == [1] * len(people)
