"""The texts of a conversation that was read, and of the branches beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hitherto.model import Entry, Text
from hitherto.service.compaction.imported import Branch

Told = tuple[list[str], list[list[str]]]


def texts_of(entries: Iterable[Entry]) -> list[str]:
    return [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]


def told(entries: Sequence[Entry], branches: Sequence[Branch]) -> Told:
    """The texts of the conversation, and of each branch those before it and its own."""
    at = len(entries) - sum(branch.size for branch in branches)
    conversation, lines = entries[:at], list[list[str]]()
    ways = {entry.id: list(entries[: place + 1]) for place, entry in enumerate(conversation)}
    for branch in branches:
        way = list(ways[branch.after]) if branch.after is not None else []
        for entry in entries[at : at + branch.size]:
            way.append(entry)
            ways[entry.id] = list(way)
        lines.append(texts_of(way))
        at += branch.size
    return texts_of(conversation), lines
