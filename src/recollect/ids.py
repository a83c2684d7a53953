"""Ids: UUIDs of version 7, so that ids sort by the time they were made."""

from __future__ import annotations

import os
import time


def now_ms() -> int:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


def uuid7() -> str:
    """A new id: 48 bits of milliseconds, then 74 random ones."""
    value = now_ms() << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
