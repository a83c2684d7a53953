"""The full-text index: a file of its own, fed in batches behind the commits. It is derived and can always be rebuilt.

Documents are fed in the order of their numbers, which the main file gave to entries and titles when they were committed;
they are kept and found in the order in which they were said (see `documents`). Whoever feeds the index first takes its write lock, then reads the main file: what was erased before that is
not there any more, and what is erased later waits in the main file's `unindex` table until the next feeding drops it.

FTS5 only marks a dropped document; its words stay in the file until the segments that hold them are merged. Whoever
drops notes that in `fed.dropped`, and `purge` merges: in the background, and before closing.

A file of an earlier version has its documents in the order of commits. They are searched, and what is new is added to
them, until the background has put them in the order of time beside it: `rebuilt.upto` says how far it is.

Beside the words the file has a table of days (see `days`), which is fed together with them.

The index also keeps the generation of the main file. When that is another one, or has fewer documents than were fed, a
backup was put in its place: the index begins anew.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import apsw

from hitherto.errors import IndexBehind, InvalidCursor, SearchTooBroad, StoreDamaged, StoreError
from hitherto.model import ROLES, Entry, encode, search_text
from hitherto.ports import SearchKey
from hitherto.stores.sqlite import days
from hitherto.stores.sqlite.commit_queue import NEWEST_DOCUMENT
from hitherto.stores.sqlite.connection import WRITING_KIB, fetch, open_file, snapshot, transaction
from hitherto.stores.sqlite.documents import by_number, by_time
from hitherto.stores.sqlite.documents.document import SEQ_BITS, Document, Found, Part, Wanted
from hitherto.stores.sqlite.documents.waiting import Waiting, Written
from hitherto.stores.sqlite.migrate import writing
from hitherto.stores.sqlite.read_only import open_read_only
from hitherto.values import words

SHAPE = 6
"""Kept as the file's `user_version`; a file of another shape is made anew."""
EARLIER_SHAPE = 4
"""The shape of files whose documents are in the order of commits. It stays until all of them are in the order of time."""
SCHEMA = f"""
DROP TABLE IF EXISTS rebuilt;
DROP TABLE IF EXISTS fed;
{by_number.REMOVE};
{by_time.REMOVE}
{by_time.SCHEMA}
CREATE TABLE fed (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    upto       INTEGER NOT NULL,
    generation BLOB NOT NULL,
    dropped    INTEGER NOT NULL
);
INSERT INTO fed VALUES (1, 0, x'', 0);
{days.SCHEMA}
PRAGMA user_version = {SHAPE};
"""
IS_REBUILDING = "SELECT 1 FROM sqlite_schema WHERE name = 'rebuilt'"
BEGIN_REBUILDING = f"""
{by_time.REMOVE}
{by_time.SCHEMA}
CREATE TABLE rebuilt (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    upto INTEGER NOT NULL
);
INSERT INTO rebuilt VALUES (1, 0);
"""
REBUILT = "SELECT upto FROM rebuilt"
NOTE_REBUILT = "UPDATE rebuilt SET upto = ?"
END_REBUILDING = f"DROP TABLE rebuilt; {by_number.REMOVE}; PRAGMA user_version = {SHAPE}"
FED = "SELECT upto, generation, dropped FROM fed"
FEED = "UPDATE fed SET upto = ?"
NOTE_DROPPED = "UPDATE fed SET dropped = dropped + 1"
PURGED = "UPDATE fed SET dropped = 0 WHERE dropped = ?"
BEGIN_ANEW = f"{days.FORGET}; UPDATE fed SET upto = 0, generation = ?"

ENTRIES = """
SELECT number, owner, pos, erased, payload FROM entry WHERE number > ? AND number <= ? ORDER BY number LIMIT ?
"""
TITLES = """
SELECT title_number, owner, num, created_at, title_words FROM session WHERE title_number > ? AND title_number <= ?
"""
REMOVED = "SELECT number FROM unindex WHERE number > ? ORDER BY number LIMIT ?"
DONE_UNINDEXING = "DELETE FROM unindex WHERE number = ?"
RESTATED = "SELECT number, session, recount FROM restate WHERE number > ? ORDER BY number LIMIT ?"
DONE_RESTATING = "DELETE FROM restate WHERE number = ?"
WAITING = "SELECT 1 FROM unindex UNION ALL SELECT 1 FROM restate LIMIT 1"
GENERATION = "SELECT value FROM store_meta WHERE name = 'generation'"
EXPECTED = """
SELECT number FROM entry WHERE number <= ?1 AND erased IS NULL UNION ALL SELECT title_number FROM session WHERE title_number <= ?1
"""
UNINDEXED = """
SELECT (SELECT count(*) FROM entry WHERE number > ?1 AND erased IS NULL)
    + (SELECT count(*) FROM session WHERE title_number > ?1 AND title_words <> '')
"""

SEARCH_SECONDS = 2.0
"""CPU seconds for one search."""
FOLLOW_SECONDS = 10.0
"""How long a search feeds what is missing, or waits for another process that does."""
CLOSE_SECONDS = 3.0
"""How long closing waits for another process; what is left to do then is done by whoever opens the store next."""
LOOK_SECONDS = 0.05
STEPS = 1_000
"""How many steps of SQLite there are between two looks at the clock."""
BATCH = 1_000
QUIET_SECONDS = 1.0
MANY_WRITES = 100
MERGE_PAGES = 500
"""What is merged at once, in some forty milliseconds; in between others may search and feed."""
REST = 10
"""The background rests so many times longer than the last purge took: merging costs half a second per 100,000 documents."""


class _Fed(NamedTuple):
    """Where the index stands. `dropped` is 0 when the file holds no words of dropped documents."""

    upto: int
    generation: bytes
    dropped: int


class Done(NamedTuple):
    """What need not wait any longer: the numbers of documents that were dropped, and of sessions recounted."""

    removed: list[int]
    restated: list[int]


class _Step(NamedTuple):
    """Whether there is more to feed, and up to which numbers removals and sessions are done in this round."""

    more: bool
    removed: int = 0
    restated: int = 0


FIRST_STEP = _Step(more=True)
LAST_STEP = _Step(more=False)


class NeedsThread(BaseException):
    """A read on the event loop needs the index: it begins anew in a thread. No `except Exception` may stop this."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


BY_NUMBER, BY_TIME = 0, 1
"""The orders that a file may be in, as the keys of documents name them."""
TIE_MASK = (1 << by_time.TIE_BITS) - 1


class Matches(NamedTuple):
    """Documents that were found, newest first, and the order that their keys are of."""

    order: int
    found: list[Found]

    @property
    def last(self) -> SearchKey:
        """The key of the last of them."""
        key = self.found[-1][0]
        return SearchKey(key >> by_time.TIE_BITS, key & TIE_MASK, self.order)


class SearchIndex:
    """The index of one store in this process: finds, feeds, and feeds by itself in the background."""

    def __init__(
        self,
        path: Path,
        main: Callable[[], apsw.Connection],
        done: Callable[[Done], None],
        *,
        read_only: bool = False,
    ) -> None:
        self._path = path
        self._read_only = read_only
        self._open_main = main
        self._done = done
        self._lock = threading.RLock()
        self._db: apsw.Connection | None = None
        self._main: apsw.Connection | None = None
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._writes = 0
        self._closing = threading.Event()
        self._patient = True
        self._until: float | None = None
        self._close_by: float | None = None
        self._local = threading.local()
        self._finders: list[apsw.Connection] = []
        self._waiting = Waiting()
        self._replaced = 0
        self._purge_again = 0.0
        self._thread: threading.Thread | None = None

    def matches(self, wanted: Wanted, below: SearchKey | None, limit: int) -> Matches:
        """The documents that are wanted, newest first, with everything committed until now."""
        self.follow()
        with self._finding() as db:
            order = _order(db)
            if order != BY_TIME and self._thread is None and not self._read_only:
                self.changed()  # the background puts it in the order of time
            if below is not None and below.order != order:
                raise InvalidCursor(
                    "the order of search has changed since this cursor was given; start again without it"
                )
            bound = None if below is None else (below.at << by_time.TIE_BITS) + below.tie
            found = (by_time if order == BY_TIME else by_number).find(db, wanted, bound, limit)
            return Matches(order, found)

    def within(self, wanted: Wanted, part: Part, limit: int, *, backwards: bool) -> list[int]:
        """Numbers of a log's documents, in order or from the last, with everything committed until now."""
        self.follow()
        with self._finding() as db:
            if _order(db) == BY_TIME:
                return by_time.within(db, wanted, part, limit, backwards=backwards)
            return by_number.within(db, wanted, part, limit, backwards=backwards)

    def spoken(self, owner: int, day: int, few: int | None = None) -> list[int] | None:
        """Sessions of the owner in which something was said on that day, with everything committed until now; None if
        there are more than a few."""
        self.follow()
        with self._finding() as db:
            if few is not None and fetch(db, days.CROWDED, (owner, day, few)):
                return None
            return [row[0] for row in fetch(db, days.SPOKEN, (owner, day))]

    def among(self, owner: int, day: int, sessions: Sequence[int]) -> set[int]:
        """Those of these sessions in which something was said on that day, as far as was fed."""
        with self._finding() as db:
            bound = (owner, day, encode(sessions).decode())
            return {row[0] for row in fetch(db, days.AMONG, bound)}

    def activity(self, owner: int, first: int, last: int, most: int) -> days.Spoken:
        """What was said in these days, with everything committed until now."""
        self.follow()
        with self._finding() as db:
            return days.activity(db, owner, first, last, most)

    @contextlib.contextmanager
    def limited(self, stopped: threading.Event) -> Iterator[None]:
        """All searches of this thread inside have `SEARCH_SECONDS` together, and end when nobody wants them any more."""
        until = time.thread_time() + SEARCH_SECONDS
        self._local.limit = lambda: time.thread_time() > until or stopped.is_set()
        self._local.stopped = stopped
        try:
            yield
        finally:
            self._local.limit = self._local.stopped = None

    def is_settled(self, main: apsw.Connection) -> bool:
        """Whether nothing that this snapshot of the main file lacks can be found, but for what is newer than it."""
        return not self._read_only and not fetch(main, REMOVED, (0, 1))

    @property
    def read_only(self) -> bool:
        """Whether it cannot be written to."""
        return self._read_only

    def unindexed(self, main: apsw.Connection) -> int:
        """How many documents are not found because nothing can be fed."""
        if not self._read_only:
            return 0
        return int(fetch(main, UNINDEXED, (self._fed().upto,))[0][0])

    def follow(self) -> None:
        """Feed what is not fed yet, for a while. Raises `IndexBehind` if there is still more, or somebody else is at it."""
        if self._read_only or not self._behind(self._finder(), self._main_here()):
            return
        until = time.monotonic() + FOLLOW_SECONDS
        while not self._lock.acquire(timeout=min(FOLLOW_SECONDS, LOOK_SECONDS)):
            if self._is_stopped() or time.monotonic() >= until:
                raise self._progress()
        try:
            self._until = until
            step = FIRST_STEP
            while step.more:
                step = self._feed(step)
                if step.more and time.monotonic() > until:
                    raise self._progress()
        except apsw.BusyError:
            raise self._progress() from None
        finally:
            self._until = None
            self._lock.release()

    def _progress(self) -> IndexBehind:
        """How far it has come; what is missing is fed in the background."""
        self.changed()
        upto = _Fed(*fetch(self._finder(), FED)[0]).upto
        return IndexBehind(upto, _newest(self._main_here()))

    def catch_up(self) -> None:
        """Feed until nothing is left, however long it takes; an index that cannot be written to stays as it is."""
        with self._lock:
            if self._read_only:
                return
            step = FIRST_STEP
            while step.more:
                step = self._feed(step)
            while self._rebuild_step():
                pass

    def unordered(self, main: apsw.Connection) -> int:
        """How many documents are not in the order of time yet, with those that are gone by now."""
        db = self._finder()
        found = fetch(db, REBUILT) if fetch(db, IS_REBUILDING) else []
        return _newest(main) - int(found[0][0]) if found else 0

    def _rebuild_step(self) -> bool:
        """Put a batch of documents in the order of time; when all of them are, the earlier order goes. Whether there is more."""
        with self._lock:
            index, main = self._index(), self._reader()
            if not fetch(index, IS_REBUILDING):
                return False
            with transaction(index), snapshot(main):
                # Another process may have ended it, and what is foreign begins anew at the next feeding.
                if not fetch(index, IS_REBUILDING) or self._is_foreign(main):
                    return False
                done, upto = int(fetch(index, REBUILT)[0][0]), self._fed().upto
                if done >= upto:
                    index.execute(END_REBUILDING)
                    return False
                batch = _batch(main, done, upto)
                by_time.add(index, batch.documents)
                index.execute(NOTE_REBUILT, (batch.upto,))
            return True

    def purge(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Remove the words of dropped documents from the file, in steps, until `goes_on` says no."""
        seen = self._fed().dropped
        if not seen:
            return
        pages = -MERGE_PAGES  # less than nothing: merge all segments into one
        while self._merge(pages):
            if not goes_on():
                return
            pages = MERGE_PAGES
        with self._lock:
            if self._fold():
                self._index().execute(PURGED, (seen,))

    def rewrite(self) -> None:
        """Write the file anew from its rows."""
        with self._lock:
            self._index().execute("VACUUM")
            self._fold()

    def written(self, documents: Mapping[int, Written | Document]) -> None:
        """These were committed, by their numbers."""
        if documents:
            self._waiting.add(documents)
        self.changed()

    def changed(self) -> None:
        """There is something new: feed it in the background, when much has come or a second has passed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hitherto-index", daemon=True)
            self._thread.start()
        self._writes += 1
        if self._writes == 1:
            self._wake.set()
        elif self._writes == MANY_WRITES:
            self._hurry.set()

    def close(self) -> None:
        """Stop. What is not fed yet will be, by whoever searches next; what was removed here leaves the file now."""
        self._close_by = time.monotonic() + CLOSE_SECONDS
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            # The store is closed all the same; whoever opens it next meets the error again.
            with contextlib.suppress(apsw.Error, StoreError):
                if self._thread is not None and self._path.exists():
                    self._drop_all()
                    self.purge()
            for db in (self._db, self._main, *self._finders):
                if db is not None:
                    db.close()

    def rebuild(self) -> None:
        """Begin anew."""
        with self._lock:
            index, main = self._index(), self._reader()
            with transaction(index):
                self._begin_anew(index, main)
            self.catch_up()

    def is_whole(self) -> bool:
        """Whether the index is sound and has exactly the documents that it should."""
        try:
            with self._lock:
                self.catch_up()
                index, main = self._index(), self._reader()
                # Nobody feeds while this holds the lock; who writes meanwhile is beyond `upto` or in `unindex`.
                with transaction(index), snapshot(main):
                    paired = by_time.is_whole(index)
                    have = _numbers(index, by_time.NUMBERS)
                    waiting = _numbers(main, REMOVED, (0, -1))
                    expected = _numbers(main, EXPECTED, (self._fed().upto,))
                    return paired and have - waiting == expected - waiting
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, StoreDamaged):
            return False

    def wrong_days(self, *, repair: bool) -> int:
        """In how many sessions the days are not what the entries say; with `repair` they are counted anew."""
        with self._lock:
            self.catch_up()
            index, main = self._index(), self._reader()
            with transaction(index), snapshot(main):
                upto = self._fed().upto
                wrong = days.differing(index, main, upto)
                for session in wrong if repair else ():
                    days.recount(index, main, session, upto)
            return len(wrong)

    def replace(self) -> None:
        """Put a damaged file away and begin a new one."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
            self._replaced += 1
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + suffix).unlink()
            self.catch_up()

    def _run(self) -> None:
        pause: float | None = None
        while not self._closing.is_set():
            if self._wake.wait(pause):
                # Appends come in bursts; feeding them together costs a fraction. Whoever searches does not wait for this.
                self._hurry.wait(QUIET_SECONDS)
            self._wake.clear()
            self._hurry.clear()
            self._writes = 0
            pause = None
            # Errors here are met again, and reported, by whoever searches.
            with contextlib.suppress(Exception):
                self._feed_slowly()
                self._rebuild_slowly()
                pause = self._purge_in_turn()

    def _feed_slowly(self) -> None:
        """Feed, and let others search between the batches."""
        step = FIRST_STEP
        while step.more and not self._closing.is_set():
            with self._lock:
                step = self._feed(step)

    def _rebuild_slowly(self) -> None:
        """Go on with the order of time, and feed and let others search between the batches."""
        while not self._closing.is_set() and self._rebuild_step():
            self._feed_slowly()

    def _purge_in_turn(self) -> float | None:
        """Purge, if the last time is long enough ago; how many seconds to wait if there is still something to purge."""
        if self._fed().dropped and time.monotonic() >= self._purge_again:
            began = time.monotonic()
            self.purge(lambda: not self._closing.is_set())
            ended = time.monotonic()
            self._purge_again = ended + max(QUIET_SECONDS, REST * (ended - began))
        return max(0.0, self._purge_again - time.monotonic()) if self._fed().dropped else None

    def _feed(self, before: _Step) -> _Step:
        """One batch; what the step before has done is not done again.

        Rows and the mark of how far it has come commit together.
        """
        index, main = self._index(), self._reader()
        if not self._behind(index, main):
            return LAST_STEP
        with transaction(index), snapshot(main):
            if self._is_foreign(main):
                self._begin_anew(index, main)
            more = self._add(index, main)
            removed = self._drop(index, main, before.removed)
            restated = self._restate(index, main, before.restated)
        if removed or restated:
            self._done(Done(removed, restated))
        return _Step(
            more or BATCH in (len(removed), len(restated)),
            removed[-1] if removed else before.removed,
            restated[-1] if restated else before.restated,
        )

    def _behind(self, index: apsw.Connection, main: apsw.Connection) -> bool:
        fed = _Fed(*fetch(index, FED)[0])
        if fed.generation != _generation(main) or fed.upto != _newest(main):
            return True
        return bool(fetch(main, WAITING))

    def _is_foreign(self, main: apsw.Connection) -> bool:
        """Whether what was fed came from another history than the main file's."""
        fed = self._fed()
        return fed.generation != _generation(main) or fed.upto > _newest(main)

    def _begin_anew(self, index: apsw.Connection, main: apsw.Connection) -> None:
        """Forget all documents, those in an earlier order too."""
        if fetch(index, IS_REBUILDING):
            index.execute(END_REBUILDING)
        if self._fed().generation:  # it is not new: what waits may be of another history too
            self._waiting = Waiting()
        index.execute(by_time.FORGET)
        index.execute(BEGIN_ANEW, (_generation(main),))

    def _add(self, index: apsw.Connection, main: apsw.Connection) -> bool:
        """Feed a batch; whether there is more."""
        fed, upto = self._fed().upto, _newest(main)
        known = self._waiting.take(range(fed + 1, min(upto, fed + BATCH) + 1))
        batch = _batch(main, fed, upto) if known is None else _known_batch(known, upto)
        table = by_time if _order(index) == BY_TIME else by_number
        table.add(index, batch.documents)
        days.add(index, main, batch.entries)
        index.execute(FEED, (batch.upto,))
        return batch.more

    def _drop(self, index: apsw.Connection, main: apsw.Connection, removed_to: int) -> list[int]:
        """Drop a batch of the documents that were removed, and return their numbers."""
        removed = [row[0] for row in fetch(main, REMOVED, (removed_to, BATCH))]
        before = index.total_changes()
        for table in _tables(index):
            table.drop(index, removed)
        if index.total_changes() != before:
            index.execute(NOTE_DROPPED)
        return removed

    def _restate(self, index: apsw.Connection, main: apsw.Connection, restated_to: int) -> list[int]:
        """Recount the days of a batch of sessions, and return the numbers under which they waited."""
        waiting = [days.Restated(*row) for row in fetch(main, RESTATED, (restated_to, BATCH))]
        days.restate(index, main, waiting, self._fed().upto)
        return [each.number for each in waiting]

    def _drop_all(self) -> None:
        """Drop what was removed, and feed nothing. For closing: the writer has ended, so this clears the queue itself."""
        index, main = self._index(), self._reader()
        if self._is_foreign(main):
            return
        while True:
            with transaction(index), snapshot(main):
                removed = self._drop(index, main, 0)
            if not removed:
                return
            with writing(main):
                main.executemany(DONE_UNINDEXING, [(number,) for number in removed])

    def _merge(self, pages: int) -> bool:
        """Merge for a while; whether there was anything to merge."""
        with self._lock:
            index = self._index()
            merged = 0
            for table in _tables(index):
                before = index.total_changes()
                index.execute(table.MERGE, (pages,))
                merged += index.total_changes() - before - 1  # the command itself counts as one
            return merged > 0

    def _fold(self) -> bool:
        """Fold the index's log into its file and empty it; not while another process is reading."""
        self._patient = False
        try:
            self._index().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        finally:
            self._patient = True
        return True

    def _fed(self) -> _Fed:
        with self._lock:
            return _Fed(*fetch(self._index(), FED)[0])

    def _may_wait(self) -> bool:
        """Whether to wait while another process writes. What nobody wants any more does not; closing does, not for long."""
        now = time.monotonic()
        return (
            self._patient
            and not self._is_stopped()
            and (self._until is None or now < self._until)
            and (self._close_by is None or now < self._close_by)
        )

    def _is_stopped(self) -> bool:
        """Whether nobody wants what this thread searches any more."""
        stopped: threading.Event | None = getattr(self._local, "stopped", None)
        return stopped is not None and stopped.is_set()

    @contextlib.contextmanager
    def _finding(self) -> Iterator[apsw.Connection]:
        """This thread's connection. Raises `SearchTooBroad` when the time of its searches is over.

        CPU time is counted: a busy machine makes no search too broad.
        """
        db, limit = self._finder(), getattr(self._local, "limit", None)
        db.set_progress_handler(limit, STEPS)
        try:
            yield db
        except apsw.InterruptError:
            raise SearchTooBroad from None
        finally:
            db.set_progress_handler(None)

    def _finder(self) -> apsw.Connection:
        """This thread's connection for searching: nobody waits for a search of another."""
        found: tuple[int, apsw.Connection | None] = getattr(self._local, "finder", (-1, None))
        replaced, db = found
        if db is None or replaced != self._replaced:
            db = self._open_index()
            self._local.finder = (self._replaced, db)
            self._finders.append(db)
        return db

    def _main_here(self) -> apsw.Connection:
        """This thread's connection to the main file."""
        db: apsw.Connection | None = getattr(self._local, "main", None)
        if db is None:
            db = self._local.main = self._open_main()
            self._finders.append(db)
        return db

    def _index(self) -> apsw.Connection:
        if self._db is None:
            self._db = self._open_index()
        return self._db

    def _open_index(self) -> apsw.Connection:
        if self._read_only:
            return self._found() or _empty()
        db = open_file(self._path, self._may_wait, cache_kib=WRITING_KIB)
        try:
            if not _is_ready(db):
                with transaction(db):
                    if not _is_ready(db):  # another process may have been quicker
                        db.execute(BEGIN_REBUILDING if _shape(db) == EARLIER_SHAPE else SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _found(self) -> apsw.Connection | None:
        """The index as it was left, if it is one of this store."""
        try:
            db = open_read_only(self._path)
        except StoreError:
            return None
        if _shape(db) in (SHAPE, EARLIER_SHAPE) and fetch(db, FED)[0][1] == _generation(self._main_here()):
            return db
        db.close()
        return None

    def _reader(self) -> apsw.Connection:
        if self._main is None:
            self._main = self._open_main()
        return self._main


def _order(db: apsw.Connection) -> int:
    return BY_NUMBER if fetch(db, by_number.IS_THERE) else BY_TIME


def _tables(db: apsw.Connection) -> list[ModuleType]:
    """The tables of documents that the file has."""
    return [by_time] if _order(db) == BY_TIME else [by_time, by_number]


def _is_ready(db: apsw.Connection) -> bool:
    shape = _shape(db)
    return shape == SHAPE or (shape == EARLIER_SHAPE and bool(fetch(db, IS_REBUILDING)))


class _Batch(NamedTuple):
    """Documents with numbers up to `upto`, the entries among them, each with its log, and whether more follow."""

    documents: list[Document]
    entries: list[tuple[int, Entry]]
    upto: int
    more: bool


def _batch(main: apsw.Connection, after: int, upto: int) -> _Batch:
    """The next documents behind a number."""
    rows = [
        (number, owner, pos, erased, days.read(payload))
        for number, owner, pos, erased, payload in fetch(main, ENTRIES, (after, upto, BATCH))
    ]
    more = len(rows) == BATCH
    bound = rows[-1][0] if more else upto
    documents = [
        _document(number, owner, pos, entry) for number, owner, pos, erased, entry in rows if not erased
    ]
    for number, owner, num, at, text in fetch(main, TITLES, (after, bound)):
        documents.append(Document(number, owner, "title", -num, at, text))
    spoken = [(pos >> SEQ_BITS, entry) for _, _, pos, _, entry in rows if entry is not None]
    return _Batch(documents, spoken, bound, more)


def _known_batch(known: Mapping[int, Written | Document], upto: int) -> _Batch:
    """The same of documents that need not be read. One that was removed since waits to be dropped, like any other."""
    documents: list[Document] = []
    spoken: list[tuple[int, Entry]] = []
    for number, each in known.items():
        if isinstance(each, Document):
            documents.append(each)
        else:
            documents.append(_document(number, each.owner, each.pos, each.entry, each.words))
            spoken.append((each.pos >> SEQ_BITS, each.entry))
    bound = max(known, default=upto)
    return _Batch(documents, spoken, bound, bound < upto)


def _document(number: int, owner: int, pos: int, entry: Entry | None, text: str | None = None) -> Document:
    """An entry's document. One that cannot be read has no words: it must not keep those behind it from being found."""
    try:
        if entry is not None:
            kind = entry.role if entry.role in ROLES else "other"
            said = words.searchable(search_text(entry)) if text is None else text
            return Document(number, owner, kind, pos, entry.at, said)
    except Exception:  # noqa: BLE001, S110 - whatever it is, it is that entry's
        pass
    return Document(number, owner, "other", pos, 0, "")


def _empty() -> apsw.Connection:
    """An index that knows nothing."""
    db = apsw.Connection(":memory:")
    db.execute(SCHEMA)
    return db


def _generation(main: apsw.Connection) -> bytes:
    """Empty for a backup that was never opened to write."""
    found = fetch(main, GENERATION)
    return bytes(found[0][0]) if found else b""


def _newest(main: apsw.Connection) -> int:
    return int(fetch(main, NEWEST_DOCUMENT)[0][0])


def _shape(index: apsw.Connection) -> int:
    return int(fetch(index, "PRAGMA user_version")[0][0])


def _numbers(db: apsw.Connection, sql: str, bound: tuple[int, ...] = ()) -> set[int]:
    return {row[0] for row in fetch(db, sql, bound)}
