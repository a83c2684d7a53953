"""The full-text index: a file of its own, fed in batches behind the commits. It is derived and can always be rebuilt.

A document's row number is the number that the main file gave to the entry or title, so rows are in the order of
commits. Whoever feeds the index first takes its write lock, then reads the main file: what was erased before that is
not there any more, and what is erased later waits in the main file's `unindex` table until the next feeding drops it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from recollect import words
from recollect.errors import StoreDamaged, StoreError
from recollect.model import ROLES, decode_entry, search_text
from recollect.stores.sqlite.connection import fetch, open_file
from recollect.stores.sqlite.writer import NEWEST_DOCUMENT
from recollect.words import Term

SCHEMA = """
BEGIN IMMEDIATE;
CREATE VIRTUAL TABLE IF NOT EXISTS doc USING fts5 (own, text, content = '', contentless_delete = 1, tokenize = 'ascii');
CREATE TABLE IF NOT EXISTS fed (one INTEGER PRIMARY KEY CHECK (one = 1), upto INTEGER NOT NULL);
INSERT OR IGNORE INTO fed VALUES (1, 0);
INSERT INTO doc (doc, rank) VALUES ('automerge', 8);
COMMIT;
"""
"""Batches are small when people talk: merging them later, and more at a time, halves what feeding costs."""
FED = "SELECT upto FROM fed"
FEED = "UPDATE fed SET upto = ?"
ADD = "INSERT OR REPLACE INTO doc (rowid, own, text) VALUES (?, ?, ?)"
DROP = "DELETE FROM doc WHERE rowid = ?"
FIND = "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
EMPTY = "DELETE FROM doc"

ENTRIES = "SELECT number, owner, payload FROM entry WHERE number > ? AND number <= ? ORDER BY number LIMIT ?"
TITLES = """
SELECT title_number, owner, title_words FROM session WHERE title_number > ? AND title_number <= ?
"""
REMOVED = "SELECT number FROM unindex ORDER BY number LIMIT ?"
ALL_NUMBERS = """
SELECT number FROM entry WHERE number IS NOT NULL UNION ALL
SELECT title_number FROM session WHERE title_number IS NOT NULL
"""

BATCH = 1_000
NO_BOUND = 1 << 62
QUIET_SECONDS = 1.0
MANY_WRITES = 100


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
            while self._feed():
                pass

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
        """Stop; what is not fed yet will be, by whoever searches next."""
        self._closing.set()
        self._hurry.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            for db in (self._db, self._main):
                if db is not None:
                    db.close()

    def rebuild(self) -> int:
        """Begin anew; returns how many documents there are."""
        with self._lock:
            index = self._index()
            index.execute("BEGIN IMMEDIATE")
            index.execute(EMPTY)
            index.execute(FEED, (0,))
            index.execute("COMMIT")
            self.catch_up()
            return len(self._numbers())

    def is_whole(self) -> bool:
        """Whether the index is sound and has exactly the documents that it should."""
        try:
            with self._lock:
                self.catch_up()
                index = self._index()
                index.execute("INSERT INTO doc (doc) VALUES ('integrity-check')")
                have = {row[0] for row in fetch(index, "SELECT rowid FROM doc")}
                return have == self._numbers()
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

    def _numbers(self) -> set[int]:
        return {row[0] for row in fetch(self._reader(), ALL_NUMBERS)}

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            # Appends come in bursts; feeding them together costs a fraction. Whoever searches does not wait for this.
            self._hurry.wait(QUIET_SECONDS)
            self._wake.clear()
            self._hurry.clear()
            self._writes = 0
            # Errors here are met again, and reported, by whoever searches.
            with contextlib.suppress(apsw.Error, StoreError):
                while not self._closing.is_set() and self._step():
                    pass

    def _step(self) -> bool:
        with self._lock:
            return self._feed()

    def _feed(self) -> bool:
        """One batch; whether there is more. Rows and the mark of how far it has come commit together."""
        index, main = self._index(), self._reader()
        if not self._behind(index, main):
            return False
        index.execute("BEGIN IMMEDIATE")
        try:
            main.execute("BEGIN")
            try:
                removed, more = self._transfer(index, main)
            finally:
                main.execute("COMMIT")
            index.execute("COMMIT")
        except BaseException:
            if index.in_transaction:
                index.execute("ROLLBACK")
            raise
        if removed:
            self._removed(removed)
        return more

    def _behind(self, index: apsw.Connection, main: apsw.Connection) -> bool:
        fed = fetch(index, FED)[0][0]
        return bool(fetch(main, NEWEST_DOCUMENT)[0][0] > fed or fetch(main, REMOVED, (1,)))

    def _transfer(self, index: apsw.Connection, main: apsw.Connection) -> tuple[list[int], bool]:
        fed = fetch(index, FED)[0][0]
        upto = fetch(main, NEWEST_DOCUMENT)[0][0]
        entries = fetch(main, ENTRIES, (fed, upto, BATCH))
        more = len(entries) == BATCH
        bound = entries[-1][0] if more else upto
        index.executemany(ADD, [_document(*row) for row in entries])
        titles = fetch(main, TITLES, (fed, bound))
        index.executemany(ADD, [(number, f"o{owner} ktitle", text) for number, owner, text in titles])
        removed = [row[0] for row in fetch(main, REMOVED, (BATCH,))]
        index.executemany(DROP, [(number,) for number in removed])
        index.execute(FEED, (bound,))
        return removed, more

    def _index(self) -> apsw.Connection:
        if self._db is None:
            self._db = open_file(self._path)
            self._db.execute(SCHEMA)
        return self._db

    def _reader(self) -> apsw.Connection:
        if self._main is None:
            self._main = self._open_main()
        return self._main


def _document(number: int, owner: int, payload: bytes) -> tuple[int, str, str]:
    entry = decode_entry(payload)
    kind = entry.role if entry.role in ROLES else "other"
    return number, f"o{owner} k{kind}", words.searchable(search_text(entry))
