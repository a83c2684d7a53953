"""Rows about what must be gone: nothing of it is left, and nothing brings it back."""

from __future__ import annotations

from tests.mutants import MUTANTS
from tests.mutants.definitions import mutant
from torture.trial.row import Row
from torture.trial.suites import finding, passing

TEST = (
    "tests/stores/test_erased_words.py::test_what_was_erased_or_deleted_is_nowhere_and_nothing_brings_it_back"
)
HISTORIES = 60
FAULTS = (
    *(
        each._replace(test=TEST)
        for each in MUTANTS
        if each.name
        in (
            "summary-beside-kept-messages-stays",
            "untrusted-import-brings-back-erased",
            "restored-backup-keeps-what-was-lost",
        )
    ),
    mutant(
        "facts-of-erased-messages-stay",
        "service/history/grounds.py",
        "await tx.forget_facts(owner, unfounded)",
        "pass",
        TEST,
    ),
    mutant(
        "titles-of-erased-messages-stay",
        "service/history/grounds.py",
        'fields |= {"title": first, "title_by": "auto" if first else None}',
        "pass",
        TEST,
    ),
)

R26 = Row(
    key="R26",
    promise="What was erased or deleted is nowhere, and nothing brings it back",
    target=f"{HISTORIES} random histories on SQLite and {HISTORIES // 3} on PostgreSQL, through every door: no word found",
    how=(
        "Every message of a random history has a word that nothing else has. There are sessions, forks, rewinds, restored"
        " checkpoints, summaries that quote all that their writer was given, titles, facts, raw copies, transcripts of other"
        " agents and requests with idempotency keys. A third of the messages is erased and a third of the sessions deleted."
        " Then no answer of Python, of any reading method of the gateway, of MCP, ACP, the page and commands may have such a"
        " word; nor, after `hitherto doctor --repair`, any byte of the files of a SQLite store and of sync's notes, or any row"
        " or planner's sample of a PostgreSQL database. Words that must be there are looked for in the same places. The same"
        " again after all transcripts were synced, older exports imported, requests repeated and, on SQLite, a backup"
        " restored; and once more with `--include-deleted`, for what was erased. PostgreSQL's own WAL and free space are not"
        " looked at, and none of its tables becomes empty: it keeps the sample of one that does."
    ),
    run=passing(
        TEST,
        figure=f"{HISTORIES} histories on SQLite, {HISTORIES // 3} on PostgreSQL: no word found",
        given={"HITHERTO_TEST_HISTORIES": str(HISTORIES)},
    ),
    control=finding(*FAULTS, given={"HITHERTO_TEST_HISTORIES": str(HISTORIES // 3)}),
    broken="facts or titles stay, a summary beside a kept message stays, an import or a restored backup brings words back",
    in_tests=False,
    short_forms=(TEST,),
)
GONE = (R26,)
