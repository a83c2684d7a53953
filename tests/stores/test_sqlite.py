"""What only the SQLite store has: a file with its modes, a writer, migrations, an index in a file of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import resource
import shutil
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

import hitherto
from hitherto.errors import (
    AlreadyExists,
    InvalidCursor,
    SchemaTooNew,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Draft, Facets, Fact, Filter, Text, plain_text
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.stores.sqlite import connection
from hitherto.stores.sqlite.connection import fetch, open_file
from hitherto.stores.sqlite.documents import by_time
from hitherto.stores.sqlite.documents.document import Document
from hitherto.stores.sqlite.migrate import Migration, migrate, shipped
from hitherto.stores.sqlite.read_tx import CHATS, SESSION, SILENT
from hitherto.stores.sqlite.search_index import BATCH, ENTRIES, MANY_WRITES, Done, SearchIndex
from hitherto.stores.sqlite.store import SqliteStore, connect
from hitherto.stores.sqlite.write_tx import MANY_HOT
from hitherto.values.facts import RivalQuery
from hitherto.values.words import parse_words
from tests.support.paths import ROOT
from tests.support.waits import arrives, is_set, until


def said(text: str, role: str = "user", at: int | None = None) -> Draft:
    return Draft(role=role, parts=(Text(text=text),), at=at)  # type: ignore[arg-type]  # tests give only real roles


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "sessions.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqliteStore]:
    async with connect(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture
async def sessions(store: SqliteStore) -> Sessions:
    return Sessions(store)


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
async def test_files_and_folders_are_closed_to_others_whatever_the_umask(file: Path) -> None:
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("hello"))
        await sessions.search(LOCAL, "hello")
        await sessions.admin.backup(str(file.parent / "copy.db"))
        made = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in [file.parent, *file.parent.iterdir()]
        }
    assert made.keys() >= {"new folder", "sessions.db", "sessions.db-wal", "sessions.db-search", "copy.db"}
    assert {name: mode for name, mode in made.items() if mode & 0o077} == {}


async def test_every_connection_keeps_the_promised_settings(store: SqliteStore) -> None:
    asked = ("journal_mode", "synchronous", "secure_delete", "trusted_schema")
    for db in (store._writer.connection, store._reader(), store._index._index(), store._index._reader()):
        assert [fetch(db, f"PRAGMA {name}")[0][0] for name in asked] == ["wal", 2, 1, 0]


async def test_folders_that_exist_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.mkdir

    def strict(path: str, mode: int = 0o777) -> None:
        if os.path.isdir(path):
            raise IsADirectoryError(path)  # what macOS says to mkdir("/")
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", strict)
    file = tmp_path / "a" / "b" / "sessions.db"
    async with hitherto.open(f"sqlite:///{file}"):
        assert file.exists()


async def test_opening_does_not_wait_for_another_process_that_writes(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        session = await sessions.create(LOCAL)
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", 0.1)
    foreign = open_file(file)
    foreign.execute("BEGIN IMMEDIATE")
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert [found.id for found in (await sessions.find(LOCAL)).sessions] == [session.id]
    foreign.execute("ROLLBACK")
    foreign.close()


async def test_an_append_whose_commit_fails_is_not_acknowledged(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    store._writer.connection.set_commit_hook(lambda: True)
    with pytest.raises(StoreError):
        await sessions.append(LOCAL, session.id, said("lost"))
    with pytest.raises(StoreError):
        await asyncio.gather(*(sessions.append(LOCAL, session.id, said("lost too")) for _ in range(3)))
    store._writer.connection.set_commit_hook(None)
    await sessions.append(LOCAL, session.id, said("kept"))
    page = await sessions.history(LOCAL, session.id)
    assert [entry.parts for entry in page.entries] == [(Text(text="kept"),)]


def without_memory(*starts: str) -> Callable[..., bool]:
    """Lets the statements that begin so fail for want of memory."""

    def trace(_: object, statement: str, __: object) -> bool:
        if statement.startswith(starts):
            raise apsw.NoMemError
        return True

    return trace


async def test_a_write_that_could_not_even_be_undone_does_not_block_the_next(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    store._writer.connection.exec_trace = without_memory("COMMIT", "ROLLBACK")
    with pytest.raises(StoreError, match="not enough memory"):
        await sessions.append(LOCAL, session.id, said("lost"))
    store._writer.connection.exec_trace = None
    await sessions.append(LOCAL, session.id, said("kept"))
    page = await sessions.history(LOCAL, session.id)
    assert [entry.parts for entry in page.entries] == [(Text(text="kept"),)]


async def test_a_read_that_could_not_be_ended_does_not_block_the_next(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    store._reader().exec_trace = without_memory("COMMIT", "ROLLBACK")
    with pytest.raises(StoreError, match="not enough memory"):
        await sessions.get(LOCAL, session.id)
    store._reader().exec_trace = None
    await sessions.append(LOCAL, session.id, said("seen"))
    assert (await sessions.get(LOCAL, session.id)).message_count == 1


@pytest.mark.parametrize("disk", [0.0, 1.0], ids=["quick disk", "slow disk"])
async def test_writers_that_come_together_share_one_commit(
    sessions: Sessions, store: SqliteStore, disk: float
) -> None:
    session = await sessions.create(LOCAL)
    store._writer._seconds = disk
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    store._writer.connection.set_commit_hook(count)
    writing = asyncio.gather(*(sessions.append(LOCAL, session.id, said(str(n))) for n in range(50)))
    if disk:
        with store._writer._turn:  # the thread does not begin before all have come
            for _ in range(20):
                await asyncio.sleep(0)
    await arrives(writing, "all writers")
    assert (await sessions.get(LOCAL, session.id)).message_count == 50
    assert commits <= 2


async def test_a_failing_write_undoes_nothing_of_its_neighbours(sessions: Sessions) -> None:
    session = await sessions.create(LOCAL)
    drafts = [Draft(role="user", id=name) for name in ("a", "b", "a", "c")]
    results = await asyncio.gather(
        *(sessions.append(LOCAL, session.id, draft) for draft in drafts), return_exceptions=True
    )
    assert [getattr(result, "code", "stored") for result in results] == [
        "stored",
        "stored",
        "already_exists",
        "stored",
    ]
    page = await sessions.history(LOCAL, session.id)
    assert [entry.id for entry in page.entries] == ["a", "b", "c"]


async def test_an_sql_error_of_one_write_undoes_nothing_of_its_neighbours(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)

    async def mistaken(_: Writer) -> None:
        store._writer.connection.execute("SELECT nothing FROM nowhere")

    results = await asyncio.gather(
        sessions.append(LOCAL, session.id, said("a")),
        store.write(mistaken),
        sessions.append(LOCAL, session.id, said("b")),
        return_exceptions=True,
    )
    assert [isinstance(result, StoreError) for result in results] == [False, True, False]
    assert (await sessions.get(LOCAL, session.id)).message_count == 2


async def test_a_write_that_fails_half_way_undoes_nothing_of_its_neighbours(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)

    async def half(_: Writer) -> None:
        store._writer.connection.execute("UPDATE session SET pinned = 1")
        raise AlreadyExists("half of it is written")

    results = await asyncio.gather(
        sessions.append(LOCAL, session.id, said("a")),
        store.write(half),
        sessions.append(LOCAL, session.id, said("b")),
        return_exceptions=True,
    )
    assert [isinstance(result, AlreadyExists) for result in results] == [False, True, False]
    found = await sessions.get(LOCAL, session.id)
    assert (found.message_count, found.pinned, found.revision) == (2, False, 3)


async def test_a_session_that_grows_is_read_again_only_after_something_else_has_changed(
    sessions: Sessions, store: SqliteStore, file: Path
) -> None:
    session = await sessions.create(LOCAL, title="as it was made")
    await sessions.append(LOCAL, session.id, said("first"))
    read: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        if sql == SESSION:
            read.append(sql)
        return True

    store._writer.connection.exec_trace = note
    await sessions.append(LOCAL, session.id, said("second"))
    assert read == []
    async with hitherto.open(f"sqlite:///{file}") as other:
        await other.rename(LOCAL, session.id, "by another")
        assert (await sessions.append(LOCAL, session.id, said("third"))).revision == 5
        assert len(read) == 1
        assert (await other.get(LOCAL, session.id)).title == "by another"
    lease = await sessions.leases.acquire(LOCAL, session.id, "holder")
    assert (await sessions.append(LOCAL, session.id, said("waits"))).place == 1
    fenced = await sessions.append(LOCAL, session.id, said("fourth"), fence=lease.fence)
    assert fenced.message_count == 4
    assert (await sessions.append(LOCAL, session.id, said("waits too"))).place == 2
    assert (await sessions.admin.check()).problems == ()


async def test_the_index_reads_back_only_what_another_has_written(
    sessions: Sessions, store: SqliteStore, file: Path
) -> None:
    read: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        if sql == ENTRIES:
            read.append(sql)
        return True

    store._index._reader().exec_trace = note
    session = await sessions.create(LOCAL, title="A title")
    await sessions.append(LOCAL, session.id, [said("spoken here"), said("erased here")])
    await sessions.erase(LOCAL, session.id, (await sessions.history(LOCAL, session.id)).entries[1].id)
    assert [hit.entry is None for hit in (await sessions.search(LOCAL, "title")).hits] == [True]
    assert len((await sessions.search(LOCAL, "spoken")).hits) == 1
    assert (await sessions.search(LOCAL, "erased")).hits == ()
    assert read == []
    async with hitherto.open(f"sqlite:///{file}") as other:
        await other.append(LOCAL, session.id, said("elsewhere"))
    await sessions.append(LOCAL, session.id, said("spoken again"))
    assert len((await sessions.search(LOCAL, "elsewhere")).hits) == 1
    assert (await sessions.search(LOCAL, "again")).hits[0].more == 0
    assert (await sessions.admin.check()).problems == ()


async def test_a_task_that_writes_again_and_again_lets_others_run(sessions: Sessions) -> None:
    session = await sessions.create(LOCAL)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    for number in range(300):
        await sessions.append(LOCAL, session.id, said(str(number)))
    beside.cancel()
    assert turns > 1


@pytest.mark.parametrize("disk", [0.0, 1.0], ids=["quick disk", "slow disk"])
async def test_an_interrupted_write_is_undone_and_the_next_one_succeeds(
    sessions: Sessions, store: SqliteStore, disk: float
) -> None:
    class Interrupt(BaseException):
        """Like KeyboardInterrupt, which would end the loop of the tests."""

    session = await sessions.create(LOCAL)
    store._writer._seconds = disk

    async def interrupted(_: Writer) -> None:
        store._writer.connection.execute("UPDATE session SET pinned = 1")
        raise Interrupt

    with pytest.raises(Interrupt):
        await store.write(interrupted)
    await sessions.append(LOCAL, session.id, said("after"))
    found = await sessions.get(LOCAL, session.id)
    assert (found.message_count, found.pinned) == (1, False)


@pytest.mark.parametrize("disk", [0.0, 1.0], ids=["quick disk", "slow disk"])
async def test_a_write_after_closing_is_refused(file: Path, disk: float) -> None:
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        session = await sessions.create(LOCAL)
    sessions.core.store._writer._seconds = disk  # type: ignore[attr-defined]  # of this store
    late = [sessions.append(LOCAL, session.id, said("late")) for _ in range(3)]
    for result in await arrives(asyncio.gather(*late, return_exceptions=True), "the refusals"):
        assert isinstance(result, StoreUnavailable)


async def test_closing_finishes_what_was_submitted_and_refuses_what_comes_meanwhile(file: Path) -> None:
    store = SqliteStore(file, now_ms)
    sessions = Sessions(store)
    session = await sessions.create(LOCAL)
    store._writer._seconds = 1.0
    foreign = open_file(file)
    foreign.execute("BEGIN IMMEDIATE")
    pending = [asyncio.ensure_future(sessions.append(LOCAL, session.id, said(str(n)))) for n in range(3)]
    await until(lambda: not store._writer._jobs.empty() or store._writer._turn.locked(), "something to write")
    closing = asyncio.ensure_future(asyncio.to_thread(store.close))
    await until(lambda: store._writer._closed, "the store to begin to close")
    with pytest.raises(StoreUnavailable):
        await arrives(sessions.append(LOCAL, session.id, said("late")), "the refusal")
    foreign.execute("ROLLBACK")
    foreign.close()
    await arrives(asyncio.gather(*pending), "what was submitted")
    await arrives(closing, "the store to close")
    async with hitherto.open(f"sqlite:///{file}") as again:
        assert (await again.get(LOCAL, session.id)).message_count == 3


async def test_a_write_does_not_go_through_all_owners_that_are_known(
    sessions: Sessions, store: SqliteStore
) -> None:
    class Uncopied(dict[str, int]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError

        keys = __iter__  # type: ignore[assignment]  # neither way

    store._owners = Uncopied()
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, said("hello"))
    assert (await sessions.get(LOCAL, session.id)).message_count == 1
    assert store._owners.get("local") is not None


async def test_many_sessions_that_grow_in_turn_stay_in_the_order_of_lists(file: Path) -> None:
    clock = 1_000_000

    def now() -> int:
        nonlocal clock
        clock += 1_000
        return clock

    async with connect(f"sqlite:///{file}", now) as store:
        sessions = Sessions(store, now=now)
        ids = [(await sessions.create(LOCAL, tags=["tagged"], cwd="/x")).id for _ in range(MANY_HOT + 8)]
        for grown in ids:
            await sessions.append(LOCAL, grown, said("the first one gives a title"))
        order = ids[::-1]
        hottest = 0
        for grown in [*ids[1::2], *ids[::2]]:
            await sessions.append(LOCAL, grown, said("more"))
            order.remove(grown)
            order.insert(0, grown)
            ((hot,),) = fetch(store._reader(), "SELECT count(*) FROM session WHERE hot = 1")
            hottest = max(hottest, hot)
            for given in (hitherto.Filter(), hitherto.Filter(tags=("tagged",)), hitherto.Filter(cwd="/x")):
                assert await listed(sessions, given) == order
        assert hottest == MANY_HOT
        assert (await sessions.admin.check(repair=False)).problems == ()


async def listed(sessions: Sessions, given: hitherto.Filter) -> list[str]:
    page = await sessions.find(LOCAL, given, limit=15)
    found = [session.id for session in page.sessions]
    while page.cursor is not None:
        page = await sessions.find(LOCAL, given, limit=15, cursor=page.cursor)
        found += [session.id for session in page.sessions]
    return found


def work_of(db: apsw.Connection) -> Callable[[], int]:
    """How many hundreds of steps SQLite has made since."""
    ticks = 0

    def tick() -> bool:
        nonlocal ticks
        ticks += 1
        return False

    db.set_progress_handler(tick, 100)
    return lambda: ticks


async def test_collecting_does_not_look_at_what_is_still_reached(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    entries = (await sessions.append(LOCAL, session.id, [said("x") for _ in range(8_000)])).entries
    fork = await sessions.fork(LOCAL, session.id, at=entries[-6])
    work = work_of(store._writer.connection)
    await sessions.delete(LOCAL, session.id)
    assert work() < 100
    db = store._reader()
    assert fetch(db, "SELECT count(*) FROM entry") == [(7_995,)]
    assert fetch(db, "SELECT * FROM garbage") == []
    assert len((await sessions.history(LOCAL, fork.id, limit=10_000)).entries) == 7_995


async def test_keeping_a_file_costs_the_same_however_many_are_kept(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    works = []
    for number in range(300):
        await sessions.transfer.keep_raw(LOCAL, session.id, str(number), b"%d" % number)
        if number in (10, 299):
            work = work_of(store._writer.connection)
            await sessions.transfer.keep_raw(LOCAL, session.id, "0", b"changed %d" % number)
            works.append(work())
    assert works[1] <= works[0] + 2


async def test_a_kept_file_goes_with_the_last_session_that_has_it(
    sessions: Sessions, store: SqliteStore
) -> None:
    def kept() -> int:
        return int(fetch(store._reader(), "SELECT count(*) FROM raw_blob")[0][0])

    one, other = await sessions.create(LOCAL), await sessions.create(LOCAL)
    await sessions.transfer.keep_raw(LOCAL, one.id, "f", b"same")
    await sessions.transfer.keep_raw(LOCAL, other.id, "g", b"same")
    assert kept() == 1
    await sessions.transfer.keep_raw(LOCAL, one.id, "f", b"new")
    assert kept() == 2
    await sessions.delete(LOCAL, other.id)
    assert kept() == 1
    await sessions.delete(LOCAL, one.id)
    assert kept() == 0


async def test_a_write_cancelled_before_its_turn_is_not_done(sessions: Sessions) -> None:
    session = await sessions.create(LOCAL)
    writing = asyncio.ensure_future(sessions.append(LOCAL, session.id, said("never")))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(writing, "the end of the cancelled write")
    await sessions.append(LOCAL, session.id, said("after"))
    assert (await sessions.get(LOCAL, session.id)).message_count == 1


async def test_a_slow_disk_is_never_waited_for_on_the_callers_loop(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    store._writer._seconds = 1.0
    threads = set[str]()

    def note() -> bool:
        threads.add(threading.current_thread().name)
        return False

    store._writer.connection.set_commit_hook(note)
    await sessions.append(LOCAL, session.id, said("elsewhere"))
    assert threads == {"hitherto-writer"}


async def test_a_lock_held_by_another_process_delays_a_write_but_not_the_loop(
    sessions: Sessions, file: Path
) -> None:
    session = await sessions.create(LOCAL)
    foreign = open_file(file)
    foreign.execute("BEGIN IMMEDIATE")
    writing = asyncio.ensure_future(sessions.append(LOCAL, session.id, said("patient")))
    for _ in range(50):
        await asyncio.sleep(0)  # the loop goes round while the write waits
    assert not writing.done()
    foreign.execute("COMMIT")
    foreign.close()
    await arrives(writing, "the write that waited")
    assert (await sessions.get(LOCAL, session.id)).message_count == 1


async def test_a_full_store_says_so_and_goes_on_when_there_is_space_again(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL)
    db = store._writer.connection
    pages = fetch(db, "PRAGMA page_count")[0][0]
    fetch(db, f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(StoreFull):
        await sessions.append(LOCAL, session.id, said("x" * 100_000))
    fetch(db, "PRAGMA max_page_count = 1000000")
    await sessions.append(LOCAL, session.id, said("y" * 100_000))
    assert (await sessions.get(LOCAL, session.id)).message_count == 1
    assert (await sessions.admin.check(repair=True)).problems == ()


async def test_on_a_full_disk_a_session_tells_its_numbers_and_a_reset_that_was_done_is_not_refused(
    sessions: Sessions, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, said("Remember that the fence is green."))
    write, left = store.write, iter([True])

    async def full(*given: Any, **how: Any) -> Any:
        if next(left, False):
            return await write(*given, **how)
        raise StoreFull("no space is left")

    with monkeypatch.context() as filled:
        filled.setattr(store, "write", full)
        assert (await sessions.reset(LOCAL, session.id)).message_count == 0
        assert (await sessions.spending.numbers(LOCAL, [session.id]))[session.id].messages == 1
    assert len(await sessions.checkpoints(LOCAL, session.id)) == 1


def test_a_file_that_cannot_be_opened_is_let_go_at_once(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"no database" * 1_000)
    # Whoever keeps the error keeps what stood where it was raised.
    with pytest.raises(StoreError) as kept:
        open_file(file)
    assert kept.traceback
    assert str(file) not in [db.filename for db in apsw.connections()]


async def test_a_store_that_finds_no_space_when_it_is_opened_says_that_the_disk_is_full(file: Path) -> None:
    async with hitherto.open(f"sqlite:///{file}"):
        pass
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # less than what connections share needs
    try:
        with pytest.raises(StoreFull):
            async with hitherto.open(f"sqlite:///{file}"):
                pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert await sessions.admin.owners() == []


async def test_a_read_that_the_disk_ends_says_that_the_disk_failed(store: SqliteStore) -> None:
    async def fail(tx: Any) -> None:
        fetch(tx._db, "ROLLBACK")  # as SQLite does by itself
        raise apsw.IOError("disk I/O error")

    with pytest.raises(StoreUnavailable, match="the disk failed"):
        await store.read(fail)
    assert await store.owners() == []


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, not a database\n" * 200)
    before = file.read_bytes()
    with pytest.raises(StoreDamaged):
        async with hitherto.open(f"sqlite:///{file}"):
            pass
    assert file.read_bytes() == before


async def test_a_newer_schema_is_refused_with_a_clear_message(file: Path) -> None:
    async with hitherto.open(f"sqlite:///{file}"):
        pass
    db = open_file(file)
    db.execute("INSERT INTO schema_migration VALUES (99, 'future', 0)")
    db.execute("UPDATE store_meta SET value = CAST('99' AS BLOB) WHERE name = 'oldest_writer'")
    db.close()
    with pytest.raises(SchemaTooNew, match="newer Hitherto"):
        async with hitherto.open(f"sqlite:///{file}"):
            pass


OLD_FILE = """
INSERT INTO owner (num, name) VALUES (1, 'local');
INSERT INTO session (
    num, owner, id, revision, created_at, updated_at, active_at, order_at, hot, cwd, title, title_by, tags, status, archived,
    pinned, agent_id, source, message_count, error_count, bytes, meta, head, log_tokens, log_errors, log_cost, log_bytes,
    change, change_kind, title_number, title_words)
VALUES
    (1, 1, 'one', 2, 1, 2, 2, 2, 0, CAST('/a' AS BLOB), CAST('Old' AS BLOB), 'user', CAST('["x"]' AS BLOB), 'idle', 0,
     1, 'claude-code', 'claude', 1, 0, 63, CAST('{"git_branch":"topic"}' AS BLOB), 1, 3, 0, 0, 63, 2, 'append', 1, ' old '),
    (2, 1, 'two', 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL, 'idle', 1,
     0, 'mine', NULL, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 3, 'create', NULL, NULL);
INSERT INTO tag (owner, tag, archived, order_at, id, session) VALUES (1, 'x', 0, 2, 'one', 1);
INSERT INTO entry (pos, owner, number, id, tokens, errors, cost, bytes, payload) VALUES
    (1 << 24 | 1, 1, 2, 'e', 3, 0, 0, 63, CAST(
        '{"id":"e","at":2,"role":"user","parts":[{"type":"text","text":"said long ago"}],"tokens":3}' AS BLOB));
INSERT INTO span (session, name, ord, log, first, last, kind, expands) VALUES
    (1, '', 0, 1, 1, NULL, 'plain', NULL), (2, '', 0, 2, 1, NULL, 'plain', NULL);
"""

COUNTED_SINCE = 3
RENAMED_SINCE = 9
OLD_COUNTS = """
UPDATE session SET branch = 'topic' WHERE num = 1;
INSERT INTO facet (owner, kind, value, sessions) VALUES
    (1, 'count', 'total', 1), (1, 'count', 'archived', 1), (1, 'count', 'pinned', 1), (1, 'agent', 'claude', 1),
    (1, 'tag', 'x', 1), (1, 'source', 'claude', 1);
"""


@pytest.mark.parametrize("version", range(1, shipped()[-1].version))
async def test_a_file_of_an_earlier_version_is_brought_up_to_date_with_all_that_is_in_it(
    tmp_path: Path, version: int
) -> None:
    file = tmp_path / "old.db"
    db = open_file(file)
    migrate(db, shipped()[:version])
    rows = OLD_FILE if version < RENAMED_SINCE else OLD_FILE.replace("change_kind", "kind_of_change")
    db.execute(rows if version < COUNTED_SINCE else rows + OLD_COUNTS)
    db.close()
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert (await sessions.admin.about())["schema"] == shipped()[-1].version
        one, two = (await sessions.find(LOCAL, Filter(archived="include"))).sessions
        assert (one.title, one.tags, one.message_count, one.branch, one.project) == (
            "Old",
            ("x",),
            1,
            "topic",
            None,
        )
        assert (two.archived, two.branch, two.earlier_cwds) == (True, None, ())
        assert len((await sessions.search(LOCAL, "long ago")).hits) == 1
        assert await sessions.statistics.facets(LOCAL) == Facets(
            total=1, archived=1, pinned=1, agents=(("claude", 1),), tags=(("x", 1),), sources=(("claude", 1),)
        )
        (day,) = (
            await sessions.statistics.overview(LOCAL, since_day="1970-01-01", until_day="1970-01-02")
        ).days
        assert (day.day, day.sessions, day.messages, day.tokens) == ("1970-01-01", 1, 1, 3)
        token, secret = await sessions.tokens.create(LOCAL.owner)
        assert await sessions.tokens.verify(secret) == token
        mended = await sessions.admin.check(repair=True)
        assert mended.problems == ()
        assert [done.partition(":")[0] for done in mended.repaired] == ["checksums"]
        again = await sessions.admin.check(repair=True)
        assert (again.problems, again.repaired) == ((), ())


def test_every_step_of_the_schemas_has_a_number_of_its_own() -> None:
    for folder in sorted((ROOT / "src" / "hitherto" / "stores").glob("*/sql")):
        numbers = sorted(int(file.name.partition("_")[0]) for file in folder.glob("*.sql"))
        assert numbers == list(range(1, len(numbers) + 1)), folder


def test_a_migration_and_its_record_are_one_transaction(tmp_path: Path) -> None:
    db = open_file(tmp_path / "m.db")
    migrate(db, shipped())
    # Its own statements succeed; what fails is recording it.
    sql = "CREATE TABLE extra (a); ALTER TABLE schema_migration RENAME TO gone;"
    breaking = Migration(shipped()[-1].version + 1, "breaking", sql)
    with pytest.raises(apsw.Error):
        migrate(db, [*shipped(), breaking])
    tables = {row[0] for row in fetch(db, "SELECT name FROM sqlite_schema")}
    assert "extra" not in tables
    assert "schema_migration" in tables
    db.close()


async def test_what_was_remembered_before_facts_had_marks_is_found_and_replaced_all_the_same(
    file: Path,
) -> None:
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        old = Fact(id="old", at=1, text="The port is 80", agent_id="a", subject="port")
        await sessions.memory.add(LOCAL, [old, Fact(id="new", at=2, text="The port is 81")])
    db = open_file(file)
    db.execute(
        "DELETE FROM fact_mark WHERE id = 'old'; UPDATE fact SET said = NULL, crc = NULL WHERE id = 'old'"
    )
    db.close()
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert [fact.id for fact in await sessions.memory.search(LOCAL, "ports")] == ["new", "old"]
        assert [fact.id for fact in await sessions.memory.search(LOCAL, "ports", agent_id="a")] == ["old"]
        wanted = RivalQuery(agent_id="a", identity_id=None, said=(), subjects=())
        assert await sessions.core.store.read(lambda tx: tx.rivals("local", wanted)) == [old]
        await sessions.memory.add(LOCAL, [replace(old, text="The door")])
        assert [fact.id for fact in await sessions.memory.search(LOCAL, "ports")] == ["new"]
        for fact_id in ("old", "new"):
            assert await sessions.memory.forget(LOCAL, fact_id)
    db = open_file(file)
    assert fetch(db, "SELECT count(*) FROM fact_mark") == [(0,)]
    db.close()


async def test_two_processes_may_make_the_same_store_at_once(file: Path) -> None:
    async def use() -> str:
        async with hitherto.open(f"sqlite:///{file}") as sessions:
            return (await sessions.create(LOCAL)).id

    made = await asyncio.gather(*(asyncio.to_thread(asyncio.run, use()) for _ in range(6)))
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert {session.id for session in (await sessions.find(LOCAL)).sessions} == set(made)


async def test_who_is_refused_while_another_makes_the_log_of_a_new_file_tries_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals, asked = iter([apsw.BusyError("database is locked")] * 3), connection.fetch

    def refused(db: apsw.Connection, sql: str, bound: Any = ()) -> list[Any]:
        if sql == connection.PRAGMAS and (refusal := next(refusals, None)):
            raise refusal
        return asked(db, sql, bound)

    monkeypatch.setattr(connection, "fetch", refused)
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        assert (await sessions.create(LOCAL)).id
    assert next(refusals, None) is None


async def test_a_lost_index_is_made_again_by_the_next_search(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("pomegranate"))
        assert len((await sessions.search(LOCAL, "pomegranate")).hits) == 1
    for part in file.parent.glob("sessions.db-search*"):
        part.unlink()
    async with hitherto.open(url) as sessions:
        assert [hit.session.id for hit in (await sessions.search(LOCAL, "pomegranate")).hits] == [session.id]


async def test_a_restored_backup_is_searched_as_it_is_whatever_the_old_index_holds(
    file: Path, tmp_path: Path
) -> None:
    url, copy = f"sqlite:///{file}", tmp_path / "copy.db"
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("before"))
        await sessions.admin.backup(str(copy))
        await sessions.append(LOCAL, session.id, [said("lost") for _ in range(5)])
        assert len((await sessions.search(LOCAL, "lost")).hits) > 0
    for word in ("gamma", "delta"):  # restored twice, with as many entries or more than the index has seen
        shutil.copyfile(copy, file)
        async with hitherto.open(url) as sessions:
            await sessions.append(LOCAL, session.id, [said(word) for _ in range(6)])
            assert len((await sessions.search(LOCAL, word)).hits) > 0
            assert (await sessions.search(LOCAL, "lost")).hits == ()
            assert len((await sessions.search(LOCAL, "before")).hits) == 1
            assert (await sessions.admin.check(repair=False)).problems == ()
    async with hitherto.open(url) as sessions:
        assert (await sessions.search(LOCAL, "gamma")).hits == ()


async def test_an_older_copy_of_the_file_makes_the_index_begin_anew(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("before"))
    older = shutil.copyfile(file, file.with_name("older.db"))
    async with hitherto.open(url) as sessions:
        await sessions.append(LOCAL, session.id, [said("lost") for _ in range(5)])
        await sessions.search(LOCAL, "lost")
    shutil.copyfile(older, file)
    async with hitherto.open(url) as sessions:
        assert len((await sessions.search(LOCAL, "before")).hits) == 1
        await sessions.append(LOCAL, session.id, said("gamma"))
        assert len((await sessions.search(LOCAL, "gamma")).hits) == 1
        assert (await sessions.admin.check(repair=False)).problems == ()


async def test_an_entry_that_cannot_be_read_hides_no_other(sessions: Sessions, store: SqliteStore) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, [said("broken"), said("innocent")])
    store._writer.connection.execute("UPDATE entry SET payload = x'00' WHERE pos & 16777215 = 1")
    store._index.catch_up()
    found = fetch(store._index._index(), "SELECT count(*) FROM said WHERE said MATCH '\"1\u00b7innocent\"'")
    assert found == [(1,)]
    assert store._index.is_whole()


ALTERED = {
    "UPDATE entry SET payload = CAST(replace(CAST(payload AS TEXT), 'medlar', 'quince') AS BLOB)": "altered entries: 1 wrong",
    "UPDATE entry SET payload = CAST(payload AS TEXT) WHERE pos = 1 << 24 | 1": "altered entries: 1 wrong",
    "UPDATE session SET title = x'ff' WHERE id = 'one'": "altered sessions: 1 wrong",
    "UPDATE session SET revision = 9 WHERE id = 'one'": "altered sessions: 1 wrong",
    "DELETE FROM span WHERE session = 1": "message counts: 1 wrong",
    "UPDATE span SET first = x'ff' WHERE session = 1": "entries behind spans: 1 wrong",
    "UPDATE span SET log = 9 WHERE session = 1": "entries behind spans: 1 wrong",
    "UPDATE entry SET bytes = x'ff' WHERE pos = 1 << 24 | 2": "altered entries: 1 wrong",
    "UPDATE entry SET payload = substr(payload, 1, 6), crc = NULL WHERE pos = 1 << 24 | 2": "altered entries: 1 wrong",
}


@pytest.mark.parametrize("damage", ALTERED)
async def test_what_the_disk_has_altered_is_never_taken_for_what_was_written(
    sessions: Sessions, store: SqliteStore, damage: str
) -> None:
    for name, text in (("one", "medlar"), ("two", "plum")):
        await sessions.create(LOCAL, session_id=name)
        await sessions.append(LOCAL, name, said(text))
    await sessions.append(LOCAL, "one", said("sloe"))
    store._writer.connection.execute(damage)
    with pytest.raises(StoreDamaged):
        await sessions.history(LOCAL, "one", max_bytes=10_000)
    assert [plain_text(entry) for entry in (await sessions.history(LOCAL, "two")).entries] == ["plum"]
    assert "two" in {session.id for session in (await sessions.find(LOCAL)).sessions}
    assert ALTERED[damage] in (await sessions.admin.check(repair=False)).problems


def forget_children(file: Path, page: int, size: int) -> None:
    """Let the root of a table know of two of its pages only."""
    data = bytearray(file.read_bytes())
    count = slice((page - 1) * size + 3, (page - 1) * size + 5)
    assert int.from_bytes(data[count]) > 1
    data[count] = (1).to_bytes(2)
    file.write_bytes(data)


async def test_doctor_mends_nothing_by_what_is_left_of_a_damaged_file(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        for number in range(40):
            await sessions.create(LOCAL, title=f"{number} {'long ' * 90}", tags=["kept"])
    db = open_file(file)
    ((page, size),) = fetch(
        db, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'session'"
    )
    db.close()
    forget_children(file, page, size)
    async with hitherto.open(url) as sessions:
        found = await sessions.admin.check(repair=True)
        assert [told for told in found.problems if told.startswith("integrity: ")]
        assert [told for told in found.problems if told.startswith("tags: ")]
        assert not [told for told in found.repaired if "repaired" in told]
    db = open_file(file)
    assert fetch(db, "SELECT count(*) FROM tag") == [(40,)]
    db.close()


async def test_doctor_tells_of_a_file_that_cannot_even_be_checked(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        await sessions.create(LOCAL)
    db = open_file(file)
    ((page, size),) = fetch(
        db, "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'session'"
    )
    db.close()
    blank_page(file, page, size)
    async with hitherto.open(url) as sessions:
        problems = (await sessions.admin.check(repair=True)).problems
    assert [told for told in problems if told.startswith("integrity: ")]
    assert [told for told in problems if "cannot be checked" in told]


def blank_page(file: Path, page: int, size: int) -> None:
    data = bytearray(file.read_bytes())
    data[(page - 1) * size : page * size] = bytes(size)
    file.write_bytes(data)


async def test_the_background_goes_on_after_any_error(sessions: Sessions, file: Path, tmp_path: Path) -> None:
    await sessions.create(LOCAL)
    db = open_file(file)
    db.execute("INSERT INTO unindex VALUES (1)")
    db.close()
    failed, succeeded = threading.Event(), threading.Event()

    def done(_: Done) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("something that nobody has thought of")
        succeeded.set()

    index = SearchIndex(tmp_path / "another-search", lambda: open_file(file), done)
    for outcome in (failed, succeeded):
        for _ in range(MANY_WRITES):
            index.changed()
        await asyncio.to_thread(is_set, outcome, "the background to try it")
    index.close()


async def test_what_is_removed_in_many_batches_is_all_dropped(sessions: Sessions, store: SqliteStore) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, [said("many") for _ in range(3 * BATCH)])
    store._index.catch_up()
    await sessions.delete(LOCAL, session.id)
    store._index.catch_up()
    assert fetch(store._index._index(), "SELECT count(*) FROM said") == [(0,)]


async def test_doctor_raises_no_alarm_about_what_is_written_meanwhile(
    sessions: Sessions, store: SqliteStore, file: Path
) -> None:
    session = await sessions.create(LOCAL)
    await sessions.append(LOCAL, session.id, [said("one"), said("two")])
    meanwhile = open_file(file)

    def write(_: apsw.Cursor, sql: str, __: object) -> bool:
        if "integrity-check" in sql:
            meanwhile.execute(
                """
                INSERT INTO unindex SELECT title_number FROM session UNION SELECT min(number) FROM entry;
                UPDATE entry SET number = NULL WHERE number = (SELECT min(number) FROM entry);
                UPDATE session SET title_number = 1000, title_words = ' new ';
                """
            )
        return True

    store._index._index().exec_trace = write
    assert store._index.is_whole()
    store._index._index().exec_trace = None
    assert fetch(meanwhile, "SELECT title_number FROM session") == [(1000,)]
    meanwhile.close()


@pytest.mark.parametrize("removal", ["erase", "delete", "rename"])
async def test_no_removed_word_is_left_in_any_file_when_the_store_is_closed(file: Path, removal: str) -> None:
    async with hitherto.open(f"sqlite:///{file}") as sessions:
        session = await sessions.create(LOCAL, title="zqpersimmon")
        appended = await sessions.append(LOCAL, session.id, [said("zqmedlar"), said("kept")])
        await sessions.search(LOCAL, "kept")
        if removal == "erase":
            await sessions.erase(LOCAL, session.id, appended.entries[0])
        elif removal == "rename":
            await sessions.rename(LOCAL, session.id, "plain")
        else:
            await sessions.delete(LOCAL, session.id)
        open_still = open_file(file.with_name(file.name + "-search"))  # so that its log is not simply deleted
    gone = {"erase": [b"qmedlar"], "rename": [], "delete": [b"qmedlar", b"qpersimmon"]}[removal]
    held = {part.name: part.read_bytes() for part in file.parent.iterdir()}
    open_still.close()
    assert "sessions.db-search-wal" in held
    # An earlier title is still shown with the session, but not found any more.
    assert [name for name, data in held.items() for word in gone if word in data] == []


async def test_the_background_purges_and_then_rests(sessions: Sessions, store: SqliteStore) -> None:
    session = await sessions.create(LOCAL)
    appended = await sessions.append(LOCAL, session.id, [said("persimmon"), said("medlar"), said("kept")])
    index = store._index
    for entry, rests in zip(appended.entries, (False, True), strict=False):
        index.catch_up()
        await sessions.erase(LOCAL, session.id, entry)
        index.catch_up()
        assert index._fed().dropped == 1
        pause = index._purge_in_turn()
        assert (pause is not None) == rests
        assert index._fed().dropped == rests
    assert (await sessions.admin.check(repair=True)).problems == ()
    assert index._fed().dropped == 0


async def test_doctor_replaces_a_damaged_index(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("quince"))
    for part in file.parent.glob("sessions.db-search-*"):
        part.unlink()
    (file.parent / "sessions.db-search").write_bytes(b"nonsense" * 1000)
    async with hitherto.open(url) as sessions:
        with pytest.raises(StoreDamaged):
            await sessions.search(LOCAL, "quince")
        assert "search index: rebuilt" in (await sessions.admin.check(repair=True)).repaired
        assert len((await sessions.search(LOCAL, "quince")).hits) == 1


@pytest.mark.parametrize("removal", ["erase", "delete"])
async def test_the_index_holds_no_row_of_what_was_removed(
    sessions: Sessions, store: SqliteStore, file: Path, removal: str
) -> None:
    session = await sessions.create(LOCAL)
    appended = await sessions.append(LOCAL, session.id, [said("persimmon"), said("medlar")])
    assert len((await sessions.search(LOCAL, "persimmon")).hits) == 1
    if removal == "erase":
        await sessions.erase(LOCAL, session.id, appended.entries[0])
    else:
        await sessions.delete(LOCAL, session.id)
    await sessions.search(LOCAL, "medlar")
    index = open_file(file.with_name(file.name + "-search"))
    assert fetch(index, "SELECT rowid FROM said WHERE said MATCH '\"1\u00b7persimmon\"'") == []
    assert bool(fetch(index, "SELECT rowid FROM said WHERE said MATCH '\"1\u00b7medlar\"'")) == (
        removal == "erase"
    )
    index.close()
    assert store._index.is_whole()


async def test_doctor_mends_what_is_derived_and_reports_what_is_lost(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL, tags=["a", "b"])
    await sessions.append(LOCAL, session.id, [said("one"), said("two"), said("three")])
    db = store._writer.connection
    db.execute("DELETE FROM tag WHERE tag = 'a'; UPDATE session SET message_count = 77, crc = NULL")
    found = await sessions.admin.check(repair=False)
    assert [problem.partition(":")[0] for problem in found.problems] == ["message counts", "tags"]
    mended = await sessions.admin.check(repair=True)
    assert mended.problems == ()
    assert [done.partition(":")[0] for done in mended.repaired] == ["message counts", "tags", "checksums"]
    assert (await sessions.admin.check(repair=True)).repaired == ()
    assert (await sessions.find(LOCAL, hitherto.Filter(tags=("a",)))).sessions[0].message_count == 3
    db.execute("DELETE FROM entry WHERE pos & 16777215 = 2")
    assert (await sessions.admin.check(repair=True)).problems == ("entries behind spans: 1 wrong",)


MISCOUNTS = {
    "UPDATE facet SET sessions = sessions + 1 WHERE kind = 'tag'": "numbers of sessions: ",
    "DELETE FROM facet": "numbers of sessions: ",
    "INSERT INTO facet VALUES (1, 'tag', 'nobody', 1)": "numbers of sessions: ",
    "UPDATE day SET messages = 9": "days: 1 ",
    "DELETE FROM day": "days: 1 ",
    "INSERT INTO day VALUES (1, 5, 999, '', '', NULL, 1, 1, 1)": "days: 1 ",
    "UPDATE day SET project = 'another'": "days: 1 ",
}


@pytest.mark.parametrize("damage", MISCOUNTS)
async def test_doctor_counts_anew_what_is_counted_wrong(
    sessions: Sessions, store: SqliteStore, damage: str
) -> None:
    session = await sessions.create(LOCAL, tags=["a", "b"], project="p")
    await sessions.append(LOCAL, session.id, [said("one"), said("two")])
    at = "2020-01-01", "2030-01-01"
    before = (
        await sessions.statistics.facets(LOCAL),
        (await sessions.statistics.overview(LOCAL, since_day=at[0], until_day=at[1])).days,
    )
    assert (await sessions.admin.check(repair=False)).problems == ()
    db = store._index._index() if " day" in damage else store._writer.connection
    db.execute(damage)
    (problem,) = (await sessions.admin.check(repair=False)).problems
    assert problem.startswith(MISCOUNTS[damage])
    (mended,) = (await sessions.admin.check(repair=True)).repaired
    assert mended.startswith(MISCOUNTS[damage])
    assert (await sessions.admin.check(repair=False)).problems == ()
    after = await sessions.statistics.overview(LOCAL, since_day=at[0], until_day=at[1])
    assert (await sessions.statistics.facets(LOCAL), after.days) == before


async def test_a_day_with_many_sessions_is_listed_like_any_other(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(store, now=itertools.count(1_750_000_000_000).__next__)
    ids = []
    for number in range(30):
        session = await sessions.create(LOCAL, project="p" if number % 3 else "q")
        ids.append(session.id)
        if number % 2:
            await sessions.append(LOCAL, session.id, said(str(number)))
    (day,) = (await sessions.statistics.overview(LOCAL, since_day="2020-01-01", until_day="2030-01-01")).days
    pages: list[list[str]] = []
    for few in (100, 5):
        monkeypatch.setattr("hitherto.stores.sqlite.read_tx.FEW_ON_A_DAY", few)
        for given in (Filter(day=day.day), Filter(day=day.day, project="p")):
            found, cursor = list[str](), None
            while True:
                page = await sessions.find(LOCAL, given, cursor=cursor, limit=4)
                found += [session.id for session in page.sessions]
                if (cursor := page.cursor) is None:
                    break
            pages.append(found)
    assert pages[0] == ids[1::2][::-1]
    assert pages[:2] == pages[2:]


async def test_a_backup_under_load_is_a_whole_store(sessions: Sessions, tmp_path: Path) -> None:
    session = await sessions.create(LOCAL)
    target = tmp_path / "backup.db"

    async def write() -> int:
        for number in range(200):
            await sessions.append(LOCAL, session.id, said(f"number {number}"))
        return 200

    await sessions.append(LOCAL, session.id, said("before"))
    await asyncio.gather(write(), sessions.admin.backup(str(target)))
    async with hitherto.open(f"sqlite:///{target}") as copy:
        page = await copy.history(LOCAL, session.id, limit=1000)
        assert page.total == (await copy.get(LOCAL, session.id)).message_count >= 1
        assert (await copy.admin.check(repair=True)).problems == ()
        assert len((await copy.search(LOCAL, "before")).hits) == 1
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


async def test_a_backup_is_durable_under_its_name(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, bool]] = []
    target, sync = tmp_path / "copies" / "backup.db", os.fsync

    def noting(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, target.exists()))
        sync(descriptor)

    target.parent.mkdir()
    monkeypatch.setattr(os, "fsync", noting)
    await sessions.admin.backup(str(target))
    # First the file, and after the renaming its folder.
    assert synced == [(target.stat().st_ino, False), (target.parent.stat().st_ino, True)]


async def test_a_backup_never_replaces_a_file(sessions: Sessions, file: Path) -> None:
    before = (await sessions.admin.about())["bytes"]
    with pytest.raises(AlreadyExists):
        await sessions.admin.backup(str(file))
    assert (await sessions.admin.about())["bytes"] == before


async def test_the_plain_views_show_sessions_as_the_schema_of_old(sessions: Sessions, file: Path) -> None:
    keyed = await sessions.create(LOCAL, key="agent:main:main", agent_id="main", channel="gateway")
    plain = await sessions.create(LOCAL)
    for number in range(4):
        await sessions.append(LOCAL, keyed.id, said(f"m{number}\0"))
    await sessions.compact(LOCAL, keyed.id, said("summary", "system"), keep=1)
    db = open_file(file)
    rows = {row[0]: row for row in fetch(db, "SELECT * FROM sessions")}
    names = [row[1] for row in fetch(db, "PRAGMA table_info(sessions)")]
    assert names == ["session_key", "messages", "created_at", "updated_at", "message_count", "token_count"]
    messages = json.loads(rows["agent:main:main"][1])
    assert [message["parts"][0]["text"] for message in messages] == ["summary", "m3\0"]
    assert rows["agent:main:main"][4] == 2
    assert json.loads(rows[plain.id][1]) == []
    metadata = {row[0]: row[1:] for row in fetch(db, "SELECT * FROM session_metadata")}
    assert metadata["agent:main:main"][:2] == ("main", "gateway")
    assert metadata["agent:main:main"][2] == (await sessions.get(LOCAL, keyed.id)).last_compaction
    db.close()


async def test_other_tools_open_the_file_and_read_every_view(sessions: Sessions, file: Path) -> None:
    session = await sessions.create(LOCAL)
    for number in range(3):
        await sessions.append(LOCAL, session.id, said(f"m{number}"))
    with contextlib.closing(sqlite3.connect(file)) as db:  # Python's own, which is older than ours
        views = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        assert set(views) >= {"sessions", "session_metadata"}
        for name in views:
            assert len(db.execute(f'SELECT * FROM "{name}"').fetchall()) == 1
        messages = json.loads(db.execute("SELECT messages FROM sessions").fetchone()[0])
    assert [message["parts"][0]["text"] for message in messages] == ["m0", "m1", "m2"]


async def test_two_connections_never_give_the_same_number(sessions: Sessions, file: Path) -> None:
    async with hitherto.open(f"sqlite:///{file}") as other:
        session = await sessions.create(LOCAL)
        for turn in range(6):
            writer = (sessions, other)[turn % 2]
            await writer.append(LOCAL, session.id, said(f"turn {turn}"))
            await writer.create(LOCAL, title=f"made in turn {turn}")
        db = open_file(file)
        numbers = [
            row[0] for row in fetch(db, "SELECT number FROM entry UNION ALL SELECT title_number FROM session")
        ]
        changes = [row[0] for row in fetch(db, "SELECT change FROM session ORDER BY change")]
        db.close()
    known = [number for number in numbers if number is not None]
    assert len(known) == len(set(known)) == 6 + 7
    assert len(changes) == len(set(changes))
    assert len((await sessions.search(LOCAL, "turn")).hits) == 7


def test_keys_of_moments_that_many_share_are_found_with_few_statements() -> None:
    index = apsw.Connection(":memory:")
    index.execute(by_time.SCHEMA)
    asked: list[str] = []
    given: list[int] = []
    for first in range(0, 3_000, 300):
        documents = [
            Document(owner=1, number=first + step, pos=-1, at=(first + step) // 10, kind="user", text="x")
            for step in range(300)
        ]
        index.exec_trace = lambda _, statement, __: asked.append(statement) or True  # type: ignore[func-returns-value]
        by_time.add(index, documents)
        index.exec_trace = None
        given += sorted(document.number for document in documents)
    assert [number for (number,) in index.execute("select number from place order by key")] == given
    looked = [statement for statement in asked if statement.startswith("SELECT") or "NOT EXISTS" in statement]
    assert len(looked) <= 3 * len(given)


EARLIER_INDEX = """
DROP TABLE said; DROP TABLE place; DROP TABLE crowded;
CREATE VIRTUAL TABLE doc USING fts5 (own, text, content = '', contentless_delete = 1, tokenize = 'ascii');
UPDATE fed SET upto = 0; DELETE FROM day;
PRAGMA user_version = 4;
"""
"""What makes the index one of an earlier version, which has nothing in it yet."""


async def test_an_index_of_an_earlier_version_is_searched_until_the_new_order_is_made(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        made = [await sessions.create(LOCAL, title="Other") for _ in range(4)]
        for age, session in zip((2, 0, 3, 1), made, strict=True):
            await sessions.append(LOCAL, session.id, [said("quince", at=1_000_000 - 1_000 * age)] * 400)
        await sessions.search(LOCAL, "quince")
    index = open_file(file.with_name(file.name + "-search"))
    index.execute(EARLIER_INDEX)
    index.close()
    async with connect(url) as store:
        assert isinstance(store, SqliteStore)
        sessions = Sessions(store)
        store._index._closing.set()  # the background rests
        (first, *_), cursor = await page_of(sessions, "quince", 1)
        assert first == made[3].id  # what was stored last
        assert (await sessions.admin.about())["unordered"] == await sessions.admin.unordered() == 1604
        assert store._index._rebuild_step()
        assert (await sessions.search(LOCAL, "quince")).unordered == 600
        assert (await page_of(sessions, "quince", 4))[0] == [session.id for session in reversed(made)]
        newest = await sessions.append(LOCAL, made[2].id, said("medlar"))
        assert len((await sessions.search(LOCAL, "medlar")).hits) == 1
        await sessions.erase(LOCAL, made[2].id, newest.entries[0])
        store._index.catch_up()
        assert await sessions.admin.unordered() == 0
        assert (await page_of(sessions, "quince", 4))[0] == [made[age].id for age in (1, 3, 0, 2)]
        assert (await sessions.search(LOCAL, "medlar")).hits == ()
        with pytest.raises(InvalidCursor):
            await sessions.search(LOCAL, "quince", limit=1, cursor=cursor)
        assert (await sessions.admin.check(repair=False)).problems == ()
        assert fetch(store._index._index(), "SELECT name FROM sqlite_schema WHERE name = 'doc'") == []


async def test_the_background_makes_the_new_order(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with hitherto.open(url) as sessions:
        made = [await sessions.create(LOCAL, title="Other") for _ in range(3)]
        for at, session in zip((7_000, 9_000, 8_000), made, strict=True):
            await sessions.append(LOCAL, session.id, said("quince", at=at))
        await sessions.search(LOCAL, "quince")
    index = open_file(file.with_name(file.name + "-search"))
    index.execute(EARLIER_INDEX)
    index.close()
    async with connect(url) as store:
        assert isinstance(store, SqliteStore)
        sessions = Sessions(store)
        await sessions.search(LOCAL, "quince")

        async def is_done() -> bool:
            return not await sessions.admin.unordered()

        await until(is_done, "the background to put the documents in order")
        assert (await page_of(sessions, "quince", 3))[0] == [made[age].id for age in (1, 2, 0)]


async def page_of(sessions: Sessions, query: str, limit: int) -> tuple[list[str], str | None]:
    page = await sessions.search(LOCAL, query, limit=limit)
    return [hit.session.id for hit in page.hits], page.cursor


async def test_many_messages_of_one_moment_have_a_place_each(sessions: Sessions, store: SqliteStore) -> None:
    session = await sessions.create(LOCAL, title="Other")
    for _ in range(3):
        await sessions.append(LOCAL, session.id, [said("quince", at=5_000)] * 700)
        store._index.catch_up()
    later = await sessions.append(LOCAL, session.id, [said("quince", at=5_000 + 10_000)])
    (hit,) = (await sessions.search(LOCAL, "quince")).hits
    assert hit.entry == later.entries[0]
    assert (
        len(await store.read(lambda tx: tx.matches(LOCAL.owner, parse_words("quince"), None, None, 9_999)))
        == 2_101
    )
    assert store._index.is_whole()


@pytest.mark.usefixtures("store")
async def test_silent_chats_are_found_by_an_index_from_kind_to_kind(file: Path) -> None:
    database = open_file(file)
    bound = dict.fromkeys(("chat", "before", "heard_at", "last_owner", "last_id", "owner", "limit"))
    plans = {
        statement: [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", given)]
        for statement, given in ((SILENT, bound), (CHATS, ()))
    }
    database.close()
    assert "SEARCH s USING INDEX session_heard (<expr>=? AND heard_at>? AND heard_at<?)" in plans[SILENT] or (
        "SEARCH s USING INDEX session_heard (<expr>=? AND (heard_at,owner,id)>(?,?,?) AND heard_at<?)"
        in plans[SILENT]
    )
    assert not any("TEMP B-TREE" in line for plan in plans.values() for line in plan)
    assert any("session_heard (<expr>>?)" in line for line in plans[CHATS])
