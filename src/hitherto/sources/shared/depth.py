"""How deep a JSON record is nested. Pure."""

from __future__ import annotations

import re

DEEPEST = 100
"""Deeper records are not conversation; the limits of JSON readers and writers are a little higher."""
_NESTING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]')
_OPENING = frozenset((b"[", b"{"))
_CLOSING = frozenset((b"]", b"}"))


def is_deep(record: bytes | memoryview) -> bool:
    """Whether a record is nested too deeply for some JSON writers."""
    line = bytes(record)
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for token in _NESTING.finditer(line):
        if (sign := token.group()) in _OPENING:
            depth += 1
            if depth > DEEPEST:
                return True
        elif sign in _CLOSING:
            depth -= 1
    return False
