"""A distributed database keeps an owner's rows on one node: statements name the owner, and the tables can be spread by it.

Each process that runs tests looks, when it ends, at every statement that its stores have issued (`statements` in `conftest`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from hitherto.errors import InvalidInput, StoreError
from hitherto.model import Fact, Filter, Principal
from hitherto.service import Policy, Sessions, parse_resets
from hitherto.stores import connector
from hitherto.stores.postgres import check, write_tx
from hitherto.stores.postgres.partitions import LED_BY_OWNER, make_fit
from hitherto.stores.postgres.transactions import opened
from tests.support.conversations import say, talk
from tests.support.homes import CARELESS, TEMPLATE, PostgresHome
from tests.support.postgres_server import PostgresServer
from tests.support.statements import EXCEPTIONS, does_lock, problems_of, recorded, unlike_the_rule

OF_THE_STORE = {"schema_migration", "store_meta", "token", "known_problems", "duty"}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM session",
        "SELECT id FROM session WHERE owner <> %s",
        "SELECT id FROM session WHERE owner = %s OR num = %s",
        "SELECT id FROM session WHERE (owner, num) > (%s, %s)",
        "SELECT owner, unreached FROM garbage LIMIT 1 FOR UPDATE SKIP LOCKED",
        "SELECT s.id FROM session s JOIN span p ON p.num = s.num WHERE s.owner = %s",
        "SELECT s.id FROM session s LEFT JOIN span p ON p.owner = s.owner",
        "SELECT 1 WHERE EXISTS (SELECT FROM entry)",
        "SELECT id FROM session s WHERE owner = %s AND EXISTS (SELECT FROM span p WHERE p.num = s.num)",
        "SELECT (SELECT count(*) FROM entry e) FROM session s WHERE s.owner = %s",
        "WITH gone AS (DELETE FROM memo WHERE at < %s RETURNING 1) SELECT count(*) FROM gone",
        "UPDATE session SET crc = %s WHERE num = %s",
        "INSERT INTO tag (id, tag) VALUES (%s, %s)",
        "INSERT INTO garbage (owner, unreached) SELECT id, num FROM session WHERE owner = %s",
        "INSERT INTO garbage (owner, unreached) SELECT owner, num FROM session",
    ],
)
def test_a_statement_that_names_no_owner_is_noticed(statement: str) -> None:
    assert problems_of(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM session WHERE num > %s AND owner = %s FOR UPDATE",
        "SELECT s.id FROM session s JOIN span p ON p.owner = s.owner AND p.num = s.num WHERE p.owner = %(owner)s",
        "DELETE FROM tag t WHERE t.owner = %(o)s AND NOT EXISTS (SELECT FROM session s WHERE s.owner = t.owner)",
        "INSERT INTO garbage (owner, unreached) SELECT owner, num FROM session WHERE owner = %s",
        "INSERT INTO tag (owner, id) VALUES (%s, %s) ON CONFLICT (owner, id) DO UPDATE SET id = excluded.id",
        "SELECT * FROM token WHERE digest = %b",
        "WITH mine AS (SELECT * FROM lane WHERE owner = %s) SELECT l.* FROM mine l",
    ],
)
def test_a_statement_that_names_the_owner_passes(statement: str) -> None:
    assert problems_of(statement) == []


@pytest.mark.parametrize("statement", EXCEPTIONS, ids=EXCEPTIONS.values())
def test_what_names_no_owner_writes_nothing_and_locks_nothing(statement: str) -> None:
    assert problems_of(statement)  # else it is no exception
    assert not does_lock(statement)


def test_locks_and_writes_are_noticed() -> None:
    for statement in (write_tx.LOCK_GARBAGE, check.DROP_STRAYS, write_tx.PUT_READ_AT, check.LOCK_LANES):
        assert does_lock(statement)


@pytest.fixture
async def sessions(postgres_database: PostgresHome) -> AsyncIterator[Sessions]:
    postgres_database.empty()
    url = postgres_database.url
    async with connector(url)(url) as store:
        yield Sessions(store)


async def test_housekeeping_and_the_doctor_name_owners(sessions: Sessions) -> None:
    with recorded() as seen:
        for owner in ("ann", "bob"):
            who = Principal(owner=owner)
            session = await sessions.create(
                who, key="agent:main:main", title="A title", tags=("x",), idempotency_key="k"
            )
            await talk(sessions, who, session.id, "one", "two")
            fork = await sessions.fork(who, session.id)
            await sessions.compact(who, fork.id, say("What was said"))
            await sessions.find(who, Filter(tags=("x",), text="title"))
            await sessions.search(who, "one")
            await sessions.delete(who, fork.id)
            await sessions.admin.prune(who, Policy(older_than_ms=0), dry_run=False)
            assert [done async for done in sessions.resets.sweep(parse_resets("idle@1m"))] == []
        for repair in (False, True):
            assert (await sessions.admin.check(repair=repair)).problems == ()
        await sessions.admin.forget_notes(1 << 45)
    assert len(seen) > 80
    assert check.LOCKED_SESSIONS in seen
    assert write_tx.LOCK_GARBAGE in seen
    assert write_tx.FORGET_MEMOS in seen
    assert unlike_the_rule(seen) == {}


def test_every_table_is_an_owner_s_or_the_store_s(postgres_database: PostgresHome) -> None:
    assert set(postgres_database.rows()) == {*LED_BY_OWNER, *OF_THE_STORE}
    with psycopg.connect(postgres_database.url) as connection:
        keys = connection.execute(
            "select c.relname, a.attname from pg_index i join pg_class c on c.oid = i.indrelid"
            " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey) where i.indisunique"
            " and c.relnamespace = 'public'::regnamespace"
        ).fetchall()
    with_owner = {table for table, column in keys if column == "owner"}
    assert with_owner >= set(LED_BY_OWNER)


async def test_a_database_without_citus_is_not_distributed(sessions: Sessions) -> None:
    with pytest.raises(StoreError, match="CREATE EXTENSION citus"):
        await sessions.admin.distribute()
    assert await sessions.admin.owners() == []


async def test_a_store_with_data_is_not_distributed(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann, tags=("x",))
    with pytest.raises(InvalidInput, match="data in lane, session, tag, span, facet: export"):
        await sessions.admin.distribute()
    assert (await sessions.get(ann, session.id)).tags == ("x",)


async def test_a_store_in_partitions_is_not_distributed(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database("parted") + "&partitions=2" + CARELESS
    async with connector(url)(url) as store:
        with pytest.raises(InvalidInput, match="partitions="):
            await store.distribute()


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
async def test_only_postgresql_can_be_distributed(url: str, tmp_path: object) -> None:
    address = f"sqlite:///{tmp_path}/h.db" if url == "sqlite" else url
    async with connector(address)(address) as store:
        with pytest.raises(StoreError, match="only PostgreSQL with Citus"):
            await store.distribute()


async def test_tables_that_are_fit_to_be_distributed_serve_as_before(postgres_server: PostgresServer) -> None:
    """All that distributing changes besides spreading the tables."""
    url = postgres_server.create_database("fit", template=TEMPLATE) + CARELESS
    async with await opened(url) as connection:
        await make_fit(connection)
    with psycopg.connect(url, autocommit=True) as database:
        collations = database.execute(
            "select attname, collname from pg_attribute join pg_collation c on c.oid = attcollation"
            " where attrelid = 'fact_mark'::regclass and attname = any(array['owner', 'mark', 'id'])"
        ).fetchall()
        assert dict(collations) == {"owner": "C", "mark": "C", "id": "C"}
        assert database.execute("select count(*) from pg_trigger where not tgisinternal").fetchone() == (0,)
        async with connector(url)(url) as store:
            sessions, who = Sessions(store), Principal(owner="ann")
            session = await sessions.create(who)
            await sessions.append(who, session.id, say("I prefer tea", id="e"))
            await sessions.memory.add(who, [Fact(id="f", at=1, text="prefers tea", session=session.id)])
            database.execute("insert into edits select owner, num, 1, '', '' from session")
            await sessions.erase(who, session.id, "e")
            assert database.execute("select log from edits").fetchall() == []
            database.execute("insert into inbox select owner, num, 1, 'x', '', 0 from session")
            await sessions.delete(who, session.id)
            assert database.execute("select num from inbox").fetchall() == []
            assert await sessions.memory.search(who) == []
