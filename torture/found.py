"""What the trials found in the program, and the test that holds each repair."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """A fault of the program that a trial brought to light."""

    fault: str
    mended: str
    test: str


FOUND: tuple[Found, ...] = ()
