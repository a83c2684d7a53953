"""Writing: one connection, whose transactions take in whatever is waiting, and answer when it is durable.

Jobs that come in the same round of the event loop share one transaction. On a quick disk, and while nothing else is
being written, it is done at once where they were called: waking a thread and being woken by it would cost as much as the
work itself. Otherwise the jobs go to a thread of their own, so that nobody waits for the disk but those who write, and
whatever has come while the last COMMIT was syncing shares the next one. A task that writes again and again while no other
does is not kept waiting for others: it lets them run now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeVar, cast

import apsw

from hitherto.errors import StoreUnavailable
from hitherto.ports import Record
from hitherto.stores.sqlite.connection import drive, fetch, undo_unfinished

T = TypeVar("T")
BATCH = 256
QUICK_SECONDS = 0.001
"""A COMMIT that takes longer, on average, is never waited for on the caller's loop."""
FEW = 64
"""More jobs than this are too much work for the caller's loop."""
ALONE_SECONDS = 0.002
"""So long a task that writes alone keeps its loop to itself; then all others that are ready run."""
RECENT = 256
"""How many sessions are remembered as they were left."""
WAL_PAGES = 4_000
EMPTYING_PAUSES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
OF_THE_FILE = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NotADBError, apsw.NoMemError)
"""Errors that are not of one job: no other job of the transaction can be trusted either."""


NEWEST_DOCUMENT = """
SELECT max(
    (SELECT number FROM newest_gone),
    coalesce((SELECT max(number) FROM entry WHERE number IS NOT NULL), 0),
    coalesce((SELECT max(title_number) FROM session WHERE title_number IS NOT NULL), 0))
"""


NEWEST_CHANGE = """
SELECT max(
    coalesce((SELECT max(change) FROM session WHERE owner = :owner), 0),
    coalesce((SELECT max(change) FROM tombstone WHERE owner = :owner), 0))
"""


Name = tuple[str, str]
"""An owner, and the id of a session."""


class Left(NamedTuple):
    """A session as the last append to it has left it; whether it is marked as hot."""

    record: Record
    hot: bool


class Numbers:
    """What is looked up once for as long as nobody else writes: the numbers given to changes and to documents, and sessions as
    the last append has left them.

    What a failed job took is not given back: numbers may have gaps, but never come twice.
    """

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._documents: int | None = None
        self._changes: dict[int, int] = {}
        self._left: dict[Name, Left] = {}

    def next_document(self) -> int:
        """A number that no document of the search index ever had, above all others."""
        if self._documents is None:
            self._documents = int(fetch(self._db, NEWEST_DOCUMENT)[0][0])
        self._documents += 1
        return self._documents

    def next_change(self, owner: int) -> int:
        """Above all of the owner's: sessions keep their newest change, and deleted ones leave theirs behind."""
        newest = self._changes.get(owner)
        if newest is None:
            newest = int(fetch(self._db, NEWEST_CHANGE, {"owner": owner})[0][0])
        self._changes[owner] = newest + 1
        return newest + 1

    def left(self, name: Name) -> Left | None:
        """A session as the last append has left it; None if it must be read."""
        return self._left.get(name)

    def leave(self, name: Name, left: Left) -> None:
        """Remember a session that nothing but an append has changed in this transaction."""
        if len(self._left) >= RECENT:
            self._left.pop(next(iter(self._left)), None)
        self._left[name] = left

    def let_go(self, name: Name) -> None:
        """The session is changed in another way: whoever wants it next reads it."""
        self._left.pop(name, None)

    def let_go_all(self) -> None:
        """The same for every session: what was written last is undone, or many have changed."""
        self._left.clear()


Work = Callable[[apsw.Connection, Numbers], Awaitable[Any]]


class _Job:
    """Work to do. It ends in `done` if it was done where it was called, else in `future`."""

    __slots__ = ("done", "future", "loop", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done: _Done | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.future: asyncio.Future[Any] | None = None


class _Done(NamedTuple):
    job: _Job
    result: Any = None
    error: BaseException | None = None


class _Here(threading.local):
    """Who writes on a thread: the jobs that came in this round of its loop, the task that wrote last, and when its loop last
    let all others run."""

    def __init__(self) -> None:
        self.fresh: list[_Job] = []
        self.task = 0
        self.rested = 0.0


class WriterThread:
    """Runs jobs in transactions, in the order in which they came, and answers each when it is durable.

    `check` raises if this program may not write any more. It is asked in every transaction before which somebody else has
    written.
    """

    def __init__(
        self,
        open_connection: Callable[[Callable[[], bool]], apsw.Connection],
        check: Callable[[apsw.Connection], None],
    ) -> None:
        self._open = open_connection
        self._check = check
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._here = _Here()
        self._turn = threading.Lock()
        self._gate = threading.Lock()
        self._handed_over = 0
        self._closed = False
        self._inline = False
        self._seconds = 0.0
        self._wal_pages = 0
        self._numbers: Numbers | None = None
        self._data_version = 0
        self._db = self._opened()
        self._thread = threading.Thread(target=self._run, name="hitherto-writer", daemon=True)
        self._thread.start()

    @property
    def connection(self) -> apsw.Connection:
        """The connection that writes; for whoever examines it while nothing is written."""
        return self._db

    async def submit(self, work: Work) -> Any:
        """Do the work and return its result when it is durable; `StoreUnavailable` once it is closing."""
        job, fresh = _Job(work), self._here.fresh
        alone = self._is_alone()
        fresh.append(job)
        if not alone:
            try:
                # Not before everyone who is ready to write has come.
                await _one_round()
            except BaseException:
                if job in fresh:
                    fresh.remove(job)
                raise
            self._here.rested = time.perf_counter()
        if job in fresh:
            jobs = fresh[:]
            fresh.clear()
            if not self._done_here(jobs):
                self._hand_over(jobs)
        if job.future is not None:
            return await job.future
        return _outcome(cast("_Done", job.done))

    def submit_quietly(self, work: Work) -> None:
        """Do it some time, if nothing fails and it is not closing; from any thread."""
        self._enqueue([_Job(work)])

    def empty_log(self) -> None:
        """Fold the log into the file and empty it: what was erased is in its old pages. If others read all the time, the log
        stays, and the next caller tries again."""
        for pause in EMPTYING_PAUSES:
            time.sleep(pause)
            with self._turn:
                if self._closed:
                    return
                self._inline = True  # waits for nobody: whoever writes waits for this
                try:
                    self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                    self._wal_pages = 0
                    return
                except apsw.BusyError:
                    continue
                finally:
                    self._inline = False

    def close(self) -> None:
        """Finish what was submitted, refuse what comes later, and stop."""
        with self._gate:
            self._closed = True
            self._jobs.put(None)
        self._thread.join()
        with self._turn:
            self._db.close()

    def _hand_over(self, jobs: list[_Job]) -> None:
        loop = asyncio.get_running_loop()
        for job in jobs:
            job.loop, job.future = loop, loop.create_future()
        if not self._enqueue(jobs):
            _settle([_Done(job, error=StoreUnavailable("the store is closed")) for job in jobs])

    def _enqueue(self, jobs: list[_Job]) -> bool:
        """Give jobs to the thread; False when it takes no more, so that none ever waits behind its end."""
        with self._gate:
            if not self._closed:
                self._handed_over += len(jobs)
                for job in jobs:
                    self._jobs.put(job)
            return not self._closed

    def _is_alone(self) -> bool:
        """Whether the task that writes now is the one that wrote last, nobody waits, and it has not kept its loop for long."""
        here, task = self._here, id(asyncio.current_task())
        same, here.task = here.task == task, task
        return same and not here.fresh and time.perf_counter() - here.rested < ALONE_SECONDS

    def _done_here(self, jobs: list[_Job]) -> bool:
        """Do the jobs on the caller's thread; False if that would keep its loop waiting."""
        # Nobody overtakes those whom the thread has taken from the queue and not begun yet.
        busy = self._seconds > QUICK_SECONDS or len(jobs) > FEW or self._handed_over > 0
        if busy or not self._turn.acquire(blocking=False):
            return False
        self._inline = True
        try:
            if self._closed:
                return False
            done = self._commit(jobs)
        finally:
            self._inline = False
            self._turn.release()
        if all(isinstance(one.error, apsw.BusyError) for one in done):
            return False
        for one in done:
            one.job.done = one
        return True

    def _opened(self) -> apsw.Connection:
        db = self._open(lambda: not self._inline)
        db.wal_autocheckpoint(0)
        db.set_wal_hook(self._grown)
        return db

    def _grown(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

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
            with self._turn:
                done = self._commit(batch)
                with self._gate:
                    self._handed_over -= len(batch)
                self._checkpoint()
            self._answer(done)
            if ending:
                return

    def _checkpoint(self) -> None:
        """Fold the log into the file when it has grown; on this thread, because it takes a while."""
        if self._wal_pages >= WAL_PAGES:
            self._wal_pages = 0
            # What fails here is tried again when the log has grown further; nobody's work is lost.
            with contextlib.suppress(apsw.Error):
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _commit(self, batch: list[_Job]) -> list[_Done]:
        try:
            done = self._do_together(batch, self._begin()) or self._do_apart(batch, self._begin())
            began = time.perf_counter()
            self._db.execute("COMMIT")
            self._seconds += (time.perf_counter() - began - self._seconds) / 8
            self._data_version = self._db.data_version()
        except BaseException as error:  # noqa: BLE001 - every waiting caller gets it
            self._recover(error)
            return [_Done(job, error=error) for job in batch]
        if self._inline and self._wal_pages >= WAL_PAGES:
            self.submit_quietly(_nothing)  # wakes the thread, which folds the log
        return done

    def _begin(self) -> Numbers:
        """Begin a transaction. The numbers are as this connection left them, unless another one has written meanwhile: perhaps
        a newer program."""
        undo_unfinished(self._db)
        self._db.execute("BEGIN IMMEDIATE")
        if self._numbers is None or self._db.data_version() != self._data_version:
            self._check(self._db)
            self._numbers = Numbers(self._db)
        return self._numbers

    def _do_together(self, batch: list[_Job], numbers: Numbers) -> list[_Done]:
        """All jobs, one after the other; none if one of several has failed when it had already written something."""
        done: list[_Done] = []
        for job in batch:
            before = self._db.total_changes()
            try:
                done.append(_Done(job, drive(job.work(self._db, numbers))))
            except BaseException as error:
                if len(batch) == 1 or self._is_lost(error):
                    raise
                if self._db.total_changes() != before:
                    self._numbers = None
                    return []
                done.append(_Done(job, error=error))
        return done

    def _do_apart(self, batch: list[_Job], numbers: Numbers) -> list[_Done]:
        """All jobs; the failure of one undoes it and nothing else."""
        done: list[_Done] = []
        for job in batch:
            self._db.execute("SAVEPOINT job")
            try:
                done.append(_Done(job, drive(job.work(self._db, numbers))))
            except BaseException as error:
                if self._is_lost(error):
                    raise
                self._db.execute("ROLLBACK TO job")
                numbers.let_go_all()
                done.append(_Done(job, error=error))
            self._db.execute("RELEASE job")
        return done

    def _is_lost(self, error: BaseException) -> bool:
        """Whether nothing of the transaction can be saved."""
        return isinstance(error, OF_THE_FILE) or not self._db.in_transaction

    def _recover(self, error: BaseException) -> None:
        """Leave no transaction open; after the disk has failed, begin with a fresh connection."""
        self._numbers = None
        with contextlib.suppress(apsw.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        if isinstance(error, apsw.IOError):
            with contextlib.suppress(Exception):
                fresh = self._opened()
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


async def _nothing(_: apsw.Connection, __: Numbers) -> None:
    """A job that only makes the thread look."""


def _outcome(done: _Done) -> Any:
    if done.error is not None:
        raise done.error
    return done.result


def _settle(done: list[_Done]) -> None:
    for job, result, error in done:
        if job.future is None or job.future.done():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


@types.coroutine
def _one_round() -> Generator[None, None, None]:
    """Let other tasks that are ready run first."""
    yield
