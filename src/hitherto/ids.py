"""Ids: UUIDs of version 7, so that ids sort by the time they were made."""

from __future__ import annotations

import os
import time


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def uuid7() -> str:
    """A new id: 48 bits of milliseconds, then 74 random ones."""
    return uuid7_of(now_ms(), os.urandom(10))


def uuid7_of(ms: int, chance: bytes) -> str:
    """The id of this moment with these bits, of which at least ten bytes are needed."""
    time_part, noise = f"{ms & 0xFFFFFFFFFFFF:012x}", chance[:10].hex()
    variant = "89ab"[int(noise[4], 16) & 3]
    return f"{time_part[:8]}-{time_part[8:]}-7{noise[1:4]}-{variant}{noise[5:8]}-{noise[8:]}"
