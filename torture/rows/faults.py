"""Faults one after the other: nothing is left to chance."""

from __future__ import annotations

from torture.faults import sqlite
from torture.trial.program import broken, whole
from torture.trial.row import Row

EACH_CALL = Row(
    key="R9c",
    promise="Whichever call of the disk or statement fails, nothing is lost, half done or stuck",
    target="31 operations, every call and statement in turn: done or refused with a code, never half; the next try succeeds;"
    " the store is whole",
    how=(
        "For each operation, from creating, appending and forking to erasing, deleting, searching, opening and closing a store,"
        " the first call that SQLite makes of the operating system fails, then the second, until the operation passes"
        " untouched: open, read, write (also half of one), sync, truncate, lock, map and remove, by an error of the disk that"
        " passes or stays, a full disk, or want of memory. The same with each statement before it runs, and with each KiB of"
        " memory that SQLite may have. After each fault the answer must be the right one or a store error, and the store"
        " exactly as after or as before the operation; the next try with the same key in the same process must succeed; and the"
        " store, opened again, must pass `hitherto doctor` with the same content. Giving back a lock never fails here."
    ),
    run=whole(sqlite.run_trial),
    control=broken(sqlite.run_trial, "failed-commit-acknowledged"),
    broken="a failed COMMIT is acknowledged",
)

IN_TURN = (EACH_CALL,)
