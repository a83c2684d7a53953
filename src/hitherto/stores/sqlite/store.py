"""One SQLite file as a store: a thread that writes, connections that read where they are called, a bell."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast

import apsw

from hitherto.errors import (
    AlreadyExists,
    InvalidInput,
    StoreError,
    StoreNotFound,
    StoreUnavailable,
)
from hitherto.ids import now_ms
from hitherto.model import Json
from hitherto.ports import Ahead, Health, Mode, Now, Reader, Writer
from hitherto.stores.sqlite import check as checks
from hitherto.stores.sqlite.commit_queue import Numbers, WriterThread
from hitherto.stores.sqlite.connection import (
    WRITING_KIB,
    drive,
    fetch,
    open_file,
    translate_errors,
    undo_unfinished,
)
from hitherto.stores.sqlite.documents.document import Document
from hitherto.stores.sqlite.documents.waiting import Written
from hitherto.stores.sqlite.migrate import check_writer, migrate, shipped, version
from hitherto.stores.sqlite.read_only import NoWriter, Stillness, can_be_written, open_read_only
from hitherto.stores.sqlite.read_tx import SqliteReader
from hitherto.stores.sqlite.replacement import copy_whole, rewrite
from hitherto.stores.sqlite.search_index import (
    DONE_RESTATING,
    DONE_UNINDEXING,
    Done,
    NeedsThread,
    SearchIndex,
)
from hitherto.stores.sqlite.write_tx import SqliteWriter
from hitherto.tasks import Turns, finish_or_stop
from hitherto.values.positions import covers

T = TypeVar("T")
POLL_SECONDS = 0.1
SEARCH_THREADS = 4
"""Each owner has at most one at a time."""

SECRET = "SELECT value FROM store_meta WHERE name = 'secret'"
HAS_META = "SELECT count(*) = 2 FROM store_meta WHERE name IN ('secret', 'generation')"
NEW_META = "INSERT OR IGNORE INTO store_meta (name, value) VALUES ('secret', ?), ('generation', ?)"
"""The generation names this file's history. A backup has none until it is opened: from there on it goes its own way."""


@asynccontextmanager
async def connect(url: str, now: Now | None = None, mode: Mode = "make") -> AsyncIterator[SqliteStore]:
    """The store in the file of `sqlite:///path`."""
    path = file_of(url)
    if mode != "make":
        _check_is_store(path)
    store = SqliteStore(path, now or now_ms, read_only=mode == "read" and not can_be_written(path))
    try:
        yield store
    finally:
        await asyncio.to_thread(store.close)


def file_of(url: str) -> Path:
    """The file that a URL names: `sqlite:////absolute`, or `sqlite:///relative` to the current folder."""
    if url.startswith("sqlite://") and not url.startswith("sqlite:///"):
        raise InvalidInput(f"{url!r} has two slashes: use sqlite:///file.db or sqlite:////path/to/file.db")
    path = url.removeprefix("sqlite:").removeprefix("///")
    path = "/" + path.lstrip("/") if path.startswith("/") else path
    if not path or path.endswith("/"):
        raise InvalidInput(f"{url!r} names no file: use sqlite:///file.db or sqlite:////path/to/file.db")
    return Path(path).expanduser().absolute()


class SqliteStore:
    """See `ports.Store`."""

    def __init__(self, path: Path, now: Now, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._now = now
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._owners: dict[str, int] = {}
        self._bells: set[asyncio.Event] = set()
        with translate_errors(path):
            self._still = Stillness(path) if read_only else None
            self._writer = (
                cast("WriterThread", NoWriter(path))
                if read_only
                else WriterThread(self._open_migrated, check_writer)
            )
            self.secret: bytes = self._check_readable()
        self._threads = ThreadPoolExecutor(SEARCH_THREADS, "hitherto-search")
        self._turns = Turns()
        self._index = SearchIndex(self._index_path, self._open, self._fed, read_only=read_only)

    @property
    def _index_path(self) -> Path:
        return self._path.with_name(self._path.name + "-search")

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:
        try:
            return self._read(work, None)
        except NeedsThread as needs:
            owner = needs.owner
        async with self._turns.turn(owner):
            return await self._search(work)

    async def _search(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        """A read with the index, beside the event loop: it may take long."""
        stopped = threading.Event()

        def search() -> T:
            with self._index.limited(stopped):
                return self._read(work, self._index)

        async def beside() -> T:
            return await asyncio.get_running_loop().run_in_executor(self._threads, search)

        return await finish_or_stop(asyncio.create_task(beside()), stopped.set)

    def _read(self, work: Callable[[Reader], Awaitable[T]], index: SearchIndex | None) -> T:
        with translate_errors(self._path):
            db = self._reader()
            undo_unfinished(db)
            db.execute("BEGIN")
            try:
                return drive(work(SqliteReader(db, index, self._now, self._owners)))
            finally:
                if db.in_transaction:  # a failing disk has ended it: report that error
                    db.execute("COMMIT")
                if self._still is not None:
                    self._still.check()

    async def write(
        self,
        work: Callable[[Writer], Awaitable[T]],
        about: str | None = None,
    ) -> T:
        written: dict[int, Written | Document] = {}

        def job(db: apsw.Connection, numbers: Numbers) -> Awaitable[T]:
            written.clear()  # it may be done again
            return work(SqliteWriter(db, self._index, self._now, self._owners, numbers, written))

        with translate_errors(self._path):
            result: T = await self._writer.submit(job)
        self._ring()
        self._index.written(written)
        return result

    async def wait(self, owner: str, after: str, seconds: float) -> str:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            while covers(after, newest := await self.read(lambda tx: tx.newest(owner))):
                left = deadline - loop.time()
                if left <= 0:
                    break
                # The bell is of this process; other processes are seen by looking again.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, POLL_SECONDS)):
                        await bell.wait()
                bell.clear()
        finally:
            self._bells.discard(bell)
        return newest

    async def owners(self) -> list[str]:
        with translate_errors(self._path):
            return [
                row[0]
                for row in fetch(
                    self._reader(),
                    "SELECT name FROM owner WHERE num IN (SELECT owner FROM session) ORDER BY name",
                )
            ]

    async def backup(self, target: str) -> None:
        await asyncio.to_thread(self._backup, target)

    async def distribute(self) -> tuple[str, ...]:
        raise StoreError("a SQLite store is one file: only PostgreSQL with Citus can be distributed")

    async def check(self, *, repair: bool) -> Health:
        return await asyncio.to_thread(self._check, repair)

    async def clean(self, *, thoroughly: bool = False) -> None:
        if not self._read_only:
            await asyncio.to_thread(self._clean, thoroughly)

    async def unordered(self) -> int:
        with translate_errors(self._path):
            return self._index.unordered(self._reader())

    async def about(self) -> Json:
        with translate_errors(self._path):
            db = self._reader()
            size = fetch(db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        about = {
            "kind": "sqlite",
            "path": str(self._path),
            "sqlite": apsw.sqlite_lib_version(),
            "schema": shipped()[-1].version,
            "bytes": size[0][0],
        }
        left = await self.unordered()
        return {**about, "unordered": left} if left else about

    def close(self) -> None:
        """Finish what was submitted, then let go of the files."""
        self._threads.shutdown()
        self._writer.close()
        self._index.close()
        for db in self._readers:
            db.close()

    def _open(self) -> apsw.Connection:
        return open_read_only(self._path) if self._read_only else open_file(self._path)

    def _check_readable(self) -> bytes:
        """The store's key. A file that cannot be written must have the newest schema already."""
        db = self._reader()
        if self._read_only:
            check_writer(db)
            if version(db) < shipped()[-1].version:
                raise _out_of_date(self._path)
        return bytes(fetch(db, SECRET)[0][0])

    def _open_migrated(self, may_wait: Callable[[], bool]) -> apsw.Connection:
        db = open_file(self._path, may_wait, cache_kib=WRITING_KIB)
        try:
            migrate(db, shipped())
            # Opening takes the lock for writing only if there is something to write.
            if not fetch(db, HAS_META)[0][0]:
                db.execute(NEW_META, (secrets.token_bytes(32), secrets.token_bytes(16)))
        except BaseException:
            db.close()
            raise
        return db

    def _reader(self) -> apsw.Connection:
        """This thread's connection for reading."""
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = self._open()
            self._readers.append(db)
        return db

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()

    def _fed(self, done: Done) -> None:
        """The index has followed: what it has done need not wait any longer."""

        async def forget(db: apsw.Connection) -> None:
            db.executemany(DONE_UNINDEXING, [(number,) for number in done.removed])
            db.executemany(DONE_RESTATING, [(number,) for number in done.restated])

        self._writer.submit_quietly(lambda db, _: forget(db))

    def _backup(self, name: str) -> None:
        target = Path(name).expanduser().absolute()
        if target.exists():
            raise AlreadyExists(f"{target.name} already exists: choose another name")
        with translate_errors(target):
            db = self._open()
            try:
                copy_whole(db, target)
            finally:
                db.close()

    def _clean(self, thoroughly: bool) -> None:
        with translate_errors(self._path):
            if thoroughly:
                self._index.catch_up()
                self._index.purge()
                self._rewrite()
            self._writer.empty_log()

    def _rewrite(self) -> None:
        db = self._open()
        try:
            # Whoever writes all the time, or lacks the space, keeps what there is; the next call tries again.
            with suppress(apsw.BusyError, apsw.FullError):
                rewrite(db, self._index.rewrite)
        finally:
            db.close()

    def _check(self, repair: bool) -> Health:
        with translate_errors(self._path):
            db = self._open()
            try:
                return checks.check(db, self._index, repair=repair, at=self._now())
            finally:
                db.close()


def _out_of_date(path: Path) -> StoreError:
    return StoreUnavailable(
        f"{path.name} was written by an earlier version and cannot be updated, because it is read-only for this process:"
        " copy it with its -wal file to a folder of your own"
    )


def _check_is_store(path: Path) -> None:
    """Raises `StoreNotFound` if there is no store in the file; nothing is made and nothing changed."""
    with translate_errors(path):
        if not path.exists() or path.stat().st_size == 0:
            raise StoreNotFound(str(path))
        db = open_read_only(path)
        try:
            if version(db) == 0:
                raise StoreNotFound(str(path))
        finally:
            db.close()
