"""Copying what can be read of a damaged file into a new one. The damaged file stays as it is."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from hitherto.errors import AlreadyExists, SchemaTooNew, StoreDamaged, StoreNotFound
from hitherto.ports import Health, Now
from hitherto.stores.sqlite.check import ALTERED, END_LEASES, FUNCTIONS
from hitherto.stores.sqlite.connection import fetch, open_file, sync_folder, transaction, translate_errors
from hitherto.stores.sqlite.migrate import RENAMED, migrate, shipped, version
from hitherto.stores.sqlite.read_only import open_read_only
from hitherto.stores.sqlite.rows import READ, record_of
from hitherto.stores.sqlite.store import SqliteStore

DERIVED = ("schema_migration", "tag", "facet", "unindex", "restate", "known_problems")
"""Not copied: what is made anew from the rest."""
TABLES = "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
COLUMNS = "SELECT name FROM pragma_table_info(?)"
SECRET = "SELECT value FROM store_meta WHERE name = 'secret'"
BATCH = 500
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
DAMAGE = (apsw.CorruptError, apsw.SQLError, apsw.IOError, UnicodeDecodeError)

DROP_ALTERED = {
    "messages": f"DELETE FROM entry WHERE pos IN (SELECT e.pos {ALTERED['entries']})",
    "checkpoints": f"DELETE FROM checkpoint WHERE (session, ord) IN (SELECT r.session, r.ord {ALTERED['checkpoints']})",
    "facts": f"DELETE FROM fact WHERE (owner, id) IN (SELECT f.owner, f.id {ALTERED['facts']})",
    "waiting messages": f"DELETE FROM inbox WHERE (session, ord) IN (SELECT r.session, r.ord {ALTERED['waiting messages']})",
    "tokens": f"DELETE FROM token WHERE id IN (SELECT t.id {ALTERED['tokens']})",
    "raw copies": f"DELETE FROM raw_copy WHERE (session, name) IN (SELECT r.session, r.name {ALTERED['raw copies']})",
}
DROP_BLOBS = "DELETE FROM raw_blob WHERE digest NOT IN (SELECT digest FROM raw_copy)"
ALTERED_LISTS = f"SELECT DISTINCT r.name {ALTERED['spans']} AND r.session = ?"
DISTRUST_LIST = "UPDATE span SET crc = NULL WHERE session = ? AND name = ?"
SESSIONS = f"SELECT o.name, {', '.join(f's.{name}' for name in READ)} FROM session AS s JOIN owner AS o ON o.num = s.owner"
DISTRUST = """
UPDATE session SET crc = NULL, place_crc = NULL, read_at = NULL, read_crc = NULL,
    lease_holder = NULL, lease_fence = NULL, lease_acquired = NULL, lease_expires = NULL, lease_crc = NULL
WHERE num = ?
"""
DROP_SESSION = "DELETE FROM session WHERE num = ?"
LISTS = "SELECT DISTINCT name FROM span WHERE session = ?"
SPANS = "SELECT log, first, last, kind, expands FROM span WHERE session = ? AND name = ? ORDER BY ord"
RUNS = """
SELECT min(pos) & 16777215, max(pos) & 16777215
FROM (
    SELECT pos, pos - row_number() OVER (ORDER BY pos) AS run FROM entry
    WHERE pos BETWEEN ? AND ? AND owner = (SELECT owner FROM session WHERE num = ?)
)
GROUP BY run ORDER BY run
"""
DROP_LIST = "DELETE FROM span WHERE session = ? AND name = ?"
PUT_SPAN = (
    "INSERT INTO span (session, name, ord, log, first, last, kind, expands) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
COUNTS = (
    "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM entry), (SELECT count(*) FROM quarantine)"
)


class Recovered(NamedTuple):
    """How much the new store has, and what is missing in it or to be looked at, in words."""

    sessions: int
    messages: int
    missing: list[str]


def recover(path: Path, target: Path, now: Now) -> Recovered:
    """Copy what can be read of the store at `path` into a new one. Raises `StoreDamaged` if nothing can be."""
    if target.exists():
        raise AlreadyExists(f"{target} already exists: choose another name")
    if not path.is_file():
        raise StoreNotFound(str(path))
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        missing = _copy(path, part)
        health = asyncio.run(_checked(part, now))
        db = open_file(part)
        try:
            sessions, messages, aside = fetch(db, COUNTS)[0]
        finally:
            db.close()
        if aside:
            missing.append(
                f"messages without a session are in quarantine, {aside} logs: see `hitherto doctor --quarantine`"
            )
        part.rename(target)
        sync_folder(target.parent)
        return Recovered(sessions, messages, missing + [f"still wrong: {each}" for each in health.problems])
    finally:
        for suffix in ("", "-wal", "-shm", "-search", "-search-wal", "-search-shm"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


async def _checked(part: Path, now: Now) -> Health:
    """Make anew what is derived."""
    store = SqliteStore(part, now)
    try:
        return await store.check(repair=True)
    finally:
        store.close()


def _copy(path: Path, part: Path) -> list[str]:
    """Copy all tables and mend what hangs together; returns what is missing."""
    missing: list[str] = []
    with translate_errors(path):
        old = open_read_only(path)
        try:
            if (found := version(old)) > (known := shipped()[-1].version):
                raise SchemaTooNew(found, known)
            if found == 0:
                raise StoreDamaged(f"{path.name} has no tables that can be read: go back to a backup")
            new = open_file(part)
            try:
                migrate(new, shipped())
                _copy_tables(old, new, missing)
                with transaction(new):
                    _mend(new, missing)
            finally:
                new.close()
        finally:
            old.close()
    return missing


def _copy_tables(old: apsw.Connection, new: apsw.Connection, missing: list[str]) -> None:
    for table, without_rowid in fetch(new, TABLES):
        if table in DERIVED:
            continue
        known = {row[0] for row in fetch(old, COLUMNS, (table,))}
        names = [row[0] for row in fetch(new, COLUMNS, (table,))]
        called = {name: name if name in known else RENAMED.get((table, name)) for name in names}
        columns = {name: old_name for name, old_name in called.items() if old_name in known}
        if not columns:
            continue  # it came with a later version
        named = ", ".join(map(str, columns.values()))
        put = (
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        )
        rows = _by_key(old, table, named, missing) if without_rowid else _by_rowid(old, table, named, missing)
        with transaction(new):
            for row in rows:
                if table != "store_meta" or row[0] == "secret":
                    new.execute(put, row)


def _by_rowid(old: apsw.Connection, table: str, named: str, missing: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows in the order of their number, past those that cannot be read."""
    batch = f"SELECT rowid, {named} FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT ?"
    start, holes = LOWEST, 0
    while start <= HIGHEST:
        rows = _tried(old, batch, start, BATCH)
        if rows is None:
            rows = _tried(old, batch, start, 1)
        if rows is None:
            holes += 1
            start = _past(old, batch, start)
            continue
        yield from (row[1:] for row in rows)
        if not rows:
            break
        start = rows[-1][0] + 1
    if holes:
        missing.append(f"table {table}: rows in {holes} places cannot be read")


def _past(old: apsw.Connection, batch: str, start: int) -> int:
    """The lowest number from which a row, or the end, can be read again."""
    low, high = start, HIGHEST + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _tried(old, batch, middle, 1) is None:
            low = middle
        else:
            high = middle
    return high


def _by_key(old: apsw.Connection, table: str, named: str, missing: list[str]) -> Iterator[tuple[Any, ...]]:
    """The rows from the first on and, if one cannot be read, from the last back to it."""
    keys = [
        row[0] for row in fetch(old, "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))
    ]
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{key} {direction}" for key in keys)
        try:
            yield from old.execute(f"SELECT {named} FROM {table} ORDER BY {order}")
        except DAMAGE:
            continue
        return
    missing.append(f"table {table}: some rows cannot be read")


def _tried(old: apsw.Connection, batch: str, start: int, limit: int) -> list[Any] | None:
    try:
        return fetch(old, batch, (start, limit))
    except DAMAGE:
        return None


def _mend(new: apsw.Connection, missing: list[str]) -> None:
    """Leave out what is not what was written, and what of a session reaches it."""
    _drop_altered(new, missing)
    for owner, num, id_, *row in fetch(new, SESSIONS):
        try:
            record_of(owner, (num, id_, *row))
        except StoreDamaged:
            new.execute(DISTRUST, (num,))
            try:
                fresh = fetch(new, f"{SESSIONS} WHERE s.num = ?", (num,))[0]
                record_of(owner, fresh[1:])
                missing.append(f"session {id_}: its title, times or other details were altered")
            except StoreDamaged:
                new.execute(DROP_SESSION, (num,))
                missing.append(f"session {id_}: cannot be read")
                continue
        if wrong := fetch(new, ALTERED_LISTS, (num,)):
            new.executemany(DISTRUST_LIST, [(num, name) for (name,) in wrong])
            missing.append(f"session {id_}: which messages it has, and in which order, was altered")
        lost = sum(_mend_list(new, num, name) for (name,) in fetch(new, LISTS, (num,)))
        if lost:
            missing.append(f"session {id_}: {lost} messages are missing")


def _drop_altered(new: apsw.Connection, missing: list[str]) -> None:
    for name, function in FUNCTIONS.items():
        new.create_scalar_function(name, function, deterministic=True)
    for what, statement in DROP_ALTERED.items():
        new.execute(statement)
        if altered := new.changes():
            missing.append(f"{altered} {what} were altered and are left out")
    new.execute(DROP_BLOBS)
    new.execute(END_LEASES)


def _mend_list(new: apsw.Connection, num: int, name: str) -> int:
    """Cut a list of spans down to entries that are there; returns how many are not."""
    head = int(fetch(new, "SELECT head FROM session WHERE num = ?", (num,))[0][0])
    kept, lost = list[tuple[Any, ...]](), 0
    for log, first, last, kind, expands in fetch(new, SPANS, (num, name)):
        end = head if last is None else last
        runs = fetch(new, RUNS, (log << 24 | first, log << 24 | end, num)) if end >= first else []
        gone = max(end - first + 1, 0) - sum(stop - start + 1 for start, stop in runs)
        if not gone:
            kept.append((log, first, last, kind, expands))
            continue
        lost += gone
        kept += [(log, start, stop, kind, expands) for start, stop in runs]
        if last is None:
            kept.append((log, head + 1, None, kind, expands))
    if lost:
        new.execute(DROP_LIST, (num, name))
        new.executemany(PUT_SPAN, [(num, name, order, *span) for order, span in enumerate(kept)])
    return lost
