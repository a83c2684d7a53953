"""Databases of other programs are read with all that was committed, and nothing is left beside them."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hitherto.sources.shared import database as databases
from hitherto.sources.shared.database import read_database


def rows(database: apsw.Connection) -> list[int]:
    return [number for (number,) in database.execute("SELECT a FROM t ORDER BY a")]


def beside(path: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in path.parent.iterdir()}


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(tmp_path / "a b?#.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (a)")
    database.execute("INSERT INTO t VALUES (1)")
    yield database
    database.close()


@pytest.fixture
def path(tmp_path: Path, writer: sqlite3.Connection) -> Path:  # noqa: ARG001 - it makes the file
    return tmp_path / "a b?#.db"


def test_what_is_still_in_the_log_is_read(path: Path, writer: sqlite3.Connection) -> None:
    writer.execute("INSERT INTO t VALUES (2)")
    assert path.with_name(path.name + "-wal").stat().st_size
    assert read_database(path, rows) == [1, 2]


def test_a_writer_is_not_kept_waiting_and_its_unfinished_work_not_seen(
    path: Path, writer: sqlite3.Connection
) -> None:
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO t VALUES (2)")
    assert read_database(path, rows) == [1]
    writer.execute("COMMIT")
    assert read_database(path, rows) == [1, 2]


def test_a_database_that_is_locked_is_told_as_such_and_nothing_unfinished_is_read(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "BUSY_MS", 10)
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.close()
    # Locks of a process are its own: only the same library tells them apart within one.
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN EXCLUSIVE; INSERT INTO t VALUES (2)")
    before = beside(path)
    with pytest.raises(OSError, match="cannot be read"):
        read_database(path, rows)
    assert beside(path) == before
    holder.execute("COMMIT")
    holder.close()
    assert read_database(path, rows) == [1, 2]


def test_nothing_is_left_beside_a_database_that_nobody_uses(path: Path, writer: sqlite3.Connection) -> None:
    writer.close()
    before = beside(path)
    assert list(before) == [path.name]
    assert read_database(path, rows) == [1]
    assert beside(path) == before


def test_a_log_that_its_writer_left_is_read_and_its_index_not_touched(
    path: Path, writer: sqlite3.Connection, tmp_path: Path
) -> None:
    writer.execute("INSERT INTO t VALUES (2)")
    left = tmp_path / "left"
    left.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", left / f"a.db{suffix}")
    before = beside(left / "a.db")
    assert len(before) == 3
    assert read_database(left / "a.db", rows) == [1, 2]
    assert beside(left / "a.db") == before


def test_what_is_written_while_it_is_read_as_a_plain_file_is_read_again(
    path: Path, writer: sqlite3.Connection
) -> None:
    writer.close()
    readings: list[list[int]] = []

    def slowly(database: apsw.Connection) -> list[int]:
        if not readings:
            with sqlite3.connect(path) as late:
                late.execute("INSERT INTO t VALUES (2)")
            late.close()
        readings.append(rows(database))
        return readings[-1]

    assert read_database(path, slowly) == [1, 2]
    assert len(readings) == 2


def test_nothing_can_be_written_through_it(path: Path) -> None:
    with pytest.raises(OSError, match="cannot be read"):
        read_database(path, lambda database: database.execute("INSERT INTO t VALUES (3)"))


@pytest.mark.parametrize("data", [b"no database at all", b""])
def test_a_file_that_is_no_database_is_told_as_such(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.db").write_bytes(data)
    with pytest.raises(ValueError, match=r"x\.db is not a readable database"):
        read_database(tmp_path / "x.db", rows)
    assert (tmp_path / "x.db").read_bytes() == data


def test_a_missing_database_is_told_as_such_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_database(tmp_path / "x.db", rows)
    assert list(tmp_path.iterdir()) == []
