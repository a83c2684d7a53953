"""The full-text index: a file of its own, fed in batches behind the commits. It is derived and can always be rebuilt.

A document's row number is the number that the main file gave to the entry or title, so rows are in the order of
commits. Whoever feeds the index first takes its write lock, then reads the main file: what was erased before that is
not there any more, and what is erased later waits in the main file's `unindex` table until the next feeding drops it.

FTS5 only marks a dropped document; its words stay in the file until the segments that hold them are merged. Whoever
drops notes that in `fed.dropped`, and `purge` merges: in the background, and before closing.

The index also keeps the generation of the main file. When that is another one, or has fewer documents than were fed, a
backup was put in its place: the index begins anew.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect import words
from recollect.errors import StoreDamaged, StoreError
from recollect.model import ROLES, decode_entry, search_text
from recollect.stores.sqlite.connection import WRITING_KIB, fetch, open_file, snapshot, transaction
from recollect.stores.sqlite.writer import NEWEST_DOCUMENT
from recollect.words import Term

SHAPE = 2
"""Kept as the file's `user_version`; a file of another shape is made anew."""
SCHEMA = f"""
DROP TABLE IF EXISTS doc;
DROP TABLE IF EXISTS fed;
CREATE VIRTUAL TABLE doc USING fts5 (own, text, content = '', contentless_delete = 1, tokenize = 'ascii');
CREATE TABLE fed (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    upto       INTEGER NOT NULL,
    generation BLOB NOT NULL,
    dropped    INTEGER NOT NULL
);
INSERT INTO fed VALUES (1, 0, x'', 0);
INSERT INTO doc (doc, rank) VALUES ('automerge', 8);
PRAGMA user_version = {SHAPE};
"""
"""Batches are small when people talk: merging them later, and more at a time, halves what feeding costs."""
FED = "SELECT upto, generation, dropped FROM fed"
FEED = "UPDATE fed SET upto = ?"
NOTE_DROPPED = "UPDATE fed SET dropped = dropped + 1"
PURGED = "UPDATE fed SET dropped = 0 WHERE dropped = ?"
MERGE = "INSERT INTO doc (doc, rank) VALUES ('merge', ?)"
ADD = "INSERT OR REPLACE INTO doc (rowid, own, text) VALUES (?, ?, ?)"
DROP = "DELETE FROM doc WHERE rowid = ?"
FIND = "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
BEGIN_ANEW = "INSERT INTO doc (doc) VALUES ('delete-all'); UPDATE fed SET upto = 0, generation = ?"
CHECK = "INSERT INTO doc (doc) VALUES ('integrity-check')"

ENTRIES = "SELECT number, owner, payload FROM entry WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
TITLES = """
SELECT title_number, owner, title_words FROM session WHERE title_number > ? AND title_number <= ?
"""
REMOVED = "SELECT number FROM unindex WHERE number > ? ORDER BY number LIMIT ?"
DONE_UNINDEXING = "DELETE FROM unindex WHERE number = ?"
GENERATION = "SELECT value FROM store_meta WHERE name = 'generation'"
EXPECTED = """
SELECT number FROM entry WHERE number <= ?1 UNION ALL SELECT title_number FROM session WHERE title_number <= ?1
"""

BATCH = 1_000
NO_BOUND = 1 << 62
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


class _Step(NamedTuple):
    """Whether there is more to feed, and up to which number removals are done in this round."""

    more: bool
    removed: int


FIRST_STEP = _Step(more=True, removed=0)
LAST_STEP = _Step(more=False, removed=0)


class SearchIndex:
    """The index of one store in this process: finds, feeds, and feeds by itself in the background."""

    def __init__(
        self, path: Path, main: Callable[[], apsw.Connection], removed: Callable[[list[int]], None]
    ) -> None:
        self._path = path
        self._open_main = main
        self._removed = removed
        self._lock = threading.RLock()
        self._db: apsw.Connection | None = None
        self._main: apsw.Connection | None = None
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._writes = 0
        self._closing = threading.Event()
        self._patient = True
        self._purge_again = 0.0
        self._thread: threading.Thread | None = None

    def matches(
        self, owner: int, terms: Sequence[Term], kind: str | None, before: int | None, limit: int
    ) -> list[int]:
        """Numbers of the owner's documents, newest first, with everything committed until now."""
        own = f'own:("o{owner}"' + (f' AND "k{kind}")' if kind else ")")
        query = " AND ".join(filter(None, (own, words.fts_match(terms))))
        with self._lock:
            self.catch_up()
            bound = NO_BOUND if before is None else before
            return [row[0] for row in fetch(self._index(), FIND, (query, bound, limit))]

    def catch_up(self) -> None:
        """Feed until nothing is left."""
        with self._lock:
            step = FIRST_STEP
            while step.more:
                step = self._feed(step.removed)

    def purge(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Remove the words of dropped documents from the file, in steps, unless it is told to stop."""
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

    def changed(self) -> None:
        """There is something new: feed it in the background, when much has come or a second has passed."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recollect-index", daemon=True)
            self._thread.start()
        self._writes += 1
        if self._writes == 1:
            self._wake.set()
        elif self._writes == MANY_WRITES:
            self._hurry.set()

    def close(self) -> None:
        """Stop. What is not fed yet will be, by whoever searches next; what was removed here leaves the file now."""
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
            for db in (self._db, self._main):
                if db is not None:
                    db.close()

    def rebuild(self) -> None:
        """Begin anew."""
        with self._lock:
            index, main = self._index(), self._reader()
            with transaction(index):
                index.execute(BEGIN_ANEW, (_generation(main),))
            self.catch_up()

    def is_whole(self) -> bool:
        """Whether the index is sound and has exactly the documents that it should."""
        try:
            with self._lock:
                self.catch_up()
                index, main = self._index(), self._reader()
                # Nobody feeds while this holds the lock; who writes meanwhile is beyond `upto` or in `unindex`.
                with transaction(index), snapshot(main):
                    index.execute(CHECK)
                    have = _numbers(index, "SELECT rowid FROM doc")
                    waiting = _numbers(main, REMOVED, (0, NO_BOUND))
                    expected = _numbers(main, EXPECTED, (self._fed().upto,))
                    return have - waiting == expected - waiting
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, StoreDamaged):
            return False

    def replace(self) -> None:
        """Put a damaged file away and begin a new one."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None
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
                pause = self._purge_in_turn()

    def _feed_slowly(self) -> None:
        """Feed, and let others search between the batches."""
        step = FIRST_STEP
        while step.more and not self._closing.is_set():
            with self._lock:
                step = self._feed(step.removed)

    def _purge_in_turn(self) -> float | None:
        """Purge, if the last time is long enough ago; how many seconds to wait if there is still something to purge."""
        if self._fed().dropped and time.monotonic() >= self._purge_again:
            began = time.monotonic()
            self.purge(lambda: not self._closing.is_set())
            ended = time.monotonic()
            self._purge_again = ended + max(QUIET_SECONDS, REST * (ended - began))
        return max(0.0, self._purge_again - time.monotonic()) if self._fed().dropped else None

    def _feed(self, removed_to: int) -> _Step:
        """One batch; what has been removed up to that number was dropped before.

        Rows and the mark of how far it has come commit together.
        """
        index, main = self._index(), self._reader()
        if not self._behind(main):
            return LAST_STEP
        with transaction(index), snapshot(main):
            if self._is_foreign(main):
                index.execute(BEGIN_ANEW, (_generation(main),))
            more = self._add(index, main)
            removed = self._drop(index, main, removed_to)
        if removed:
            self._removed(removed)
        return _Step(more or len(removed) == BATCH, removed[-1] if removed else removed_to)

    def _behind(self, main: apsw.Connection) -> bool:
        fed = self._fed()
        if fed.generation != _generation(main) or fed.upto != _newest(main):
            return True
        return bool(fetch(main, REMOVED, (0, 1)))

    def _is_foreign(self, main: apsw.Connection) -> bool:
        """Whether what was fed came from another history than the main file's."""
        fed = self._fed()
        return fed.generation != _generation(main) or fed.upto > _newest(main)

    def _add(self, index: apsw.Connection, main: apsw.Connection) -> bool:
        """Feed a batch; whether there is more."""
        fed, upto = self._fed().upto, _newest(main)
        entries = fetch(main, ENTRIES, (fed, upto, BATCH))
        more = len(entries) == BATCH
        bound = entries[-1][0] if more else upto
        index.executemany(ADD, [_document(*row) for row in entries])
        titles = fetch(main, TITLES, (fed, bound))
        index.executemany(ADD, [(number, f"o{owner} ktitle", text) for number, owner, text in titles])
        index.execute(FEED, (bound,))
        return more

    def _drop(self, index: apsw.Connection, main: apsw.Connection, removed_to: int) -> list[int]:
        """Drop a batch of the documents that were removed, and return their numbers."""
        removed = [row[0] for row in fetch(main, REMOVED, (removed_to, BATCH))]
        before = index.total_changes()
        index.executemany(DROP, [(number,) for number in removed])
        if index.total_changes() != before:
            index.execute(NOTE_DROPPED)
        return removed

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
            with transaction(main):
                main.executemany(DONE_UNINDEXING, [(number,) for number in removed])

    def _merge(self, pages: int) -> bool:
        """Merge for a while; whether there was anything to merge."""
        with self._lock:
            index = self._index()
            before = index.total_changes()
            index.execute(MERGE, (pages,))
            return index.total_changes() - before > 1  # the command itself counts as one

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

    def _index(self) -> apsw.Connection:
        if self._db is None:
            self._db = self._open_index()
        return self._db

    def _open_index(self) -> apsw.Connection:
        db = open_file(self._path, lambda: self._patient, cache_kib=WRITING_KIB)
        try:
            if _shape(db) != SHAPE:
                with transaction(db):
                    if _shape(db) != SHAPE:  # another process may have been quicker
                        db.execute(SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _reader(self) -> apsw.Connection:
        if self._main is None:
            self._main = self._open_main()
        return self._main


def _document(number: int, owner: int, payload: bytes) -> tuple[int, str, str]:
    """An entry's row. One that cannot be read has no words: it must not keep those behind it from being found."""
    try:
        entry = decode_entry(payload)
        kind = entry.role if entry.role in ROLES else "other"
        return number, f"o{owner} k{kind}", words.searchable(search_text(entry))
    except Exception:  # noqa: BLE001 - whatever it is, it is that entry's
        return number, f"o{owner} kother", ""


def _generation(main: apsw.Connection) -> bytes:
    return bytes(fetch(main, GENERATION)[0][0])


def _newest(main: apsw.Connection) -> int:
    return int(fetch(main, NEWEST_DOCUMENT)[0][0])


def _shape(index: apsw.Connection) -> int:
    return int(fetch(index, "PRAGMA user_version")[0][0])


def _numbers(db: apsw.Connection, sql: str, bound: tuple[int, ...] = ()) -> set[int]:
    return {row[0] for row in fetch(db, sql, bound)}
