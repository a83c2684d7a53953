"""A database whose tables are split by owner, and what an address says about that and about a silent network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from hitherto.errors import AlreadyExists, InvalidInput
from hitherto.model import LOCAL, Draft, Principal, Text
from hitherto.service import Sessions
from hitherto.stores.postgres import connect
from hitherto.stores.postgres.migrate import migrate, migrations
from hitherto.stores.postgres.store import AGAINST_SILENCE, parse_address
from hitherto.stores.postgres.transactions import opened
from tests.support.homes import CARELESS
from tests.support.postgres_server import PostgresServer

_numbers = itertools.count(1)
WHOLE = {"duty", "known_problems", "schema_migration", "store_meta", "token"}
"""Tables that do not belong to owners, or are looked into before the owner is known."""
TABLES = """
select relname, relkind = 'p' from pg_class
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
"""
PARTS = (
    "select relname from pg_class where relispartition and relkind = 'r' and relname like 'entry%' order by 1"
)
OWNERS_IN = "select count(distinct tableoid) from session"
STRANGE_INDEXES = """
select part.relname from pg_inherits i join pg_class part on part.oid = inhrelid join pg_class whole on whole.oid = inhparent
where part.relkind = 'i' and part.relname !~ ('^' || whole.relname || '_p[0-2]$')
"""


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database without tables."""
    name = f"partitions_{next(_numbers)}"
    yield postgres_server.create_database(name) + CARELESS
    postgres_server.drop_database(name)


def say(text: str, entry_id: str | None = None) -> Draft:
    return Draft(role="user", parts=(Text(text=text),), id=entry_id)


def asked(url: str, question: bytes | str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(question.encode() if isinstance(question, str) else question).fetchall()


async def test_a_database_made_by_every_step_in_turn_is_in_parts_throughout(url: str) -> None:
    async with await opened(url) as connection:
        await migrate(connection, migrations()[:1], 3)
    async with connect(url) as store:
        sessions = Sessions(store)
        for number in range(12):
            who = Principal(owner=f"owner{number}")
            await sessions.append(who, (await sessions.create(who)).id, say("hello"))
        assert (await sessions.admin.check(repair=False)).problems == ()
        assert (await sessions.admin.about())["sessions"] == 12
    assert {name for name, is_split in asked(url, TABLES) if not is_split} == WHOLE
    assert [name for (name,) in asked(url, PARTS)] == ["entry_p0", "entry_p1", "entry_p2"]
    assert asked(url, OWNERS_IN) == [(3,)]
    assert asked(url, STRANGE_INDEXES) == []


async def test_what_is_taken_already_is_named_in_parts_too(url: str) -> None:
    async with connect(f"{url}&partitions=3") as store:
        sessions = Sessions(store)
        first = await sessions.create(LOCAL)
        await sessions.append(LOCAL, first.id, say("hello", "e1"))
        with pytest.raises(AlreadyExists, match="the session already has an entry of this id"):
            await sessions.append(LOCAL, first.id, say("again", "e1"))


async def test_the_number_of_parts_is_chosen_once(url: str) -> None:
    async with connect(f"{url}&partitions=2") as store:
        secret = store.secret
    for address in (url, f"{url}&partitions=2"):
        async with connect(address) as store:
            assert store.secret == secret
    with pytest.raises(InvalidInput, match="created with 2 partitions"):
        async with connect(f"{url}&partitions=4"):
            pass


async def test_a_database_without_parts_is_not_taken_for_one_with_them(postgres_database: object) -> None:
    address: str = postgres_database.url  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="without partitions"):
        async with connect(f"{address}&partitions=4"):
            pass


@pytest.mark.parametrize("number", ["", "0", "-1", "1025", "many", "٣"])
def test_a_number_of_parts_that_is_none_is_refused(number: str) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 1024"):
        parse_address(f"postgresql://host/db?partitions={number}")


def test_no_connection_waits_for_a_silent_network_for_ever_unless_the_address_says_so() -> None:
    kept = conninfo_to_dict(parse_address("postgresql://ann@host:1/db?sslmode=disable").conninfo)
    wanted = {name: str(value) for name, value in AGAINST_SILENCE.items()}
    assert kept == {
        "host": "host",
        "port": "1",
        "user": "ann",
        "dbname": "db",
        "sslmode": "disable",
        **wanted,
    }
    own = parse_address(
        "postgresql://host/db?connect_timeout=60&partitions=4&options=-c%20a%3Db&keepalives_idle=90"
    )
    told = conninfo_to_dict(own.conninfo)
    assert (told["connect_timeout"], told["keepalives_idle"], told["options"]) == ("60", "90", "-c a=b")
    assert own.partitions == 4
