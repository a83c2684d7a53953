"""The one thread that writes: whatever has queued while the last COMMIT was syncing goes into the next one."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar, cast

import apsw

from recollect.stores.sqlite.connection import fetch

T = TypeVar("T")
BATCH = 256


class Clock:
    """The store's running number within one transaction; written back once, before the COMMIT."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._tick: int | None = None

    def next(self) -> int:
        """A number that was never given before."""
        if self._tick is None:
            self._tick = int(fetch(self._db, "SELECT tick FROM clock")[0][0])
        self._tick += 1
        return self._tick

    def keep(self) -> None:
        """Store how far it has come."""
        if self._tick is not None:
            self._db.execute("UPDATE clock SET tick = ?", (self._tick,))


Work = Callable[[apsw.Connection, Clock], Awaitable[Any]]


class _Job(NamedTuple):
    """`loop` and `future` are None for a job that nobody waits for."""

    work: Work
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None


class _Done(NamedTuple):
    job: _Job
    result: Any = None
    error: BaseException | None = None


def drive(waiting: Awaitable[T]) -> T:
    """Run a transaction's coroutine to its end; it awaits nothing but the transaction, which never suspends."""
    coroutine = cast("Coroutine[Any, Any, T]", waiting)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    coroutine.close()
    raise RuntimeError("a transaction may only await itself")


class WriterThread:
    """Runs jobs in transactions, in the order in which they came, and answers each when it is durable."""

    def __init__(self, open_connection: Callable[[], apsw.Connection]) -> None:
        self._open = open_connection
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._db = open_connection()
        self._thread = threading.Thread(target=self._run, name="recollect-writer", daemon=True)
        self._thread.start()

    @property
    def connection(self) -> apsw.Connection:
        """The connection that writes; for whoever examines it while the thread is idle."""
        return self._db

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """A future of the running loop that is done when the work is durable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put(_Job(work, loop, future))
        return future

    def submit_quietly(self, work: Work) -> None:
        """Do it some time, if nothing fails; from any thread."""
        self._jobs.put(_Job(work))

    def close(self) -> None:
        """Finish what was submitted and stop."""
        self._jobs.put(None)
        self._thread.join()
        self._db.close()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, ending = [job], False
            while len(batch) < BATCH and not ending:
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is None:
                    ending = True
                else:
                    batch.append(following)
            self._answer(self._commit(batch))
            if ending:
                return

    def _commit(self, batch: list[_Job]) -> list[_Done]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            clock = Clock(self._db)
            done = [self._do(job, clock, alone=len(batch) == 1) for job in batch]
            clock.keep()
            self._db.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - every waiting caller gets it
            self._recover(error)
            return [_Done(job, error=error) for job in batch]
        return done

    def _do(self, job: _Job, clock: Clock, *, alone: bool) -> _Done:
        """One job; its failure undoes it and nothing else."""
        if alone:
            return _Done(job, drive(job.work(self._db, clock)))
        self._db.execute("SAVEPOINT job")
        try:
            result = drive(job.work(self._db, clock))
        except Exception as error:
            if not self._db.in_transaction:
                raise
            self._db.execute("ROLLBACK TO job")
            self._db.execute("RELEASE job")
            if isinstance(error, apsw.Error) and not isinstance(error, apsw.ConstraintError):
                raise
            return _Done(job, error=error)
        self._db.execute("RELEASE job")
        return _Done(job, result)

    def _recover(self, error: Exception) -> None:
        """Leave no transaction open; after the disk has failed, begin with a fresh connection."""
        with contextlib.suppress(apsw.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        if isinstance(error, apsw.IOError):
            with contextlib.suppress(Exception):
                fresh = self._open()
                self._db.close()
                self._db = fresh

    def _answer(self, done: list[_Done]) -> None:
        """Wake each loop once."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Done]] = {}
        for one in done:
            if one.job.loop is not None:
                by_loop.setdefault(one.job.loop, []).append(one)
        for loop, its in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(_settle, its)


def _settle(done: list[_Done]) -> None:
    for job, result, error in done:
        if job.future is None or job.future.done():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
