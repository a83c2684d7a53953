"""Charts as numbers: all that was given is drawn, in the right place, and nothing else."""

from __future__ import annotations

from datetime import date

import pytest

from hitherto.gateway.page.render.charts import (
    AXIS,
    HIGH,
    LEFT,
    PITCH,
    SERIES,
    WIDE,
    Stacks,
    calendar,
    days_between,
    stacks,
)

SUNDAY = date(2026, 11, 15)


def test_a_calendar_has_each_day_once_in_its_week() -> None:
    drawn = calendar({"2026-11-10": 3}, date(2026, 11, 9), SUNDAY)
    assert [day.day for day in drawn.days] == [f"2026-11-{day:02}" for day in range(9, 16)]
    assert {day.x for day in drawn.days} == {LEFT}
    assert [day.y - drawn.days[0].y for day in drawn.days] == [PITCH * at for at in range(7)]
    year = calendar({}, date(2025, 11, 16), SUNDAY)
    assert len({(day.x, day.y) for day in year.days}) == len(year.days) == 365
    assert [told for _, told in year.months][:3] == ["Dec", "Jan", "Feb"]
    assert max(day.x for day in year.days) + PITCH == year.width


def test_a_day_is_as_dark_as_it_was_busy_among_the_others() -> None:
    values = {"2026-11-09": 1, "2026-11-10": 2, "2026-11-11": 3, "2026-11-12": 400, "2026-11-13": 0}
    drawn = calendar(values, date(2026, 11, 9), SUNDAY)
    assert [day.level for day in drawn.days] == [1, 2, 3, 4, 0, 0, 0]
    many = calendar({f"2026-11-{day:02}": day for day in range(1, 16)}, date(2026, 11, 1), SUNDAY)
    assert {day.level for day in many.days} == {1, 2, 3, 4}


def heights(drawn: Stacks, day: str) -> list[tuple[str | None, float]]:
    return [(piece.name, piece.value) for piece in drawn.pieces if piece.day == day]


def test_a_column_is_as_high_as_all_of_its_day() -> None:
    given = [
        ("2026-11-14", "a", 30.0),
        ("2026-11-14", "b", 10.0),
        ("2026-11-15", "b", 4.0),
        ("2026-11-15", "c", 0.0),
    ]
    drawn = stacks(given, days_between(date(2026, 11, 13), SUNDAY))
    assert heights(drawn, "2026-11-14") == [("a", 30.0), ("b", 10.0)]
    assert heights(drawn, "2026-11-15") == [("b", 4.0)]
    lower, upper, other = drawn.pieces
    assert lower.y + lower.height == pytest.approx(HIGH)
    assert upper.y + upper.height == pytest.approx(lower.y)
    assert other.height / lower.height == pytest.approx(4 / 30, rel=1e-3)
    assert [name.name for name in drawn.names] == ["a", "b"]
    assert drawn.lines[-1][1] == 40
    assert drawn.lines[-1][0] == pytest.approx(upper.y)
    assert AXIS <= lower.x < other.x < WIDE


def test_names_beyond_the_first_are_added_up() -> None:
    given = [("2026-11-15", f"n{at}", 10.0 - at) for at in range(SERIES + 2)]
    drawn = stacks(given, [SUNDAY])
    assert [name.name for name in drawn.names] == [f"n{at}" for at in range(SERIES)] + [None]
    assert heights(drawn, "2026-11-15")[-1] == (None, 5.0 + 4.0)


def test_what_is_outside_of_the_days_is_not_drawn() -> None:
    drawn = stacks([("2026-11-01", "a", 5.0), ("2026-12-01", "a", 5.0)], [SUNDAY])
    assert [len(part) for part in (drawn.pieces, drawn.names, drawn.lines)] == [0, 0, 0]
