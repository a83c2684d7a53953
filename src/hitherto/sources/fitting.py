"""Entries that fit into the store, whatever their records held. Pure."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.limits import ENTRY_BYTES
from hitherto.model import Entry, Text
from hitherto.sources.claude_parts import shortened
from hitherto.sources.claude_records import is_deep

LONGEST = ENTRY_BYTES // 2
"""A record that is longer becomes an entry that is cut."""
TOO_DEEP = Text(text="[left out: nested too deeply]")


def fitted(entry: Entry, record: bytes | memoryview) -> Entry:
    """The entry that was made of a record, cut if that is too long to be kept, or empty if it is nested too deeply."""
    if len(record) > LONGEST:
        return replace(entry, parts=shortened(entry.parts, LONGEST // 8), meta={**entry.meta, "cut": True})
    if is_deep(record):
        return replace(entry, parts=(TOO_DEEP,), meta={**entry.meta, "cut": True})
    return entry
