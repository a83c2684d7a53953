"""What only the SQLite store has: a file with its modes, a writer, migrations, an index in a file of its own."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.errors import AlreadyExists, SchemaTooNew, StoreDamaged, StoreError, StoreFull
from recollect.model import LOCAL, Draft, Text
from recollect.service import Sessions
from recollect.stores.sqlite.connection import fetch, open_file
from recollect.stores.sqlite.migrate import Migration, migrate, shipped
from recollect.stores.sqlite.store import SqliteStore, connect


def said(text: str, role: str = "user") -> Draft:
    return Draft(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]  # tests give only real roles


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
    async with recollect.open(f"sqlite:///{file}") as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("hello"))
        await sessions.search(LOCAL, "hello")
        await sessions.backup(str(file.parent / "copy.db"))
        made = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in [file.parent, *file.parent.iterdir()]
        }
    assert made.keys() >= {"new folder", "sessions.db", "sessions.db-wal", "sessions.db-search", "copy.db"}
    assert {name: mode for name, mode in made.items() if mode & 0o077} == {}


async def test_every_connection_keeps_the_promised_settings(store: SqliteStore) -> None:
    db = store._writer.connection
    asked = ("journal_mode", "synchronous", "secure_delete", "trusted_schema")
    assert [fetch(db, f"PRAGMA {name}")[0][0] for name in asked] == ["wal", 2, 1, 0]


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


async def test_writers_that_come_together_share_one_commit(sessions: Sessions, store: SqliteStore) -> None:
    session = await sessions.create(LOCAL)
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    store._writer.connection.set_commit_hook(count)
    await asyncio.gather(*(sessions.append(LOCAL, session.id, said(str(n))) for n in range(50)))
    assert (await sessions.get(LOCAL, session.id)).message_count == 50
    assert commits <= 3


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


async def test_a_write_cancelled_before_its_turn_is_not_done(sessions: Sessions) -> None:
    session = await sessions.create(LOCAL)
    writing = asyncio.ensure_future(sessions.append(LOCAL, session.id, said("never")))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
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
    assert threads == {"recollect-writer"}


async def test_a_lock_held_by_another_process_delays_a_write_but_not_the_loop(
    sessions: Sessions, file: Path
) -> None:
    session = await sessions.create(LOCAL)
    foreign = open_file(file)
    foreign.execute("BEGIN IMMEDIATE")
    writing = asyncio.ensure_future(sessions.append(LOCAL, session.id, said("patient")))
    for _ in range(50):
        await asyncio.sleep(0.001)  # the loop goes round while the write waits
    assert not writing.done()
    foreign.execute("COMMIT")
    foreign.close()
    await writing
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
    assert (await sessions.doctor()).problems == ()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are my notes, not a database\n" * 200)
    before = file.read_bytes()
    with pytest.raises(StoreDamaged):
        async with recollect.open(f"sqlite:///{file}"):
            pass
    assert file.read_bytes() == before


async def test_a_newer_schema_is_refused_with_a_clear_message(file: Path) -> None:
    async with recollect.open(f"sqlite:///{file}"):
        pass
    db = open_file(file)
    db.execute("INSERT INTO schema_migration VALUES (99, 'future', 0)")
    db.close()
    with pytest.raises(SchemaTooNew, match="newer Recollect"):
        async with recollect.open(f"sqlite:///{file}"):
            pass


def test_a_migration_and_its_record_are_one_transaction(tmp_path: Path) -> None:
    db = open_file(tmp_path / "m.db")
    migrate(db, shipped())
    # Its own statements succeed; what fails is recording it.
    breaking = Migration(2, "0002", "CREATE TABLE extra (a); ALTER TABLE schema_migration RENAME TO gone;")
    with pytest.raises(apsw.Error):
        migrate(db, [*shipped(), breaking])
    tables = {row[0] for row in fetch(db, "SELECT name FROM sqlite_schema")}
    assert "extra" not in tables
    assert "schema_migration" in tables
    db.close()


async def test_two_processes_may_make_the_same_store_at_once(file: Path) -> None:
    async def use() -> str:
        async with recollect.open(f"sqlite:///{file}") as sessions:
            return (await sessions.create(LOCAL)).id

    made = await asyncio.gather(*(asyncio.to_thread(asyncio.run, use()) for _ in range(6)))
    async with recollect.open(f"sqlite:///{file}") as sessions:
        assert {session.id for session in (await sessions.find(LOCAL)).sessions} == set(made)


async def test_a_lost_index_is_made_again_by_the_next_search(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with recollect.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("pomegranate"))
        assert len((await sessions.search(LOCAL, "pomegranate")).hits) == 1
    for part in file.parent.glob("sessions.db-search*"):
        part.unlink()
    async with recollect.open(url) as sessions:
        assert [hit.session.id for hit in (await sessions.search(LOCAL, "pomegranate")).hits] == [session.id]


async def test_doctor_replaces_a_damaged_index(file: Path) -> None:
    url = f"sqlite:///{file}"
    async with recollect.open(url) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, said("quince"))
    for part in file.parent.glob("sessions.db-search-*"):
        part.unlink()
    (file.parent / "sessions.db-search").write_bytes(b"nonsense" * 1000)
    async with recollect.open(url) as sessions:
        with pytest.raises(StoreDamaged):
            await sessions.search(LOCAL, "quince")
        assert "search index: rebuilt" in (await sessions.doctor()).repaired
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
    assert fetch(index, "SELECT rowid FROM doc WHERE doc MATCH 'persimmon'") == []
    index.close()
    assert store._index.is_whole()


async def test_doctor_mends_what_is_derived_and_reports_what_is_lost(
    sessions: Sessions, store: SqliteStore
) -> None:
    session = await sessions.create(LOCAL, tags=["a", "b"])
    await sessions.append(LOCAL, session.id, [said("one"), said("two"), said("three")])
    db = store._writer.connection
    db.execute("DELETE FROM tag WHERE tag = 'a'; UPDATE session SET message_count = 77")
    found = await sessions.doctor(repair=False)
    assert [problem.partition(":")[0] for problem in found.problems] == ["message counts", "tags"]
    mended = await sessions.doctor()
    assert mended.problems == ()
    assert len(mended.repaired) == 2
    assert (await sessions.doctor()).repaired == ()
    assert (await sessions.find(LOCAL, recollect.Filter(tags=("a",)))).sessions[0].message_count == 3
    db.execute("DELETE FROM entry WHERE pos & 16777215 = 2")
    assert (await sessions.doctor()).problems == ("entries behind spans: 1 wrong",)


async def test_a_backup_under_load_is_a_whole_store(sessions: Sessions, tmp_path: Path) -> None:
    session = await sessions.create(LOCAL)
    target = tmp_path / "backup.db"

    async def write() -> int:
        for number in range(200):
            await sessions.append(LOCAL, session.id, said(f"number {number}"))
        return 200

    await sessions.append(LOCAL, session.id, said("before"))
    await asyncio.gather(write(), sessions.backup(str(target)))
    async with recollect.open(f"sqlite:///{target}") as copy:
        page = await copy.history(LOCAL, session.id, limit=1000)
        assert page.total == (await copy.get(LOCAL, session.id)).message_count >= 1
        assert (await copy.doctor()).problems == ()
        assert len((await copy.search(LOCAL, "before")).hits) == 1
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")] == []


async def test_a_backup_never_replaces_a_file(sessions: Sessions, file: Path) -> None:
    before = (await sessions.about())["bytes"]
    with pytest.raises(AlreadyExists):
        await sessions.backup(str(file))
    assert (await sessions.about())["bytes"] == before


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
