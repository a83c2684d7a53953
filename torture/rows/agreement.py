"""Every store answers alike: the machine of the test suite drives all of them side by side, for longer."""

from __future__ import annotations

from tests import mutants
from tests.mutants import Change, Mutant
from torture.trial.row import Row
from torture.trial.suites import finding, passing

TEST = "tests/stores/test_agreement.py::test_all_stores_agree_whatever_is_done"
STEPS = 50_000
FAULTS = (
    Mutant(
        "fork-cut-off-by-one-postgres",
        (
            Change(
                "stores/postgres/write_tx.py",
                "        size = len(spans)\n        values = [",
                "        size = len(spans)\n"
                "        spans = [span._replace(last=span.last and span.last - 1) for span in spans]\n        values = [",
            ),
        ),
        TEST,
    ),
    *(
        mutant._replace(test=TEST)
        for mutant in mutants.MUTANTS
        if mutant.name
        in (
            "list-without-owner-postgres",
            "delete-takes-shared-entries-sqlite",
            "index-row-left-after-erase-postgres",
        )
    ),
)
"""Each is in one store alone: then that store answers unlike the others."""


R19 = Row(
    key="R19",
    promise="SQLite, PostgreSQL and the in-memory store give the same answers",
    target="50,000 Hypothesis steps on each, every answer equal",
    how=(
        "A stateful Hypothesis machine does the same to the service over the store in memory, SQLite and PostgreSQL: two"
        " owners make, append, fork, rewind, compact, restore, erase, delete, import, search, list and prune. Every answer,"
        " and at the end of each example everything there is, must be equal. `make test` takes 600 steps."
    ),
    run=passing(
        TEST,
        figure=f"{STEPS:,} steps on each of three stores, every answer equal",
        given={"HITHERTO_TEST_STEPS": str(STEPS)},
    ),
    control=finding(*FAULTS),
    broken="one store has a fault: a fork ends one entry early, a list shows another owner's session, search finds an erased message, …",
    in_tests=False,
    short_forms=(TEST,),
)
