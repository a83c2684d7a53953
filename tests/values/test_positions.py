"""Positions: the same text for the same numbers, and an order in which lanes do not wait for each other."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.errors import InvalidInput
from hitherto.values.positions import BEGINNING, MOST_LANES, checked_position, covers, numbers_of, position_of

NUMBERS = st.lists(st.integers(0, 10**17), min_size=1, max_size=MOST_LANES)


@given(NUMBERS)
def test_the_numbers_of_a_position_come_back(numbers: list[int]) -> None:
    position = position_of(numbers)
    assert numbers_of(position, MOST_LANES) == numbers + [0] * (MOST_LANES - len(numbers))
    assert position_of(numbers_of(position, MOST_LANES)) == position == checked_position(position)


@given(NUMBERS, NUMBERS)
def test_a_position_covers_what_is_behind_it_in_every_lane(one: list[int], other: list[int]) -> None:
    size = max(len(one), len(other))
    mine, theirs = (each + [0] * (size - len(each)) for each in (one, other))
    behind = all(number <= reached for reached, number in zip(mine, theirs, strict=True))
    assert covers(position_of(one), position_of(other)) is behind
    assert covers(position_of(one), position_of(one))
    assert covers(position_of(one), BEGINNING)


def test_lanes_are_counted_for_themselves() -> None:
    assert position_of([0, 0]) == BEGINNING
    assert position_of([7]) == "7"
    assert position_of([0, 3, 0]) == "0.3"
    assert not covers("9", "0.1")
    assert not covers("0.1", "9")
    assert covers("9.1", "9")


@pytest.mark.parametrize(
    "text", ["", ".", "1.", ".1", "-1", "1..2", "1 ", "x", "٣", "1" * 19, ".".join("1" * 65)]
)
def test_what_no_store_gave_is_refused(text: str) -> None:
    for ask in (
        checked_position,
        lambda given: numbers_of(given, MOST_LANES),
        lambda given: covers("1", given),
    ):
        with pytest.raises(InvalidInput):
            ask(text)


def test_a_number_is_no_position_and_one_of_many_lanes_is_not_of_a_store_with_one() -> None:
    with pytest.raises(InvalidInput, match="is no position"):
        checked_position(cast("str", 1))
    with pytest.raises(InvalidInput, match="of another store"):
        numbers_of("1.2", 1)
