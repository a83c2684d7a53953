"""Faults one after the other: nothing is left to chance."""

from __future__ import annotations

from tests.mutants import Change
from torture.faults import postgres, sqlite
from torture.trial.program import broken, changed, each, whole
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
        " passes or stays, a full disk, or want of memory. The same with each statement before it runs, and with every 4 KiB of"
        " memory that SQLite may have. After each fault the answer must be the right one or a store error, and the store"
        " exactly as after or as before the operation; the next try with the same key in the same process must succeed; and the"
        " store, opened again, must pass `hitherto doctor` with the same content. Giving back a lock never fails here."
    ),
    run=whole(sqlite.run_trial),
    control=broken(sqlite.run_trial, "failed-commit-acknowledged"),
    broken="a failed COMMIT is acknowledged",
)
EACH_STATEMENT = Row(
    key="R4b",
    promise="At whichever statement PostgreSQL is cut off, a second try with the same key makes it certain",
    target="30 operations, cut off before and after every statement in turn: done or refused with a code, never half; the next"
    " try succeeds and nothing is done twice; the store is whole",
    how=(
        "A relay on loopback reads PostgreSQL's protocol and breaks the connection at the first statement of an operation, then"
        " at the second, until the operation passes untouched; before the statement, so that PostgreSQL never sees it, and after"
        " it, so that PostgreSQL has done it (a COMMIT, too) and nobody hears that. The operations and the judgement are those of"
        " R9c, but for one: what was refused may have been done, if the end of the transaction was on its way. The same call with"
        " the same idempotency key must then give the right answer, and the store must have it once."
    ),
    run=whole(postgres.run_trial),
    control=each(
        changed(
            postgres.run_trial,
            Change("service/idempotency.py", "    await request.remember(tx, answer)\n", ""),
        ),
        changed(
            postgres.run_trial,
            Change(
                "stores/postgres/transactions.py",
                "    if failure is None:\n        return result\n",
                "    if failure is None or committing:\n        return result\n",
            ),
        ),
    ),
    broken="keys are not remembered; then a COMMIT without an answer counts as done",
    in_tests=False,  # a database for each statement takes long
    short_forms=("tests/torture/test_faults.py::test_an_append_is_certain_wherever_postgres_is_cut_off",),
)

IN_TURN = (EACH_CALL, EACH_STATEMENT)
