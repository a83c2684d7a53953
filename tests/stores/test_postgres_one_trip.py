"""What PostgreSQL does in one statement, it does as in a transaction: the same is written, read and refused."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from typing import Any

import pglast
import psycopg
import pytest
from msgspec.structs import replace
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH, MAX_CACHED_STATEMENT_PARAMS

from hitherto.errors import HithertoError, LeaseLost
from hitherto.model import LOCAL, Filter, HistoryPage, Principal, Session, Usage
from hitherto.ports import Record, Store, Writer
from hitherto.service import Sessions
from hitherto.stores.postgres import connect, transactions
from hitherto.stores.postgres import store as stores
from hitherto.stores.postgres.one_trip import sole_append
from hitherto.stores.postgres.one_trip.foreseen_reads import FIRST_PAGE, LOG_END
from hitherto.stores.postgres.one_trip.sole_append import APPEND, ARGUMENTS
from hitherto.stores.postgres.pending_rows import INSERT, INSERT_VALUES, UPDATE, UPDATE_VALUES
from tests.support.conversations import said, say, talk
from tests.support.homes import Clock, PostgresHome
from tests.support.statements import problems_of


@pytest.fixture
async def store(postgres_database: PostgresHome) -> AsyncIterator[Store]:
    """By the server's clock, as everywhere but in tests."""
    postgres_database.empty()
    async with connect(postgres_database.url) as opened:
        yield opened


@pytest.fixture
async def sessions(store: Store) -> Sessions:
    return Sessions(store)


@pytest.fixture
def issued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are issued, those that wait for an answer and those that do not."""
    seen: list[str] = []
    for name in ("rows", "queue", "queue_many"):

        def noting(own: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def noted(self: transactions.Statements, statement: str, *given: Any, **how: Any) -> Any:
                seen.append(statement)
                return await own(self, statement, *given, **how)

            return noted

        monkeypatch.setattr(transactions.Statements, name, noting(getattr(transactions.Statements, name)))
    return seen


# Appending


async def test_an_entry_for_a_session_that_was_written_here_last_is_one_statement(
    sessions: Sessions, issued: list[str]
) -> None:
    session = await sessions.create(LOCAL, title="A title", tags=("t",))
    issued.clear()
    for number in range(3):
        assert (await sessions.append(LOCAL, session.id, say("hello"))).message_count == number + 1
    assert issued == [APPEND] * 3


APART_MS = 50_000_000


def full(number: int) -> Any:
    """A message with everything that is added up; they were said on several days."""
    return say(
        f"word{number} alike",
        "assistant" if number % 2 else "user",
        at=Clock().now + number * APART_MS,
        model="m" if number % 2 else None,
        tokens=number,
        usage=Usage(input=1, output=number, cost=0.25 * number),
        meta={"error": number == 3},
    )


async def test_one_statement_leaves_what_a_transaction_leaves(
    store: Store, clock: Clock, postgres_database: PostgresHome, issued: list[str]
) -> None:
    sessions = Sessions(store, now=clock)
    for name in ("alone", "together"):
        await sessions.create(
            LOCAL,
            session_id=name,
            title="T",
            tags=("x",),
            key=f"agent:{name}:telegram:dm:1",
            channel="telegram",
        )
    for number in range(6):
        clock.now = full(number).at
        await sessions.append(LOCAL, "alone", full(number))
        # Two at a time are written in a transaction.
        if number % 2:
            await sessions.append(LOCAL, "together", [full(number - 1), full(number)])
    assert issued.count(APPEND) == 6
    alone, together = [await sessions.get(LOCAL, name) for name in ("alone", "together")]
    own = {"id": "", "key": None, "revision": 0}
    assert replace(alone, **own) == replace(together, **own)
    with psycopg.connect(postgres_database.url) as database:
        for question in (
            "select seq, role, number is null, said, e.total_tokens, e.total_errors, e.total_cost, e.total_bytes,"
            " array_length(tsvector_to_array(words), 1) from entry e join session s on num = log where s.id = %s order by seq",
            "select day, model, messages, tokens, d.cost from day d join session s using (owner, num) where s.id = %s"
            " order by day, model",
            "select order_at, head, total_tokens, total_cost, kind_of_change, heard_at, heard_revision = revision"
            " from session where id = %s",
            "select tag, archived, order_at from tag where id = %s",
        ):
            found = [database.execute(question, (name,)).fetchall() for name in ("alone", "together")]
            assert found[0] == found[1] != []
    assert (await sessions.admin.check(repair=False)).problems == ()
    assert (await sessions.search(LOCAL, "alike word5")).hits[0].snippet == "word5 alike"


async def test_a_lease_is_judged_by_the_server_s_clock_in_one_statement(
    sessions: Sessions, issued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sessions.create(LOCAL, title="T")
    lease = await sessions.leases.acquire(LOCAL, session.id, "me", ttl_ms=60_000)
    issued.clear()
    await sessions.append(LOCAL, session.id, say("mine"), fence=lease.fence)
    assert issued == [APPEND]
    # A program whose clock is wrong must not think that the lease is over.
    monkeypatch.setattr(sole_append, "now_ms", lambda: lease.expires_at + 1)
    await sessions.append(LOCAL, session.id, say("mine too"), fence=lease.fence)
    await sessions.leases.release(LOCAL, session.id, lease.fence)
    issued.clear()
    await sessions.append(LOCAL, session.id, say("anybody's"))
    assert issued == [APPEND]
    # Nor that it is not.
    monkeypatch.setattr(sole_append, "now_ms", lambda: lease.acquired_at)
    with pytest.raises(LeaseLost):
        await sessions.append(LOCAL, session.id, say("mine no more"), fence=lease.fence)
    assert said(await sessions.history(LOCAL, session.id)) == ["mine", "mine too", "anybody's"]


async def test_what_waits_in_an_inbox_comes_first(postgres_database: PostgresHome, clock: Clock) -> None:
    postgres_database.empty()
    async with connect(postgres_database.url, clock) as one, connect(postgres_database.url, clock) as two:
        sessions, other = Sessions(one, now=clock), Sessions(two, now=clock)
        session = await sessions.create(LOCAL, title="T")
        await sessions.leases.acquire(LOCAL, session.id, "me", ttl_ms=1_000)
        assert (await other.append(LOCAL, session.id, say("first"))).place == 1
        clock.advance(2_000)
        await sessions.append(LOCAL, session.id, say("second"))
        assert said(await other.history(LOCAL, session.id)) == ["first", "second"]


def body() -> list[str]:
    """The statements of the function, with its arguments as placeholders."""
    text = files("hitherto.stores.postgres").joinpath("sql/0017_append.sql").read_text(encoding="utf-8")
    arguments = re.findall(
        r"(\w+) (?:bigint|text|bytea|boolean|double precision)[,\n]", text.partition(") RETURNS")[0]
    )
    assert len(arguments) == ARGUMENTS
    assert arguments.index("entry_payload") == APPEND.split(", ").index("%b")
    names = re.compile(rf"\b({'|'.join(arguments)})\b")
    found: list[str] = []

    def look(node: Any) -> None:
        for name, below in node.items() if isinstance(node, dict) else enumerate(node):
            if name == "query":
                found.append(names.sub(r"%(\1)s", below))
            elif isinstance(below, dict | list):
                look(below)

    look(pglast.parse_plpgsql(text))
    return found


def test_every_statement_of_the_function_names_the_owner() -> None:
    on_tables = [each for each in body() if re.match(r"\s*(SELECT|INSERT|UPDATE)\b", each)]
    assert len(on_tables) >= 7
    assert {each: found for each in on_tables if (found := problems_of(each))} == {}


def test_psycopg_need_not_read_the_longest_statements_anew() -> None:
    for statement, values in (
        (APPEND, ARGUMENTS),
        (INSERT, len(INSERT_VALUES)),
        (UPDATE, len(UPDATE_VALUES)),
    ):
        assert values <= MAX_CACHED_STATEMENT_PARAMS
        assert len(statement) <= MAX_CACHED_STATEMENT_LENGTH


# Reading


async def plain(sessions: Sessions) -> Session:
    session = await sessions.create(LOCAL, title="T")
    await talk(sessions, LOCAL, session.id, *map(str, range(7)))
    return session


async def empty(sessions: Sessions) -> Session:
    return await sessions.create(LOCAL)


async def forked(sessions: Sessions) -> Session:
    fork = await sessions.fork(LOCAL, (await plain(sessions)).id)
    await talk(sessions, LOCAL, fork.id, "7")
    return fork


async def compacted(sessions: Sessions) -> Session:
    session = await plain(sessions)
    await sessions.compact(LOCAL, session.id, say("What was said"), keep=2)
    return session


async def erased(sessions: Sessions) -> Session:
    session = await plain(sessions)
    last = (await sessions.history(LOCAL, session.id, last=True, limit=2)).entries[0]
    await sessions.erase(LOCAL, session.id, last.id)
    return session


async def in_a_turn(sessions: Sessions) -> Session:
    session = await plain(sessions)
    await sessions.leases.acquire(LOCAL, session.id, "me")
    await sessions.history(LOCAL, session.id, seen=True)
    return session


KINDS = (plain, empty, forked, compacted, erased, in_a_turn)
WANTED: tuple[dict[str, Any], ...] = (
    {"limit": 3},
    {"limit": 100},
    {"limit": 5, "max_bytes": 300},
    {"limit": 5, "max_bytes": 1},
    {"limit": 4, "view": "conversation"},
    {"limit": 0},
    {"limit": "many"},
)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_end_of_a_history_is_the_same_with_and_without_foresight(
    sessions: Sessions, kind: Callable[[Sessions], Awaitable[Session]], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await kind(sessions)

    async def all_ends() -> list[HistoryPage | str]:
        found: list[HistoryPage | str] = []
        for wanted in WANTED:
            for name in (session.id, "nobody", "\0"):
                try:
                    found.append(await sessions.history(LOCAL, name, last=True, **wanted))
                except HithertoError as error:
                    found.append(error.code)
        return found

    foreseen = await all_ends()
    monkeypatch.setattr(stores, "is_foreseen", lambda _: False)
    assert foreseen == await all_ends()


async def test_the_end_of_a_history_is_read_by_one_statement(sessions: Sessions, issued: list[str]) -> None:
    for kind in (plain, erased, in_a_turn):
        session = await kind(sessions)
        await sessions.history(LOCAL, session.id)  # that it was read is noted once
        issued.clear()
        page = await sessions.history(LOCAL, session.id, last=True, limit=5)
        assert len(page.entries) == 5
        assert issued == [LOG_END]


async def test_a_gap_in_a_log_is_not_passed_over(sessions: Sessions, postgres_database: PostgresHome) -> None:
    session = await plain(sessions)
    with psycopg.connect(postgres_database.url, autocommit=True) as database:
        database.execute("delete from entry where seq = 6")
        database.execute("update entry set crc = null, row_crc = null")
    with pytest.raises(HithertoError, match="1 entries are missing"):
        await sessions.history(LOCAL, session.id, last=True, limit=4)


async def test_the_first_page_of_a_list_is_read_by_one_statement_and_the_walk_goes_on_from_it(
    sessions: Sessions, issued: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [(await sessions.create(LOCAL, session_id=f"s{number}")).id for number in range(7)]
    await sessions.archive(LOCAL, "s1")
    await in_a_turn(sessions)
    issued.clear()
    page = await sessions.find(LOCAL, limit=4)
    assert issued == [FIRST_PAGE]
    await sessions.append(LOCAL, "s2", say("up"))
    rest = await sessions.find(LOCAL, limit=9, cursor=page.cursor)
    seen = {session.id for session in (*page.sessions, *rest.sessions)}
    assert seen >= {*ids} - {"s1"}

    async def lists() -> list[Any]:
        return [
            (await sessions.find(who, given, limit=limit)).sessions
            for who in (LOCAL, Principal(owner="nobody"))
            for given in (None, Filter(subagents=False), Filter(archived="include"), Filter(pinned=True))
            for limit in (1, 50)
        ]

    foreseen = await lists()
    monkeypatch.setattr(stores, "is_foreseen", lambda _: False)
    assert foreseen == await lists()


async def test_texts_that_postgresql_refuses_are_listed_as_they_are(
    store: Store, sessions: Sessions, postgres_database: PostgresHome
) -> None:
    odd = Session(
        id="odd", revision=1, created_at=1, updated_at=1, title="\0 \x1a0000 \ud800 漢", cwd="/\x1a"
    )

    async def add(tx: Writer) -> None:
        await tx.insert(Record(num=0, owner=LOCAL.owner, session=odd, order_at=1))

    await store.write(add)
    assert (await sessions.find(LOCAL)).sessions == (odd,)
    with psycopg.connect(postgres_database.url, autocommit=True) as database:
        written = database.execute("select crc from session").fetchone()
        database.execute("update session set crc = null")  # as older programs left it
        assert (await sessions.find(LOCAL)).sessions == (odd,)
        database.execute("update session set crc = %s, title = 'altered'", written)
    assert (await sessions.find(LOCAL)).sessions == ()
