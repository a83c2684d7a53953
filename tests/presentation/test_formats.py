"""Numbers and times as people read them."""

from __future__ import annotations

from hitherto.presentation import formats

AT = 1_748_779_200_042  # 2025-06-01T12:00:00.042Z
NEVER = 10**18


def test_numbers_are_short_where_there_is_little_room_and_whole_elsewhere() -> None:
    assert [formats.count(number) for number in (950, 1_234, 18_400, 3_400_000)] == [
        "950",
        "1.2k",
        "18k",
        "3.4M",
    ]
    assert [formats.size(number) for number in (1, 950, 12_400)] == ["1 byte", "950 bytes", "12 kB"]
    assert formats.grouped(1_234_567) == "1,234,567"
    amounts = (0, 0.004, 0.5, 1_234.5)
    assert [formats.cost(dollars) for dollars in amounts] == ["$0.00", "<$0.01", "$0.50", "$1,234"]


def test_what_is_counted_is_named_after_its_number() -> None:
    assert (formats.counted(1, "message"), formats.counted(0, "message")) == ("1 message", "0 messages")
    assert [formats.plural(number, "reply", "replies") for number in (1, 2)] == ["reply", "replies"]


def test_a_duration_is_told_in_two_units_at_most() -> None:
    told = [formats.duration(ms) for ms in (400, 9_960, 41_000, 720_000, 3_600_000, 12_000_000, 187_200_000)]
    assert told == ["0.4 s", "10.0 s", "41 s", "12 min", "1 h", "3 h 20 min", "2 d 4 h"]


def test_a_time_has_one_form_for_each_use() -> None:
    assert formats.moment(AT) == "2025-06-01 12:00 UTC"
    assert formats.exact_moment(AT) == "2025-06-01 12:00:00 UTC"
    assert formats.day(AT) == "2025-06-01"
    assert formats.iso(AT) == "2025-06-01T12:00:00.042Z"
    assert formats.iso(-1) == "1969-12-31T23:59:59.999Z"
    assert formats.utc(AT) == "2025-06-01T12:00:00Z"
    assert formats.local(AT).startswith("2025-06-0")
    assert formats.utc(None) == formats.local(None) == ""


def test_a_time_outside_the_calendar_is_told_as_well_as_it_can_be() -> None:
    shown = [
        each(NEVER)
        for each in (formats.utc, formats.local, formats.exact_moment, formats.moment, formats.day)
    ]
    assert shown == [f"{NEVER} ms"] * 3 + ["an unknown time", "an unknown day"]
    assert formats.iso(NEVER) == ""
