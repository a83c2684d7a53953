"""Searches on PostgreSQL: those that take long end by themselves and leave connections to others; and their order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from hitherto.errors import InvalidCursor, SearchTooBroad
from hitherto.model import LOCAL, Draft, Principal, Text
from hitherto.service import Sessions
from hitherto.stores.postgres import connect, search, transactions
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


# As rows of earlier schemas are: without a moment, and without the marks of time.
UNORDER = (
    "ALTER TABLE title DISABLE TRIGGER title_moment",
    """UPDATE entry SET said = NULL, words = ts_delete(words, ARRAY(
        SELECT lexeme FROM unnest(moment_marks(said, owner_mark(words)))))""",
    """UPDATE title SET said = NULL, words = ts_delete(words, ARRAY(
        SELECT lexeme FROM unnest(moment_marks(said, owner_mark(words)))))""",
    "ALTER TABLE title ENABLE TRIGGER title_moment",
    "DELETE FROM store_meta WHERE name = 'order'",
)
# As programs of earlier schemas write beside newer ones.
BY_OLDER_PROGRAM = """
INSERT INTO entry (owner, log, seq, id, role, number, total_tokens, total_errors, total_cost, total_bytes, payload, words)
SELECT owner, log, seq + 1, id || 'b', role, number + 1000, total_tokens, total_errors, total_cost, total_bytes, payload,
       ts_delete(words, ARRAY(SELECT lexeme FROM unnest(moment_marks(said, owner_mark(words)))))
FROM entry WHERE owner = 'local' ORDER BY number LIMIT 1
"""


async def test_rows_of_an_earlier_schema_are_put_in_order_while_the_store_is_used(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "ORDERED_AT_ONCE", 2)
    moments: dict[str, int] = {}
    async with connect(url) as store:
        sessions = Sessions(store)
        for at in (2_000, 4_000, 1_000, 3_000):
            session = await sessions.create(LOCAL, title="A medlar")
            await sessions.append(LOCAL, session.id, Draft(role="user", parts=(Text(text="quince"),), at=at))
            moments[session.id] = at
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in UNORDER:
            await connection.execute(statement)
    async with connect(url, mode="read") as store:
        sessions = Sessions(store)
        assert [hit.session.id for hit in (await sessions.search(LOCAL, "quince")).hits] == list(moments)[
            ::-1
        ]
        assert (await sessions.admin.about())["unordered"] == await sessions.admin.unordered() == 8
        assert (await sessions.search(LOCAL, "quince")).unordered == 8
        cursor = (await sessions.search(LOCAL, "quince", limit=1)).cursor
    async with connect(url) as store:
        sessions = Sessions(store)

        async def is_done() -> bool:
            return not await sessions.admin.unordered()

        await until(is_done, "the documents to be put in order")
        by_time = sorted(moments, key=lambda name: -moments[name])
        assert [hit.session.id for hit in (await sessions.search(LOCAL, "quince")).hits] == by_time
        assert len((await sessions.search(LOCAL, "medlar")).hits) == 4
        with pytest.raises(InvalidCursor):
            await sessions.search(LOCAL, "quince", limit=1, cursor=cursor)
        assert (await sessions.admin.check(repair=False)).problems == ()


async def test_what_an_older_program_writes_beside_a_newer_one_has_its_moment(url: str) -> None:
    async with connect(url) as store:
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, Draft(role="user", parts=(Text(text="quince"),), at=7_000))
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(BY_OLDER_PROGRAM)
            rows = await (await connection.execute("SELECT said, words FROM entry ORDER BY seq")).fetchall()
    assert rows[0][0] == rows[1][0] == 7_000
    assert rows[0][1] == rows[1][1]


@pytest.mark.parametrize("order", [search.BY_NUMBER, search.BY_TIME])
def test_parts_below_a_point_follow_each_other_and_leave_nothing_out(order: search.Order) -> None:
    for at in (0, 1, 2_047, 2_048, 2_049, 1 << 20, (1 << 30) + 5, 1_794_912_442_679):
        reached = search.Point(at, 5)
        for part in search.below(reached, order):
            assert part.high == reached
            assert search.FIRST <= part.low < part.high
            for block in part.blocks:
                bits = order.blocks[block[0]]
                assert int(block[1:]) in range(part.low.at >> bits, (part.high.at >> bits) + 1)
            reached = part.low
        assert reached == search.FIRST
