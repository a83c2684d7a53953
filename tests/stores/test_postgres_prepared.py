"""Prepared statements: they can be switched off for poolers that do not keep them, and such a pooler is noticed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.errors import InvalidInput, StoreUnavailable
from hitherto.gateway import app
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.stores.postgres import transactions
from hitherto.stores.postgres.migrate import check_writer
from hitherto.stores.postgres.store import PostgresStore, connect, parse_address
from tests.support.conversations import say
from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer

OFTEN = 12
"""More often than psycopg runs a statement before it has it prepared."""
UNNOTICED = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"
"""The driver must not hear of it: by the plain statement it forgets all names, if the answer comes before the next one goes."""


@pytest.fixture(autouse=True)
def _one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another, nothing may have been prepared yet."""
    monkeypatch.setattr(transactions, "CONNECTIONS", 1)


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    yield postgres_server.create_database("prepared") + CARELESS
    postgres_server.drop_database("prepared")


@pytest.mark.parametrize(("switch", "kept"), [("", True), ("&prepare=on", True), ("&prepare=off", False)])
async def test_an_address_says_whether_statements_are_prepared(url: str, switch: str, kept: bool) -> None:
    address = parse_address(f"{url}{switch}")

    async def prepared(tx: transactions.Statements) -> int:
        return int((await tx.rows("SELECT count(*) FROM pg_prepared_statements"))[0][0])

    async with transactions.pool(address.conninfo, prepare=address.prepare) as connections:
        run = transactions.Transactions(connections, check_writer()).run
        found = [await run(transactions.READ, prepared) for _ in range(OFTEN)]
    assert (found[-1] > 0) is kept


async def test_without_prepared_statements_everything_works(url: str) -> None:
    async with connect(f"{url}&prepare=off") as store:
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        for number in range(OFTEN):
            await sessions.append(LOCAL, session.id, [say(f"message {number}")])
        assert (await sessions.get(LOCAL, session.id)).message_count == OFTEN
        assert (await sessions.search(LOCAL, "message")).hits[0].more == OFTEN


async def test_a_pooler_that_does_not_keep_them_is_noticed_and_the_server_is_not_ready(url: str) -> None:
    """What a pooler does is done by hand: the statements are gone."""
    async with connect(url) as store:
        assert isinstance(store, PostgresStore)
        sessions = Sessions(store)
        session = await sessions.create(LOCAL)
        for _ in range(OFTEN):
            await sessions.get(LOCAL, session.id)
        assert (await app.readiness(sessions, ending=False))[0] == 200

        with pytest.raises(StoreUnavailable, match="prepare=off"):  # its own COMMIT is among them
            await store._transactions.run(transactions.READ, lambda tx: tx.queue(UNNOTICED))
        with pytest.raises(StoreUnavailable, match="prepare=off"):
            await sessions.get(LOCAL, session.id)
        # Also for what was not prepared: who knows which statement has that name now.
        with pytest.raises(StoreUnavailable, match="prepare=off"):
            await sessions.create(LOCAL)
        assert (await app.readiness(sessions, ending=False))[0] == 503


def test_another_word_is_refused() -> None:
    with pytest.raises(InvalidInput, match="on or off, not 'no'"):
        parse_address("postgresql://host/db?prepare=no")
