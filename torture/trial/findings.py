"""What the trials found in the program, and the test that holds each repair."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """A fault of the program that a trial brought to light."""

    fault: str
    mended: str
    test: str


FOUND: tuple[Found, ...] = (
    Found(
        "A server that was cut off from PostgreSQL in the middle of a transaction kept its locks there for two minutes, "
        "and before PostgreSQL 17 for hours: after a partition of 10 seconds some sessions could not be written for 113 "
        "seconds. (R4)",
        "Each connection has PostgreSQL look after a client that has fallen silent, and gives up a silent PostgreSQL, "
        "within 8 seconds.",
        "R4, tests/stores/test_postgres_partitions.py::"
        "test_no_connection_waits_for_a_silent_network_for_ever_unless_the_address_says_so",
    ),
    Found(
        "The longer PostgreSQL was away, the later it was noticed that it is back: 9 seconds after 20. (R4)",
        "It is tried every two seconds at least.",
        "tests/stores/test_postgres.py::test_a_server_that_was_away_for_long_is_tried_as_often_as_at_first",
    ),
    Found(
        "A read whose connection was lost at its very end failed, and said that it is not known whether it was stored. "
        "(R20)",
        "It is read again.",
        "tests/stores/test_postgres.py::test_a_reader_whose_connection_is_lost_at_its_end_reads_again",
    ),
    Found(
        "On a database without LISTEN, changes of other servers were told to nobody.",
        "They are found by asking once a second, as promised.",
        "tests/stores/test_postgres.py::test_where_nobody_can_listen_changes_of_others_are_found_by_asking",
    ),
    Found(
        "On PostgreSQL `hitherto doctor` looked for each session among all entries: 10,000 sessions took more than three "
        "minutes, and twice as many four times as long. (R21)",
        "It finds them by an index; the time grows with the number of entries.",
        "tests/stores/test_postgres.py::test_the_doctor_finds_the_sums_of_each_session_by_an_index",
    ),
    Found(
        "On PostgreSQL a search walked all spans of the owner for each session that it found: among 100,000 sessions it took "
        "nine times the CPU that it takes among 1,000. (R21)",
        "They are found by an index; it takes as long as among 1,000.",
        "tests/stores/test_postgres.py::test_the_sessions_over_a_log_are_found_by_an_index",
    ),
    Found(
        "On PostgreSQL each overview counted all sessions of all owners: a quarter of a second at a million. (R21)",
        "The number is kept already.",
        "tests/stores/test_postgres.py::test_what_is_told_of_the_store_does_not_count_its_sessions_again",
    ),
    Found(
        "A value of the `store.` methods that is no UTF-8, or nested too deeply, was answered with an internal error. (S6)",
        "It is refused as `invalid_input`.",
        "tests/gateway/methods/test_store.py::test_a_value_that_cannot_be_read_is_refused",
    ),
    Found(
        "The import of a document one of whose lines is no UTF-8 ended with an internal error. (S6)",
        "It is refused with the line at which the document begins.",
        "tests/service/transfer/test_export.py::test_what_is_no_export_is_refused_and_nothing_is_written",
    ),
    Found(
        "One more than a published limit was answered by most methods of the gateway with `invalid_input` in the place of"
        " `invalid_limit` and `too_large`, as documented. (S8)",
        "The code is that of the limit, with the path of the parameter.",
        "tests/gateway/methods/test_input.py::test_one_more_than_a_published_limit_has_the_code_for_that",
    ),
    Found(
        "A title or tag that a full disk took only in part left a torn line in Claude Code's transcript. (R8)",
        "Room for the whole line is kept first; where there is none, nothing is written.",
        "tests/claude/test_edit.py::test_a_line_that_there_is_no_room_for_is_not_begun",
    ),
    Found(
        "A store that was opened on a full disk said that the disk had failed (`store_unavailable`). (R8)",
        "It says `store_full`.",
        "tests/stores/test_sqlite.py::test_a_store_that_finds_no_space_when_it_is_opened_says_that_the_disk_is_full",
    ),
    Found(
        'A read that a failing disk had ended was told as `store_error`, "no transaction is active". (R9)',
        "It is told as `store_unavailable`, with what the disk did.",
        "tests/stores/test_sqlite.py::test_a_read_that_the_disk_ends_says_that_the_disk_failed",
    ),
    Found(
        "A server with `--delete-after 90d` deleted every session when its clock was set years ahead for a moment; chats"
        " started anew likewise. (R15)",
        "While it runs, nothing grows older than by the time that passes.",
        "tests/gateway/server/test_schedule.py::test_a_clock_that_jumps_ahead_makes_nothing_old",
    ),
    Found(
        "Text that the disk gave back altered was served as if it had been said so, or answered with an internal error; an "
        "altered title, time or count of a session went unnoticed. (R14)",
        "Every entry and every session of a SQLite store has a checksum; what does not agree with it is answered with "
        "`store_damaged`, lists leave it out, and `hitherto doctor` counts it.",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "One session whose row was damaged made every list fail with an internal error; spans that were lost made a session "
        "shorter without a word. (R14)",
        "The others are listed, and a session that holds less than is known of it is told as damaged.",
        "R14, tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "`hitherto doctor` broke off at the first question that a damaged file could not answer, and would have removed "
        "entries whose sessions could only not be read. (R14)",
        "It tells of each question that cannot be answered, and mends nothing in a file that is damaged.",
        "tests/stores/test_sqlite.py::test_doctor_mends_nothing_by_what_is_left_of_a_damaged_file",
    ),
    Found(
        "Of several folders of an agent with databases that cannot be read, one was told of. (R13)",
        "Each is.",
        "tests/sources/test_damage.py::test_each_database_that_cannot_be_read_is_told_of",
    ),
    Found(
        "A record of Claude Code at the very end of its transcript whose parent is no text hid the whole conversation. (R13)",
        "It follows what was said last.",
        "tests/sources/claude/test_damage.py::test_every_intact_record_is_read_and_the_damage_counted",
    ),
    Found(
        "A byte that the disk had changed within the running sums beside an entry, in the ends of a span, or so that an entry "
        "was cut short and its checksum gone, made the history of that session fail with an internal error; `doctor` knew "
        "nothing of the first and the last. (R14)",
        "It is told as damage, by both.",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    Found(
        "In a store of ten million messages, a search for a word that twelve of them have took eight times the CPU that it takes "
        "among ten thousand: the index went backwards through all documents of the owner. (R21)",
        "Where few documents have the words, it goes forwards, which it does in leaps.",
        "R21",
    ),
    Found(
        "A server on PostgreSQL that was told to end at the moment when a part of it was given a connection never ended: that "
        "part was not told, and went on for ever. (R1b)",
        "Whoever gets a connection looks whether it is still wanted.",
        "tests/stores/test_postgres.py::test_who_waits_for_a_connection_and_is_cancelled_when_one_comes_ends",
    ),
)
