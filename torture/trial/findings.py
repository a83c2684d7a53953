"""Defects that the trials found, and the test for each fix."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """A defect of the program that a trial found."""

    fault: str
    mended: str
    test: str


FOUND: tuple[Found, ...] = (
    Found(
        "A server that was cut off from PostgreSQL in the middle of a transaction kept its locks there for two minutes, "
        "and before PostgreSQL 17 for hours: after a partition of 10 seconds, some sessions could not be written for 113 "
        "seconds. (R4)",
        "PostgreSQL drops a silent client, and a connection gives up a silent PostgreSQL, within 8 seconds.",
        "R4, tests/stores/test_postgres_partitions.py::"
        "test_no_connection_waits_for_a_silent_network_for_ever_unless_the_address_says_so",
    ),
    Found(
        "The longer PostgreSQL was away, the later its return was noticed: 9 seconds after 20. (R4)",
        "The server tries to reconnect at least every two seconds.",
        "tests/stores/test_postgres.py::test_a_server_that_was_away_for_long_is_tried_as_often_as_at_first",
    ),
    Found(
        "A read whose connection was lost at its very end failed, with an error meant for writes. (R20)",
        "It is retried.",
        "tests/stores/test_postgres.py::test_a_reader_whose_connection_is_lost_at_its_end_reads_again",
    ),
    Found(
        "On a database without LISTEN, clients were not notified of changes by other servers.",
        "The server polls once a second, as documented.",
        "tests/stores/test_postgres.py::test_where_nobody_can_listen_changes_of_others_are_found_by_asking",
    ),
    Found(
        "On PostgreSQL, `hitherto doctor` searched all entries for each session: 10,000 sessions took more than three "
        "minutes, and twice as many took four times as long. (R21)",
        "It uses an index; the time grows in proportion to the entries.",
        "tests/stores/test_postgres.py::test_the_doctor_finds_the_sums_of_each_session_by_an_index",
    ),
    Found(
        "On PostgreSQL, a search read all spans of the owner for each hit: among 100,000 sessions it took nine times the "
        "CPU that it takes among 1,000. (R21)",
        "It uses an index, and takes as long as among 1,000.",
        "tests/stores/test_postgres.py::test_the_sessions_over_a_log_are_found_by_an_index",
    ),
    Found(
        "On PostgreSQL, each overview counted all sessions of all owners: a quarter of a second at a million. (R21)",
        "It uses the number that is kept anyway.",
        "tests/stores/test_postgres.py::test_what_is_told_of_the_store_does_not_count_its_sessions_again",
    ),
    Found(
        "A value for the `store.` methods that was not UTF-8, or nested too deeply, caused an internal error. (S6)",
        "It is refused as `invalid_input`.",
        "tests/gateway/methods/test_store.py::test_a_value_that_cannot_be_read_is_refused",
    ),
    Found(
        "Importing a document with a line that is not UTF-8 ended with an internal error. (S6)",
        "It is refused, with the line where the document begins.",
        "tests/service/transfer/test_export.py::test_what_is_no_export_is_refused_and_nothing_is_written",
    ),
    Found(
        "Beyond a published limit, most gateway methods answered `invalid_input` instead of the documented `invalid_limit`"
        " or `too_large`. (S8)",
        "They answer with the limit's code and the path of the parameter.",
        "tests/gateway/methods/test_input.py::test_one_more_than_a_published_limit_has_the_code_for_that",
    ),
    Found(
        "On a full disk, a title or tag could leave a torn line in Claude Code's transcript. (R8)",
        "Space for the whole line is reserved first; if there is none, nothing is written.",
        "tests/claude/test_edit.py::test_a_line_that_there_is_no_room_for_is_not_begun",
    ),
    Found(
        "Opening a store on a full disk reported a failed disk (`store_unavailable`). (R8)",
        "It reports `store_full`.",
        "tests/stores/test_sqlite.py::test_a_store_that_finds_no_space_when_it_is_opened_says_that_the_disk_is_full",
    ),
    Found(
        'A read that a failing disk ended was reported as `store_error`, "no transaction is active". (R9)',
        "It is reported as `store_unavailable`, with the disk's error.",
        "tests/stores/test_sqlite.py::test_a_read_that_the_disk_ends_says_that_the_disk_failed",
    ),
    Found(
        "A server with `--delete-after 90d` deleted every session when its clock was briefly set years ahead; chats were"
        " reset too. (R15)",
        "While it runs, ages grow only by the time that really passes.",
        "tests/gateway/server/test_schedule.py::test_a_clock_that_jumps_ahead_makes_nothing_old",
    ),
    Found(
        "Text that the disk had altered was served as genuine, or caused an internal error; an altered title, time or count "
        "of a session went unnoticed. (R14)",
        "Every entry and every session of a SQLite store has a checksum. On a mismatch, requests get `store_damaged`, lists "
        "leave the session out, and `hitherto doctor` counts it.",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "One session with a damaged row made every list fail with an internal error; lost spans silently shortened a "
        "session. (R14)",
        "The others are listed, and a session with missing spans is reported as damaged.",
        "R14, tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "`hitherto doctor` stopped at the first check that a damaged file made fail, and would have removed entries whose "
        "sessions only could not be read. (R14)",
        "It reports each check that fails, and repairs nothing in a damaged file.",
        "tests/stores/test_sqlite.py::test_doctor_mends_nothing_by_what_is_left_of_a_damaged_file",
    ),
    Found(
        "If several databases of an agent could not be read, only one was reported. (R13)",
        "Each one is reported.",
        "tests/sources/test_damage.py::test_each_database_that_cannot_be_read_is_told_of",
    ),
    Found(
        "A last record in a Claude Code transcript whose parent is not a string hid the whole conversation. (R13)",
        "It continues from the last message.",
        "tests/sources/claude/test_damage.py::test_every_intact_record_is_read_and_the_damage_counted",
    ),
    Found(
        "A byte that the disk changed in the running sums of an entry, in the ends of a span, or so that an entry was cut "
        "short and lost its checksum, made the history of that session fail with an internal error; `doctor` missed the "
        "first and the last. (R14)",
        "Both report it as damage.",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "In a store of ten million messages, searching for a word in twelve of them took eight times the CPU that it takes "
        "among ten thousand: the index was read backwards through all documents of the owner. (R21)",
        "If few documents have the words, the index is read forwards, which skips the others.",
        "R21",
    ),
    Found(
        "A server on PostgreSQL that was stopped at the moment when one of its tasks got a connection never ended: the task "
        "missed the cancellation and waited forever. (R1b)",
        "A task that gets a connection checks whether it was cancelled.",
        "tests/stores/test_postgres.py::test_who_waits_for_a_connection_and_is_cancelled_when_one_comes_ends",
    ),
    Found(
        "A write or read that ran out of memory so that not even its ROLLBACK succeeded left its transaction open: every later "
        "one of that process failed. (R9c)",
        "What is still open is undone before the next begins.",
        "tests/stores/test_sqlite.py::test_a_write_that_could_not_even_be_undone_does_not_block_the_next",
    ),
)
