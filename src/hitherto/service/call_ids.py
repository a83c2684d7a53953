"""Ids of tool calls. Some providers count from zero in each answer; in a session each call has an id of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from hitherto.model import Entry, Part, ToolCall


class CallIds:
    """The ids of one turn's calls: as the engine says them, and as they are stored."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._stored: dict[str, str] = {}

    def taken(self, parts: Sequence[Part], history: Iterable[Entry]) -> tuple[Part, ...]:
        """The parts of a message, each call with an id that neither the history nor an earlier message has."""
        if not any(isinstance(part, ToolCall) for part in parts):
            return tuple(parts)
        if not self._used:
            self._used = {part.id for entry in history for part in entry.parts if isinstance(part, ToolCall)}
        kept = tuple(self._renamed(part) if isinstance(part, ToolCall) else part for part in parts)
        self._used.update(part.id for part in kept if isinstance(part, ToolCall))
        return kept

    def stored(self, said: str) -> str:
        """The id under which the newest call that the engine means by this one is stored."""
        return self._stored.get(said, said)

    def _renamed(self, call: ToolCall) -> ToolCall:
        fresh, count = call.id, 1
        while fresh in self._used:
            count += 1
            fresh = f"{call.id}-{count}"
        self._stored[call.id] = fresh
        return call if fresh == call.id else replace(call, id=fresh)
