"""Many clients at the same time, as if they had come one after the other."""

from __future__ import annotations

from torture.histories import trial
from torture.trial.program import broken, each, whole
from torture.trial.row import Row

ONE_ORDER = Row(
    key="R19b",
    promise="What clients do at the same time could have been done one after the other",
    target="400 histories of eight clients on SQLite and on PostgreSQL: each has an order that explains every answer",
    how=(
        "Eight processes, each with the store opened for itself, create, append, fork, rewind, compact, restore, erase, delete, take"
        " and give back leases and read, all in the same few sessions and their forks. They write down when each call began"
        " and ended, and its whole answer; in the end everything is read. A checker looks for an order in which each call"
        " lies between its begin and its end and the store in memory, which does one thing at a time, gives exactly the same"
        " answers (strict serializability, by the search of Wing and Gong). The checker is tested: it finds a planted lost"
        " update, a dirty read, a stale read and a lease that two hold. The clock stands still, so no lease expires here."
    ),
    run=whole(trial.run_trial),
    control=each(
        broken(trial.run_on_sqlite, "deferred-begin"),
        broken(trial.run_on_postgres, "no-row-lock"),
    ),
    broken="SQLite's transactions start without the write lock; then PostgreSQL's do not lock the session",
    in_tests=False,  # in few histories a broken program may be lucky
    short_forms=(
        "tests/torture/test_histories.py::test_what_eight_processes_did_is_explained",
        "tests/torture/test_histories.py::test_a_lost_update_is_found",
        "tests/torture/test_histories.py::test_a_dirty_read_is_found",
    ),
)
