"""How much is done for one result: what takes too long, or too much memory, is given up for something quicker.

The limit counts CPU time, so that a busy machine changes no result. It works by a signal, which also interrupts a
regular expression, and only in the main thread of a process that called `begin`; elsewhere nothing is limited.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

PARTS = 8
"""One part, such as a block of code, may take at most this share of the whole."""
AGAIN_SECONDS = 0.05
"""Somebody may have swallowed the first interruption."""


class _TooSlow(BaseException):
    """Raised wherever the process is when the time is over; no `except Exception` in between stops it."""


class _Clock:
    """When the whole and the part that runs must be done, in CPU seconds of this process."""

    def __init__(self) -> None:
        self.whole: float | None = None
        self.share = 0.0
        self.part: float | None = None

    def arm(self, part: float | None) -> None:
        """Interrupt when this moment has come; never with None."""
        self.part = part
        left = 0.0 if part is None else max(part - time.process_time(), 0.001)
        signal.setitimer(signal.ITIMER_PROF, left, AGAIN_SECONDS if left else 0.0)

    def interrupt(self, _: int, __: FrameType | None) -> None:
        if self.part is not None:
            raise _TooSlow


_clock = _Clock()


def begin(seconds: float) -> None:
    """From now on all parts together have so many CPU seconds; with 0 each is given up at once."""
    signal.signal(signal.SIGPROF, _clock.interrupt)
    _clock.whole, _clock.share = time.process_time() + seconds, seconds / PARTS


def bounded(work: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """The result of the work, or of `otherwise`, which is quick and small, if the work is not."""
    if _clock.whole is None:
        return work()
    outer, now = _clock.part, time.process_time()
    until = min(_clock.whole if outer is None else outer, _clock.whole, now + _clock.share)
    if until <= now:
        return otherwise()
    try:
        try:
            _clock.arm(until)
            result = work()
        finally:
            _clock.part = None
    except (_TooSlow, MemoryError):
        result = otherwise()
    _clock.arm(outer)
    return result
