"""What only the PostgreSQL store has: migrations and settings of a server, locks, notices, plans, views."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from psycopg import errors
from psycopg_pool.base import AttemptWithBackoff

from hitherto.errors import (
    Conflict,
    HithertoError,
    SchemaTooNew,
    SessionNotFound,
    StoreError,
    StoreFull,
    StoreNotFound,
    StoreUnavailable,
    TooLarge,
)
from hitherto.model import LOCAL, Archived, Draft, Facets, Filter, Principal, Session, Text
from hitherto.ports import Mode, Reader, Record, Store, Writer
from hitherto.service import Sessions
from hitherto.service.history import forks
from hitherto.service.idempotency import expect_revision
from hitherto.stores.postgres import check, connect, list_query, notify, search, transactions
from hitherto.stores.postgres.connection import as_hitherto_error
from hitherto.stores.postgres.migrate import Migration, migrate, migrations
from hitherto.stores.postgres.read_tx import CHANGED, CHANGES, CHATS, REACHING, SILENT_OF_ALL, SILENT_OF_OWNER
from hitherto.stores.postgres.rows import LANES, escaped, restored
from hitherto.stores.postgres.store import ABOUT, PostgresStore
from hitherto.stores.postgres.transactions import CONFIGURE, CONNECTIONS, opened
from hitherto.stores.postgres.write_tx import gaps
from hitherto.values.positions import BEGINNING, covers, numbers_of
from tests.support import waits
from tests.support.homes import CARELESS, TEMPLATE
from tests.support.postgres_server import PostgresServer
from tests.support.waits import arrives

OWNER = LOCAL.owner
_numbers = itertools.count(1)


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database without tables."""
    name = f"postgres_empty_{next(_numbers)}"
    yield postgres_server.create_database(name) + CARELESS
    postgres_server.drop_database(name)


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database with the store's tables and no rows."""
    name = f"postgres_test_{next(_numbers)}"
    yield postgres_server.create_database(name, template=TEMPLATE) + CARELESS
    postgres_server.drop_database(name)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with connect(url) as opened_store:
        yield opened_store


@pytest.fixture
async def sessions(store: Store) -> Sessions:
    return Sessions(store)


@pytest.fixture
async def other(url: str, store: Store) -> AsyncIterator[Sessions]:
    """A second connection, as another process would have."""
    async with connect(url) as opened_store:
        assert opened_store is not store
        yield Sessions(opened_store)


@pytest.fixture
async def database(url: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """A look at the tables, past the store."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


Database = psycopg.AsyncConnection[tuple[Any, ...]]


def say(text: str) -> Draft:
    return Draft(role="user", parts=(Text(text=text),))


async def asked(database: Database, question: str, *params: object) -> list[tuple[Any, ...]]:
    return await (await database.execute(question, params or None)).fetchall()


async def until(database: Database, question: str) -> None:
    """Ask until the answer is yes."""

    async def yes() -> bool:
        return bool((await asked(database, question))[0][0])

    await waits.until(yes, f"a yes to: {question}")


SOMEBODY_WAITS_FOR_A_LOCK = "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock'"
SOMEBODY_LISTENS = """
select count(*) > 0 from pg_stat_activity
where datname = current_database() and state = 'idle' and query like 'SELECT owner, sum(change)%'
"""


# Opening


async def test_programs_that_open_an_empty_database_at_once_share_one_store(empty_database: str) -> None:
    async def secret() -> bytes:
        async with connect(empty_database) as store:
            return store.secret

    secrets = await asyncio.gather(*(secret() for _ in range(4)))
    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32


OLD_ROWS = (
    "INSERT INTO owner (owner, change) VALUES ('local', 3)",
    """INSERT INTO session (
        owner, id, num, revision, created_at, updated_at, cwd, title, title_by, tags, status, archived, pinned, agent_id,
        source, message_count, error_count, bytes, meta, order_at, head, total_tokens, total_errors, total_cost,
        total_bytes, token_count, change, change_kind)
    VALUES
        ('local', 'one', 1, 2, 1, 2, '/a', 'Old', 'user', '["x"]', 'idle', false, true, 'claude-code', 'claude', 1, 0, 63,
         '{"git_branch":"topic"}', 2, 1, 3, 0, 0, 63, 3, 2, 'append'),
        ('local', 'two', 2, 1, 1, 1, NULL, NULL, NULL, NULL, 'idle', true, false, 'mine', NULL, 0, 0, 0, NULL,
         1, 0, 0, 0, 0, 0, NULL, 3, 'create')""",
    "INSERT INTO tag (owner, id, tag, archived, order_at) VALUES ('local', 'one', 'x', false, 2)",
    """INSERT INTO entry (owner, log, seq, id, role, number, total_tokens, total_errors, total_cost, total_bytes, payload)
    VALUES ('local', 1, 1, 'e', 'user', 2, 3, 0, 0, 63, convert_to(
        '{"id":"e","at":2,"role":"user","parts":[{"type":"text","text":"said long ago"}],"tokens":3}', 'UTF8'))""",
    """INSERT INTO span (owner, num, name, ordinal, log, first_seq, kind)
    VALUES ('local', 1, '', 0, 1, 1, 'plain'), ('local', 2, '', 0, 2, 1, 'plain')""",
)

COUNTED_SINCE = 4
RENAMED_SINCE = 8
LANED_SINCE = 11
"""Rows of later schemas have more than these; they come from the one before it."""
OLD_COUNTS = (
    "UPDATE session SET branch = 'topic' WHERE num = 1",
    "INSERT INTO facet (owner, kind, value, sessions) SELECT owner, kind, value, sessions FROM facet_as_it_should_be",
    "INSERT INTO day (owner, num, day, model, messages, tokens, cost) VALUES ('local', 1, 0, '', 1, 3, 0)",
)


@pytest.mark.parametrize("version", range(1, migrations()[-1].version))
async def test_a_database_of_an_earlier_version_is_brought_up_to_date_with_all_that_is_in_it(
    empty_database: str, version: int
) -> None:
    async with await opened(empty_database) as connection:
        await migrate(connection, migrations()[: min(version, LANED_SINCE - 1)])
        for statement in OLD_ROWS if version < COUNTED_SINCE else OLD_ROWS + OLD_COUNTS:
            renamed = (
                statement if version < RENAMED_SINCE else statement.replace("change_kind", "kind_of_change")
            )
            await connection.execute(renamed)
        await migrate(connection, migrations()[:version])
    async with connect(empty_database) as store:
        sessions = Sessions(store)
        assert (await sessions.admin.about())["schema"] == migrations()[-1].version
        one, two = (await sessions.find(LOCAL, Filter(archived="include"))).sessions
        assert (one.title, one.tags, one.message_count, one.branch, one.project) == (
            "Old",
            ("x",),
            1,
            "topic",
            None,
        )
        assert (two.archived, two.branch, two.earlier_cwds) == (True, None, ())
        assert {change.session for change in await sessions.changes.since(LOCAL)} == {"one", "two"}
        assert await sessions.statistics.facets(LOCAL) == Facets(
            total=1, archived=1, pinned=1, agents=(("claude", 1),), tags=(("x", 1),), sources=(("claude", 1),)
        )
        (day,) = (
            await sessions.statistics.overview(LOCAL, since_day="1970-01-01", until_day="1970-01-02")
        ).days
        assert (day.day, day.sessions, day.messages, day.tokens) == ("1970-01-01", 1, 1, 3)
        token, secret = await sessions.tokens.create(LOCAL.owner)
        assert await sessions.tokens.verify(secret) == token
        # The words were not stored by the program of that time, which these rows only imitate.
        assert {told.partition(" ")[2] for told in (await sessions.admin.check(repair=True)).repaired} == {
            "titles were not found by their words",
            "entries were not found by their words",
            "5 rows had none, and have one now",  # checksums
        }
        assert len((await sessions.search(LOCAL, "long ago")).hits) == 1


async def test_a_migration_that_fails_leaves_nothing_of_itself(empty_database: str) -> None:
    version = migrations()[-1].version + 1
    # It works, but that it was applied cannot be recorded.
    broken = Migration(version, "broken", "CREATE TABLE half (x int); ALTER TABLE schema_migration DROP name")
    async with await opened(empty_database) as connection:
        with pytest.raises(errors.UndefinedColumn):
            await migrate(connection, [*migrations(), broken])
        found = await (await connection.execute("select to_regclass('half')::text")).fetchone()
        assert found == (None,)
        assert await migrate(connection, migrations()) == version - 1
        mended = Migration(version, "mended", "CREATE TABLE whole (x int)")
        assert await migrate(connection, [*migrations(), mended]) == version


async def test_a_database_of_a_newer_program_is_refused_and_left_alone(url: str, database: Database) -> None:
    await database.execute("insert into schema_migration (version, name) values (9999, 'tomorrow')")
    await database.execute("update store_meta set value = '9999' where name = 'oldest_writer'")
    with pytest.raises(SchemaTooNew, match="9999"):
        async with connect(url):
            pass
    assert await asked(database, "select max(version) from schema_migration") == [(9999,)]


async def test_a_server_that_loses_commits_is_refused_unless_the_address_asks_for_it(
    url: str,
) -> None:
    assert url.endswith(CARELESS)
    with pytest.raises(StoreUnavailable, match="synchronous_commit"):
        async with connect(url.removesuffix(CARELESS)):
            pass
    async with connect(url):
        pass


async def test_a_database_that_is_not_there_is_unavailable_at_once(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        async with connect(postgres_server.uri("nowhere")):
            pass


async def test_a_server_that_takes_connections_and_never_answers_is_unavailable_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "SECONDS_TO_OPEN", 0.1)
    refused = pytest.raises(StoreUnavailable, match=r"no answer within 0\.1 seconds")
    with socket.create_server(("127.0.0.1", 0)) as silent, refused:
        async with connect(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/x"):
            pass


async def test_a_server_that_was_away_for_long_is_tried_as_often_as_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each attempt of the pool comes twice as long after the one before: the last of these would take ten minutes.
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 0.01)
    monkeypatch.setattr(transactions, "SECONDS_OF_ATTEMPTS", 0.03)
    tried = asyncio.Semaphore(0)

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()
        tried.release()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as absent:
        port = absent.sockets[0].getsockname()[1]
        connections = transactions.pool(f"postgresql://nobody@127.0.0.1:{port}/x?sslmode=disable")
        await connections.open()
        async with waits.within("an attempt of the pool"):
            for _ in range(17):
                await tried.acquire()
        await connections.close()


# Transactions


class Held:
    """A write transaction that holds a session's lock until it is let go."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._has_it = asyncio.Event()
        self._let_go = asyncio.Event()

    async def __aenter__(self) -> Held:
        self._task = asyncio.create_task(self._store.write(self._work))
        await arrives(self._has_it.wait(), "the session's lock")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._let_go.set()
        await self._task

    async def _work(self, tx: Writer) -> None:
        record = await tx.session(OWNER, self._session_id)
        assert record is not None
        await tx.spans(
            OWNER, record.num
        )  # a session that was written here last is locked together with what is read next
        self._has_it.set()
        await arrives(self._let_go.wait(), "leave to let the lock go")
        session = replace(record.session, revision=record.session.revision + 1, status="running")
        await tx.rewrite(replace(record, session=session), "status")


async def test_a_writer_waits_for_the_one_that_holds_the_session_and_then_sees_its_work(
    sessions: Sessions, store: Store, other: Sessions, database: Database
) -> None:
    session = await sessions.create(LOCAL)
    async with Held(store, session.id):
        second = asyncio.create_task(other.append(LOCAL, session.id, say("after")))
        await until(database, SOMEBODY_WAITS_FOR_A_LOCK)
        assert not second.done()
        # Reading goes on meanwhile.
        assert (await other.get(LOCAL, session.id)).revision == 1
    assert (await arrives(second, "the second writer")).revision == 3
    assert (await other.get(LOCAL, session.id)).status == "running"


async def test_cancelled_work_is_undone_and_leaves_every_connection_usable(
    sessions: Sessions, store: Store, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    session = await sessions.create(LOCAL)
    for _ in range(CONNECTIONS + 2):
        async with Held(store, session.id):
            waiting = asyncio.create_task(sessions.append(LOCAL, session.id, say("cancelled")))
            await until(database, SOMEBODY_WAITS_FOR_A_LOCK)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    await asyncio.gather(*(sessions.append(LOCAL, session.id, say("stored")) for _ in range(2 * CONNECTIONS)))
    assert (await sessions.get(LOCAL, session.id)).message_count == 2 * CONNECTIONS
    await until(database, "select count(*) = 0 from pg_stat_activity where state like 'idle in transaction%'")
    # Neither psycopg nor its pool had to mend anything.
    assert caplog.messages == []


async def test_work_that_fails_in_the_middle_leaves_nothing_behind(
    sessions: Sessions, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    session = await sessions.create(LOCAL, title="before", tags=["kept"])
    newest = await sessions.changes.newest(LOCAL)

    async def work(tx: Writer) -> None:
        record = await tx.session(OWNER, session.id)
        assert record is not None
        before = await tx.newest(OWNER)
        await tx.rewrite(replace(record, session=replace(record.session, title="after", tags=())), "rename")
        assert not covers(before, await tx.newest(OWNER))
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        await store.write(work)
    assert await sessions.get(LOCAL, session.id) == session
    assert await sessions.changes.newest(LOCAL) == newest
    assert [found.id for found in (await sessions.find(LOCAL, Filter(tags=("kept",)))).sessions] == [
        session.id
    ]
    assert caplog.messages == []


async def test_after_the_server_has_dropped_all_connections_the_next_call_succeeds(
    sessions: Sessions, database: Database
) -> None:
    session = await sessions.create(LOCAL)
    await asyncio.gather(*(sessions.get(LOCAL, session.id) for _ in range(CONNECTIONS)))
    await database.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where pid <> pg_backend_pid() and datname = current_database()"
    )
    assert await sessions.get(LOCAL, session.id) == session
    await sessions.append(LOCAL, session.id, say("hello"))


DIES_AT_THE_COMMIT = """
create function die() returns trigger language plpgsql as $$
    begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
create constraint trigger dies after update on session deferrable initially deferred
    for each row execute function die()
"""


async def test_a_connection_lost_at_the_commit_says_that_the_outcome_is_unknown(
    sessions: Sessions, store: Store, database: Database
) -> None:
    session = await sessions.create(LOCAL, title="T")
    await database.execute(DIES_AT_THE_COMMIT)
    runs, newest = 0, await sessions.changes.newest(LOCAL)

    async def work(tx: Writer) -> None:
        nonlocal runs
        runs += 1
        record = await tx.session(OWNER, session.id)
        assert record is not None
        await tx.rewrite(record, "noted")

    with pytest.raises(StoreUnavailable, match="may or may not be stored"):
        await store.write(work)
    # What may have been stored is not tried again.
    assert runs == 1
    with pytest.raises(StoreUnavailable, match="may or may not be stored"):
        await sessions.append(LOCAL, session.id, say("one statement"))
    assert await sessions.changes.newest(LOCAL) == newest


async def test_a_reader_whose_connection_is_lost_at_its_end_reads_again(
    sessions: Sessions, store: Store, database: Database
) -> None:
    session = await sessions.create(LOCAL)
    tries = itertools.count(1)

    async def work(tx: Reader) -> tuple[int, Session | None]:
        record = await tx.session(OWNER, session.id)
        this = next(tries)
        if this == 1:
            await database.execute(
                "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
                " where pid <> pg_backend_pid() and datname = current_database()"
            )
        return this, None if record is None else record.session

    assert await store.read(work) == (2, session)


async def test_work_that_meets_a_deadlock_is_run_again(sessions: Sessions, store: Store) -> None:
    ids = [(await sessions.create(LOCAL)).id for _ in range(2)]
    both_hold_one = asyncio.Barrier(2)

    def crossing(first: str, second: str) -> Callable[[Writer], Any]:
        tries = itertools.count()

        async def work(tx: Writer) -> None:
            await tx.session(OWNER, first)
            if next(tries) == 0:
                await arrives(both_hold_one.wait(), "the other writer to hold its first lock")
            record = await tx.session(OWNER, second)
            assert record is not None
            await tx.rewrite(record, "crossed")

        return work

    await asyncio.gather(store.write(crossing(*ids)), store.write(crossing(*reversed(ids))))
    assert [change.kind for change in await sessions.changes.since(LOCAL)] == ["crossed", "crossed"]


async def test_a_transaction_sees_what_it_has_itself_held_back(sessions: Sessions, store: Store) -> None:
    kept = await sessions.create(LOCAL, title="one")

    async def work(tx: Writer) -> None:
        record = await tx.session(OWNER, kept.id)
        assert record is not None
        renamed = replace(record, session=replace(record.session, title="two", tags=("new",)))
        await tx.rewrite(renamed, "rename")
        made = await tx.insert(
            Record(num=0, owner=OWNER, session=replace(kept, id="made", key="k"), order_at=1)
        )
        seen = [await tx.session(OWNER, kept.id), await tx.by_num(OWNER, record.num)]
        assert [found and found.session.title for found in seen] == ["two", "two"]
        again = await tx.session(OWNER, "made")
        assert again == made
        by_key = await tx.by_key(OWNER, "k")
        assert by_key is not None
        assert by_key.num == made.num
        assert [
            each.session.id for each in (await tx.scan(OWNER, Filter(tags=("new",)), None, 9, 9)).records
        ] == [kept.id]
        await tx.bury(made, 5)
        assert await tx.buried(OWNER, "made")

    await store.write(work)
    assert {(change.session, change.kind) for change in await sessions.changes.since(LOCAL)} == {
        (kept.id, "rename"),
        ("made", "delete"),
    }


BY_OTHERS: dict[str, Callable[[Sessions, str], Awaitable[Any]]] = {
    "append": lambda other, id: other.append(LOCAL, id, say("theirs")),
    "rename": lambda other, id: other.rename(LOCAL, id, "Theirs"),
    "archive": lambda other, id: other.archive(LOCAL, id),
    "lease": lambda other, id: other.leases.acquire(LOCAL, id, "them", ttl_ms=60_000),
    "look": lambda other, id: other.history(LOCAL, id, seen=True),
    "live": lambda other, id: other.changes.put_live(LOCAL, id, b"text"),
    "delete": lambda other, id: other.delete(LOCAL, id),
    "make again": lambda other, id: made_again(other, id),
}


async def made_again(other: Sessions, session_id: str) -> None:
    await other.delete(LOCAL, session_id)
    await other.create(LOCAL, session_id=session_id, title="Again")


@pytest.mark.parametrize("size", [1, 2])  # the one statement for an entry, and a transaction
@pytest.mark.parametrize("what", BY_OTHERS)
async def test_what_others_did_to_a_session_is_heeded_by_who_wrote_it_last(
    sessions: Sessions, other: Sessions, what: str, size: int
) -> None:
    session = await sessions.create(LOCAL, title="Ours")
    await sessions.append(LOCAL, session.id, say("ours"))
    twin = await sessions.create(LOCAL, title="Ours")
    await sessions.append(LOCAL, twin.id, say("ours"))

    async def come_to(who: Sessions, id: str) -> Any:
        try:
            done = await who.append(LOCAL, id, [say("ours again")] * size)
        except HithertoError as error:
            return error.code
        kept = await other.get(LOCAL, id)
        return done.message_count, done.revision, kept.title, kept.archived, kept.message_count

    await BY_OTHERS[what](other, session.id)
    await BY_OTHERS[what](other, twin.id)
    # As by somebody who has to read it.
    assert await come_to(sessions, session.id) == await come_to(other, twin.id)


@pytest.mark.parametrize("by", ["one statement", "a transaction"])
async def test_a_refusal_is_not_due_to_what_was_remembered(
    sessions: Sessions, store: Store, other: Sessions, by: str
) -> None:
    session = await sessions.create(LOCAL)
    renamed = await other.rename(LOCAL, session.id, "Theirs")

    async def work(tx: Writer) -> str | None:
        record = await tx.session(OWNER, session.id)
        assert record is not None
        expect_revision(record, renamed.revision)
        return record.session.title

    assert await store.write(work, session.id if by == "one statement" else None) == "Theirs"


async def test_changes_become_visible_in_the_order_of_their_positions(
    sessions: Sessions, other: Sessions, store: Store
) -> None:
    ids = [(await sessions.create(LOCAL)).id for _ in range(4)]
    writers = [
        asyncio.gather(*(each.append(LOCAL, session_id, say(f"{n}")) for n in range(15)))
        for each in (sessions, other)
        for session_id in ids
    ]
    all_done = asyncio.gather(*writers)
    seen = [await sessions.changes.newest(LOCAL)]

    async def read() -> bool:
        async def work(tx: Reader) -> tuple[str, list[str]]:
            return await tx.newest(OWNER), [
                each.position for each in await tx.changes(OWNER, seen[-1], 1_000)
            ]

        newest, positions = await store.read(work)
        assert not any(covers(seen[-1], position) for position in positions)
        seen.append(positions[-1] if positions else newest)
        assert seen[-1] == newest
        return all_done.done() and covers(seen[-1], await sessions.changes.newest(LOCAL))

    await waits.until(read, "all changes to be seen")
    await all_done
    assert sum(numbers_of(seen[-1], LANES)) == len(ids) + 2 * len(ids) * 15


async def test_writers_of_one_owner_in_different_lanes_do_not_wait_for_each_other(
    sessions: Sessions, database: Database
) -> None:
    held, free = [await sessions.create(LOCAL, session_id=name) for name in ("a", "b")]
    async with database.transaction():
        # As a transaction does that has taken its number and not ended yet.
        lane = "(select lane from session where id = %s)"
        await asked(database, f"select 1 from lane where lane = {lane} for update", held.id)
        waiting = asyncio.create_task(sessions.append(LOCAL, held.id, say("waits")))
        await arrives(sessions.append(LOCAL, free.id, say("does not")), "the other writer")
        await arrives(sessions.create(LOCAL, session_id="c", tags=["counted"]), "a new session")
        assert not waiting.done()
    await arrives(waiting, "the first writer")
    assert (await sessions.get(LOCAL, held.id)).message_count == 1


async def test_a_transaction_takes_its_lanes_in_their_order(
    sessions: Sessions, store: Store, database: Database
) -> None:
    made = [(await sessions.create(LOCAL, session_id=name)).id for name in ("a", "b")]
    lanes = dict(await asked(database, "select lane, id from session where id = any(%s)", made))
    low, high = sorted(lanes)

    async def both(tx: Writer) -> None:
        for lane in (high, low):
            record = await tx.session(OWNER, lanes[lane])
            assert record is not None
            await tx.rewrite(record, "noted")

    async with database.transaction():
        await asked(database, "select 1 from lane where lane = %s for update", low)
        waiting = asyncio.create_task(store.write(both))
        await until(database, SOMEBODY_WAITS_FOR_A_LOCK)
        await asked(database, "select 1 from lane where lane = %s for update nowait", high)
    await arrives(waiting, "the transaction")


async def test_forks_made_while_their_sources_are_deleted_keep_every_entry(
    sessions: Sessions, other: Sessions, store: Store
) -> None:
    texts = [f"message {n}" for n in range(20)]
    sources = [await sessions.create(LOCAL) for _ in range(6)]
    for source in sources:
        await sessions.append(LOCAL, source.id, [say(text) for text in texts])

    async def forked(session_id: str) -> list[Session]:
        made = []
        for _ in range(5):
            with contextlib.suppress(SessionNotFound):
                made.append(await sessions.fork(LOCAL, session_id))
        return made

    async def deleted(session_id: str) -> None:
        await other.delete(LOCAL, session_id)

    made, _ = await asyncio.gather(
        asyncio.gather(*(forked(source.id) for source in sources)),
        asyncio.gather(*(deleted(source.id) for source in sources)),
    )
    for fork in itertools.chain(*made):
        page = await sessions.history(LOCAL, fork.id, limit=100)
        assert len(page.raw) == len(texts)
    assert (await store.check(repair=False)).problems == ()


async def test_a_key_that_several_callers_use_for_the_first_time_at_once_does_the_work_once(
    sessions: Sessions, other: Sessions
) -> None:
    made = await asyncio.gather(
        *(each.create(LOCAL, idempotency_key="one") for each in (sessions, other) for _ in range(4))
    )
    assert len({session.id for session in made}) == 1
    assert await sessions.count(LOCAL) == 1


# Text


@pytest.mark.parametrize(
    "text", ["", "plain", "\0", "a\x1ab", "\x1a0000", "\ud800", "\udfff\0\x1a", "漢\x1a001a"]
)
def test_escaped_text_comes_back_the_same(text: str) -> None:
    assert restored(escaped(text)) == text
    assert b"\0" not in escaped(text).encode()


async def test_every_text_of_a_session_comes_back_to_the_character(store: Store) -> None:
    odd = "\0 \ud800 \x1a0000 \x1a '\"\\ %s 漢"
    session = Session(
        id=odd,
        revision=1,
        created_at=1,
        updated_at=1,
        cwd=odd,
        title=odd,
        earlier_titles=(odd,),
        tags=(odd,),
        key=odd,
        agent_id=odd,
        channel=odd,
        parent=odd,
        source=odd,
        meta={odd: odd, "big": 2**80},
    )

    async def add(tx: Writer) -> None:
        await tx.insert(Record(num=0, owner=odd, session=session, order_at=1))

    async def find(tx: Reader) -> list[Record | None]:
        given = Filter(cwd=odd, agent_id=odd, channel=odd, source=odd, tags=(odd,))
        found = (await tx.scan(odd, given, None, 5, 5)).records
        return [await tx.session(odd, odd), await tx.by_key(odd, odd), *found]

    await store.write(add)
    found = await store.read(find)
    assert [record and record.session for record in found] == [session] * 3
    assert await store.owners() == [odd]
    assert (await store.check(repair=False)).problems == ()


async def test_names_too_long_for_an_index_are_refused_and_nothing_is_stored(sessions: Sessions) -> None:
    generator = random.Random(1)
    long = "".join(chr(generator.randrange(0x10000, 0x10FFFF)) for _ in range(450))
    with pytest.raises(TooLarge):
        await sessions.create(Principal(owner=long), session_id=long)
    assert await sessions.count(Principal(owner=long)) == 0


async def test_a_path_longer_than_an_index_entry_can_be_is_found(sessions: Sessions) -> None:
    generator = random.Random(1)
    cwd = "/" + "".join(chr(generator.randrange(0x4E00, 0x9FFF)) for _ in range(4_000))
    session = await sessions.create(LOCAL, cwd=cwd)
    assert (await sessions.find(LOCAL, Filter(cwd=cwd))).sessions == (session,)


# Lists and search


LEADING = {
    "session_list": Filter(),
    "session_cwd": Filter(cwd="/a"),
    "session_agent": Filter(agent_id="a"),
    "session_channel": Filter(channel="a"),
    "session_source": Filter(source="a"),
    "session_status": Filter(status="running"),
    "session_pinned": Filter(pinned=True),
    "tag_list": Filter(tags=("a", "b")),
    "session_ahead": Filter(updated_after=1),
}
MANY_SESSIONS = """
insert into session (owner, id, num, revision, created_at, updated_at, status, archived, pinned, message_count,
    error_count, bytes, order_at, head, total_tokens, total_errors, total_cost, total_bytes, change, kind_of_change,
    cwd, agent_id, channel, source, lane)
select 'local', 'id' || n, n, 1, 0, 0, case when n % 50 = 0 then 'running' else 'idle' end, n % 9 = 0, n % 70 = 0, 0,
    0, 0, n, 0, 0, 0, 0, 0, n, 'create', '/' || chr(97 + n % 5), chr(97 + n % 5), chr(97 + n % 5), chr(97 + n % 5), n % 64
from generate_series(1, 3000) n
"""


@pytest.mark.parametrize("statement", [CHANGES, CHANGED])
async def test_the_feed_is_read_by_an_index_and_no_further_than_it_is_asked(
    database: Database, statement: str
) -> None:
    await database.execute(MANY_SESSIONS)
    await database.execute(
        "insert into lane select owner, lane, max(change) from session group by owner, lane"
    )
    await database.execute(CONFIGURE)
    for analyse in ("select 1", "analyze"):
        await database.execute(analyse)
        given = {"owner": OWNER, "known": [0] * LANES, "limit": 50}
        rows = await (await database.execute(f"explain (analyze, timing off) {statement}", given)).fetchall()
        plan = "\n".join(row[0] for row in rows)
        (scan,) = (line for line in plan.splitlines() if " session_lane on " in line)
        # Of 3,000 sessions in 64 lanes, those of the first lanes: two, and one to see that they end.
        assert scan.endswith("loops=3)")
        assert "Seq Scan" not in plan


async def test_silent_chats_are_found_by_an_index_and_no_others_are_looked_at(database: Database) -> None:
    await database.execute(MANY_SESSIONS)
    await database.execute(
        "update session set channel = 'irc', key = 'agent:main:irc:dm:' || num, heard_at = num, heard_revision = revision"
    )
    await database.execute(CONFIGURE)
    given = {"chat": "directmessage:irc", "before": 4, "heard_at": -1, "last_owner": "", "last_id": ""}
    for analyse in ("select 1", "analyze"):
        await database.execute(analyse)
        for statement in (SILENT_OF_ALL, SILENT_OF_OWNER):
            params = {**given, "limit": 500, "owner": OWNER}
            question = f"explain (analyze, timing off, summary off) {statement}"
            rows = await (await database.execute(question, params)).fetchall()
            plan = "\n".join(row[0] for row in rows)
            assert "session_heard on session" in plan
            assert "rows=3.00" in plan.splitlines()[0]
            assert "Removed by Filter" not in plan
            assert "Sort" not in plan
        rows = await (await database.execute(f"explain (analyze, timing off) {CHATS}", ())).fetchall()
        plan = "\n".join(row[0] for row in rows)
        # The first kind, and one look for the next.
        scans = [line for line in plan.splitlines() if "session_heard on session" in line]
        assert len(scans) == 2
        assert all("rows=1.00" in scan or "rows=0.00" in scan for scan in scans)


async def test_every_list_is_led_by_an_index_even_before_the_tables_were_analysed(database: Database) -> None:
    await database.execute(MANY_SESSIONS)
    await database.execute("insert into tag select owner, id, agent_id, archived, order_at from session")
    await database.execute(CONFIGURE)
    every: tuple[Archived, ...] = ("exclude", "include", "only")
    for (index, given), archived in itertools.product(LEADING.items(), every):
        walk = list_query.listed(OWNER, replace(given, archived=archived), None, 50, 5_000)
        rows = await (await database.execute(f"explain {walk.page}", walk.params)).fetchall()
        plan = "\n".join(row[0] for row in rows)
        assert f" {index} " in plan
        assert "Sort  " not in plan
        assert "Seq Scan" not in plan


async def test_the_doctor_finds_the_sums_of_each_session_by_an_index(database: Database) -> None:
    """Else each session would be looked for among all entries: twice as many would take four times as long."""
    await database.execute(MANY_SESSIONS)
    question = f"explain {check.COUNTERS}"
    rows = await (await database.execute(question, {"owner": OWNER, "most": 100})).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert plan.count("(log = span.log)") == 4  # in each of two tables, at both ends of a span
    assert "CTE Scan" not in plan


async def test_the_sessions_over_a_log_are_found_by_an_index(database: Database) -> None:
    await database.execute(MANY_SESSIONS)
    await database.execute(
        "insert into span select owner, num, '', 0, num, 1, null, 'open', null from session"
    )
    await database.execute("analyze")
    await database.execute(CONFIGURE)
    rows = await (await database.execute(f"explain {REACHING}", (OWNER, 7))).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "(log = " in plan.partition("Index Cond")[2]
    assert "Filter" not in plan


async def test_what_is_told_of_the_store_does_not_count_its_sessions_again(
    sessions: Sessions, store: Store, database: Database
) -> None:
    for name in "abc":
        await sessions.create(LOCAL, session_id=name)
    await sessions.archive(LOCAL, "b")
    await sessions.create(Principal(owner="other"))
    assert (await store.about())["sessions"] == 4
    plan = "\n".join(row[0] for row in await asked(database, f"explain {ABOUT}"))
    assert " on session" not in plan


async def test_a_list_since_a_time_has_what_was_stamped_ahead_of_its_place(store: Store) -> None:
    stamps = {
        "old": (10, 10),
        "new": (50, 50),
        "ahead": (90, 20),
        "archived ahead": (90, 30),
        "ahead too": (91, 50),
    }

    async def add(tx: Writer) -> None:
        for name, (updated, order) in stamps.items():
            session = Session(id=name, revision=1, created_at=1, updated_at=updated, tags=("t",), cwd="/a")
            session = replace(session, archived=name.startswith("archived"))
            await tx.insert(Record(num=0, owner=OWNER, session=session, order_at=order))

    async def find(given: Filter, tx: Reader) -> tuple[list[str], bool]:
        scan = await tx.scan(OWNER, given, None, 9, 9)
        return [record.session.id for record in scan.records], scan.ended

    await store.write(add)
    for given in (Filter(), Filter(tags=("t",)), Filter(cwd="/a")):
        since, upto = replace(given, updated_after=40), replace(given, updated_before=60)
        assert await store.read(partial(find, since)) == (
            ["new", "ahead too", "ahead"],
            True,
        )
        assert await store.read(partial(find, upto)) == (["new", "old"], True)
        everything = replace(since, archived="include")
        assert await store.read(partial(find, everything)) == (
            ["new", "ahead too", "archived ahead", "ahead"],
            True,
        )


async def test_a_search_goes_through_all_blocks_of_documents(
    sessions: Sessions, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEWEST_WALKED", 1)
    monkeypatch.setattr(search, "MOST_WALKED", 1)
    said: list[str] = []
    for number in (1, 2_000, 2_048, 16_384, 20_000, 140_000, 1_048_576, 9_000_000, 40_000_000, 40_000_001):
        await database.execute("select setval('document_number', %s, false)", (number,))
        session = await sessions.create(Principal(owner="ann"))
        said.insert(0, session.id)
        await sessions.append(Principal(owner="ann"), session.id, say("needle in a haystack"))
        await sessions.append(
            Principal(owner="bob"), (await sessions.create(Principal(owner="bob"))).id, say("needle")
        )
    page = await sessions.search(Principal(owner="ann"), '"a haystack" role:user')
    assert [hit.session.id for hit in page.hits] == said
    assert page.cursor is None


def test_ranges_below_a_number_follow_each_other_and_leave_nothing_out() -> None:
    for low in (0, 1, 2_047, 2_048, 2_049, 1 << 20, (1 << 30) + 5):
        reached = low
        for part in search.older(low):
            assert part.high == reached
            assert 0 <= part.low < part.high
            for block in part.blocks:
                bits = search.BLOCKS[block[0]]
                assert int(block[1:]) in range(part.low >> bits, ((part.high - 1) >> bits) + 1)
            reached = part.low
        assert reached == 0


LONG_TEXTS = {
    "one word too often": "again " * 300 + "needle in hay",
    "more words than positions": " ".join(f"w{n}" for n in range(5_000)) + " x" * 14_000 + " needle in hay",
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS.keys())
async def test_a_phrase_is_found_exactly_in_a_text_that_has_more_words_than_positions(
    sessions: Sessions, text: str
) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, [say("a short one"), say(text)])
    assert [hit.session.id for hit in (await sessions.search(LOCAL, '"needle in hay"')).hits] == [session.id]
    assert (await sessions.search(LOCAL, '"hay needle"')).hits == ()


async def test_a_phrase_in_titles_is_counted_exactly(sessions: Sessions, store: Store) -> None:
    for end in ("needle in hay", "hay in needle"):
        session = await sessions.create(LOCAL, title=f"the title {end}")
        earlier = tuple(f"{'again ' * 60}{n} {end}" for n in range(6))

        async def work(tx: Writer, session_id: str = session.id, titles: tuple[str, ...] = earlier) -> None:
            record = await tx.session(OWNER, session_id)
            assert record is not None
            await tx.rewrite(
                replace(record, session=replace(record.session, earlier_titles=titles)), "rename"
            )

        await store.write(work)
    assert await sessions.count(LOCAL, Filter(text='"needle in hay"')) == 1
    assert len((await sessions.find(LOCAL, Filter(text='"needle in hay"'))).sessions) == 1
    assert await sessions.count(LOCAL, Filter(text="needle hay")) == 2


# Waiting


async def waiting_for_more(sessions: Sessions, store: Store) -> asyncio.Task[str]:
    """Somebody who knows all that there is, and waits."""
    newest = await sessions.changes.newest(LOCAL)
    return asyncio.create_task(store.wait(OWNER, newest, 3_600.0))


async def test_a_notice_wakes_who_waits_in_another_process(
    sessions: Sessions, other: Sessions, store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No help from asking now and then.
    monkeypatch.setattr(notify, "POLL_SECONDS", 3_600.0)
    session = await sessions.create(LOCAL)
    waiting = await waiting_for_more(sessions, store)
    await until(database, SOMEBODY_LISTENS)
    await other.append(LOCAL, session.id, say("hello"))
    assert await arrives(waiting, "the change") == await sessions.changes.newest(LOCAL)


async def test_a_change_without_a_notice_is_found_by_asking(
    sessions: Sessions, store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "POLL_SECONDS", 0.01)
    await sessions.create(LOCAL)
    waiting = await waiting_for_more(sessions, store)
    await until(database, SOMEBODY_LISTENS)
    await database.execute("update lane set change = 7")
    assert await arrives(waiting, "the change") == await sessions.changes.newest(LOCAL)


async def test_where_nobody_can_listen_changes_of_others_are_found_by_asking(
    sessions: Sessions, other: Sessions, store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(notify, "LISTEN", "LISTEN ! -- unknown to some databases")
    session = await sessions.create(LOCAL)
    waiting = await waiting_for_more(sessions, store)
    await until(database, SOMEBODY_LISTENS)
    await other.append(LOCAL, session.id, say("hello"))
    assert await arrives(waiting, "the change") == await sessions.changes.newest(LOCAL)


async def test_a_fork_that_is_being_made_while_a_message_is_erased_is_visited_too(
    sessions: Sessions, other: Sessions, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await sessions.create(LOCAL)
    _, message = (await sessions.append(LOCAL, source.id, [say("hello"), say("a secret")])).entries
    sibling = await sessions.fork(LOCAL, source.id)
    made, commit, add_fork = asyncio.Event(), asyncio.Event(), forks._add_fork

    async def add_slowly(*given: Any) -> Session:
        forked = await add_fork(*given)
        made.set()
        await arrives(commit.wait(), "leave to commit")
        return forked

    monkeypatch.setattr(forks, "_add_fork", add_slowly)
    forking = asyncio.create_task(sessions.fork(LOCAL, source.id, new_id="late"))
    await arrives(made.wait(), "the fork")
    erasing = asyncio.create_task(other.erase(LOCAL, sibling.id, message))
    await until(database, SOMEBODY_WAITS_FOR_A_LOCK)
    commit.set()
    await arrives(asyncio.gather(forking, erasing), "both")
    revisions = {session.id: session.revision for session in (await sessions.find(LOCAL)).sessions}
    assert revisions == {source.id: 3, sibling.id: 2, "late": 2}


async def test_who_missed_a_notice_is_woken_though_another_who_waits_has_seen_the_change(
    sessions: Sessions, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "POLL_SECONDS", 0.01)
    await sessions.create(LOCAL)
    now = await sessions.changes.newest(LOCAL)
    told, asleep = itertools.chain([BEGINNING], itertools.repeat(now)), asyncio.Event()

    async def late() -> str:
        asleep.set()
        return next(told)

    async def newest() -> str:
        return now

    missing = asyncio.create_task(store._bell.wait(late, OWNER, BEGINNING, 3_600.0))
    await arrives(asleep.wait(), "the first to look")
    seeing = asyncio.create_task(store._bell.wait(newest, OWNER, now, 3_600.0))
    try:
        assert await arrives(missing, "the change") == now
    finally:
        for task in (missing, seeing):
            task.cancel()


async def test_who_waits_hears_of_changes_again_after_the_server_dropped_the_connection(
    sessions: Sessions, other: Sessions, store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "POLL_SECONDS", 0.01)
    session = await sessions.create(LOCAL)
    waiting = await waiting_for_more(sessions, store)
    await until(database, SOMEBODY_LISTENS)
    await database.execute(
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
        " where datname = current_database() and query like 'SELECT owner, sum(change)%'"
    )
    await until(database, SOMEBODY_LISTENS)
    await other.append(LOCAL, session.id, say("hello"))
    assert await arrives(waiting, "the change") == await sessions.changes.newest(LOCAL)


# Care


DAMAGE = {
    "delete from tag": "sessions were listed under wrong tags",
    "update tag set order_at = 0": "sessions were listed under wrong tags",
    "insert into tag values ('local', 'nobody', 'x', false, 1)": "belonged to no session",
    "delete from facet": "numbers of sessions were wrong",
    "update facet set sessions = 9 where kind = 'tag'": "numbers of sessions were wrong",
    "insert into facet values ('local', 'tag', 'nobody', 0, 1)": "numbers of sessions were wrong",
    "delete from day": "counted on wrong days",
    "update day set tokens = 9": "counted on wrong days",
    "insert into day values ('local', 999, 5, '', 1, 1, 1)": "days belonged to no session",
    "delete from title": "titles were not found",
    "update title set words = ''": "titles were not found",
    "update title set text = 'another'": "titles were not found",
    "update entry set words = null": "entries were not found",
    "update entry set words = words || 'strange'": "entries were not found",
    "insert into entry select owner, 999, seq, id, role, null, 0, 0, 0, 0, payload, null from entry": (
        "nothing explains"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_what_is_derived_is_mended(
    damage: str, sessions: Sessions, store: Store, database: Database
) -> None:
    session = await sessions.create(LOCAL, title="a title", tags=["x", "y"])
    await sessions.append(LOCAL, session.id, say("hello world"))
    assert (await store.check(repair=False)).problems == ()
    await database.execute(damage.encode())
    (problem,) = (await store.check(repair=False)).problems
    assert DAMAGE[damage] in problem
    mended = await sessions.admin.check(repair=True)
    assert mended.problems == ()
    assert DAMAGE[damage] in mended.repaired[0]
    assert (await store.check(repair=False)).problems == ()
    assert [
        found.id for found in (await sessions.find(LOCAL, Filter(tags=("x", "y"), text="title"))).sessions
    ] == [session.id]
    assert [hit.session.id for hit in (await sessions.search(LOCAL, '"hello world"')).hits] == [session.id]
    explained = "select count(*) from entry where log not in (select log from quarantine)"
    assert (await asked(database, explained)) == [(1,)]


LOSSES = {
    "delete from entry where seq = 2": "spans reach entries that are not there",
    "update session set message_count = 9": "counters differ",
    "update session set cost = 9": "counters differ",
    "update session set head = 9": "does not end where it should",
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_what_cannot_be_mended_is_told(
    loss: str, sessions: Sessions, store: Store, database: Database
) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, [say("one"), say("two"), say("three")])
    await database.execute(loss.encode())
    for repair in (False, True):
        told = (await store.check(repair=repair)).problems
        assert any(LOSSES[loss] in each and session.id in each for each in told)


async def test_the_views_show_sessions_to_programs_that_speak_sql(
    sessions: Sessions, database: Database
) -> None:
    first = await sessions.create(LOCAL, key="agent:main", agent_id="main", channel="irc")
    await sessions.append(LOCAL, first.id, [say(text) for text in ("one \0", "two \ud800", "three")])
    await sessions.compact(LOCAL, first.id, Draft(role="system", parts=(Text(text="in short"),)), keep=1)
    await sessions.append(LOCAL, first.id, say("four"))
    second = await sessions.create(LOCAL)
    kept = await sessions.get(LOCAL, first.id)

    shown = await asked(
        database,
        "select session_key, messages #>> '{0,parts,0,text}', messages #>> '{1,parts,0,text}',"
        " messages #>> '{2,parts,0,text}', json_array_length(messages), created_at, updated_at, message_count,"
        " token_count from sessions order by session_key",
    )
    assert sorted(shown) == sorted(
        [
            (second.id, None, None, None, 0, second.created_at, second.updated_at, 0, None),
            ("agent:main", "in short", "three", "four", 3, kept.created_at, kept.updated_at, 3, None),
        ]
    )
    described = "select session_key, agent_id, channel, last_compaction from session_metadata"
    assert set(await asked(database, described)) == {
        (second.id, None, None, None),
        ("agent:main", "main", "irc", kept.last_compaction),
    }


@pytest.mark.parametrize("mode", ["read", "change"])
async def test_a_database_without_tables_stays_as_it_is_unless_a_store_is_to_be_made(
    empty_database: str, mode: Mode
) -> None:
    with pytest.raises(StoreNotFound, match="postgres_empty"):
        async with connect(empty_database, mode=mode):
            pass
    async with await psycopg.AsyncConnection.connect(empty_database) as connection:
        found = await connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert await found.fetchone() == (0,)
    async with connect(empty_database), connect(empty_database, mode=mode) as opened_store:
        assert await opened_store.owners() == []


async def test_there_is_no_backup_file_and_the_error_says_what_to_do(store: Store) -> None:
    with pytest.raises(StoreError, match=r"pg_dump.*hitherto export"):
        await store.backup("copy.db")


async def test_the_store_tells_what_it_is(sessions: Sessions, store: Store) -> None:
    await sessions.create(LOCAL)
    about = await store.about()
    assert (about["kind"], about["sessions"], about["schema"]) == ("postgresql", 1, migrations()[-1].version)
    assert about["bytes"] > 0


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (errors.DiskFull("no space"), StoreFull),
        (errors.DeadlockDetected("cycle"), Conflict),
        (errors.AdminShutdown("going down"), StoreUnavailable),
        (errors.QueryCanceled("too slow"), StoreUnavailable),
        (errors.ReadOnlySqlTransaction("standby"), StoreUnavailable),
        (psycopg.OperationalError("gone"), StoreUnavailable),
        (errors.UndefinedTable("what"), StoreError),
    ],
)
def test_errors_of_the_server_have_a_meaning(error: psycopg.Error, meaning: type[StoreError]) -> None:
    assert type(as_hitherto_error(error)) is meaning


@pytest.mark.parametrize(
    ("reached", "head", "free"),
    [
        ([], 0, []),
        ([], 5, [(1, 5)]),
        ([(1, None)], 5, []),
        ([(3, None)], 5, [(1, 2)]),
        ([(2, 3)], 5, [(1, 1), (4, 5)]),
        ([(4, 9), (1, 2)], 5, [(3, 3)]),
        ([(1, 4), (2, 3), (6, 6)], 8, [(5, 5), (7, 8)]),
        ([(7, None)], 5, [(1, 5)]),
    ],
)
def test_gaps_are_what_no_span_reaches(
    reached: list[tuple[int, int | None]], head: int, free: list[tuple[int, int]]
) -> None:
    assert list(gaps(reached, head)) == free


async def test_closing_ends_what_listens_even_if_a_cancellation_is_lost_on_the_way(url: str) -> None:
    async def deaf() -> None:
        with contextlib.suppress(asyncio.CancelledError):  # as a driver does, now and then
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async with connect(url) as kept:
        assert isinstance(kept, PostgresStore)
        task = kept._bell._tasks["deaf"] = asyncio.ensure_future(deaf())
        await asyncio.wait((task,), timeout=0)
    assert task.cancelled()


async def test_who_waits_for_a_connection_and_is_cancelled_when_one_comes_ends(store: PostgresStore) -> None:
    for pauses in range(12):
        hold, waited = asyncio.Event(), asyncio.Event()

        async def held(_tx: Reader, hold: asyncio.Event = hold, waited: asyncio.Event = waited) -> None:
            waited.set()
            await hold.wait()

        async def quick(_tx: Reader) -> str:
            return "done"

        holders = [asyncio.create_task(store.read(held)) for _ in range(CONNECTIONS)]
        await waited.wait()
        waiting = asyncio.create_task(store.read(quick))
        for _ in range(50):
            await asyncio.sleep(0)
        hold.set()
        for _ in range(pauses):
            await asyncio.sleep(0)
        was_cancelled = waiting.cancel()
        await asyncio.wait([waiting, *holders])
        assert waiting.cancelled() == was_cancelled
