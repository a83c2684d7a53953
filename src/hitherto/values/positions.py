"""Positions in the feed of an owner's changes: opaque to everybody but the stores.

A store numbers an owner's changes in one lane or in several, each lane for itself, so that writers in different lanes
need not wait for each other. A session stays in one lane. A position says for every lane up to which number it was read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitherto.errors import InvalidInput

BEGINNING = "0"
"""Before the first change."""
MOST_LANES = 64

_WRITTEN = re.compile(rf"[0-9]{{1,18}}(\.[0-9]{{1,18}}){{0,{MOST_LANES - 1}}}")


def position_of(numbers: Sequence[int]) -> str:
    """The position after these numbers, one for each lane; the same numbers always give the same text."""
    last = max((at for at, number in enumerate(numbers, 1) if number), default=1)
    return ".".join(map(str, numbers[:last])) or BEGINNING


def numbers_of(position: str, lanes: int) -> list[int]:
    """The number of each lane. Raises `InvalidInput` if no store with so many lanes gave this position."""
    numbers = [int(number) for number in checked_position(position).split(".")]
    if len(numbers) > lanes:
        raise InvalidInput("this position is of another store: begin without one")
    return numbers + [0] * (lanes - len(numbers))


def checked_position(position: str) -> str:
    """The position, if it is one. Raises `InvalidInput`."""
    if not isinstance(position, str) or not _WRITTEN.fullmatch(position):
        raise InvalidInput(
            f"{position!r:.40} is no position: use one that came with a change, or {BEGINNING!r} for the beginning"
        )
    return position


def covers(position: str, other: str) -> bool:
    """Whether nothing up to the other position lies beyond this one."""
    mine, theirs = (numbers_of(each, MOST_LANES) for each in (position, other))
    return all(number <= reached for number, reached in zip(theirs, mine, strict=True))
