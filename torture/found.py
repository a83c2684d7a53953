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
        "On PostgreSQL `recollect doctor` looked for each session among all entries: 10,000 sessions took more than three "
        "minutes, and twice as many four times as long. (R21)",
        "It finds them by an index; the time grows with the number of entries.",
        "tests/stores/test_postgres.py::test_the_doctor_finds_the_sums_of_each_session_by_an_index",
    ),
)
