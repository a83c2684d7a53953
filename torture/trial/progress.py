"""What is said while rows are tried: whose line it is, how long it may take, and that the trial is still at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Say = Callable[[str], None]
PAUSE = 300.0
"""A trial that takes longer is heard of so often, in seconds."""
MINUTE, HOUR = 60, 3600
LONG = 100 * MINUTE
"""From here on a time is told in hours."""


def duration(seconds: float) -> str:
    """A time in words, as exact as somebody who waits needs it."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < LONG else f"{seconds / HOUR:.1f} h"


def spoken_by(key: str, say: Say) -> Say:
    """Say it with the key of the row before each line."""

    def prefixed(text: str) -> None:
        for line in text.splitlines():
            say(f"{key}  {line}")

    return prefixed


@contextmanager
def ticking(say: Say, pause: float = PAUSE) -> Iterator[None]:
    """Until the block ends, say now and then for how long it has been at work."""
    ended, began = threading.Event(), time.monotonic()

    def tick() -> None:
        while not ended.wait(pause):
            say(f"at work for {duration(time.monotonic() - began)}")

    ticker = threading.Thread(target=tick, name="progress", daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
