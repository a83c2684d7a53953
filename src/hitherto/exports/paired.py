"""Messages in which tool calls stand together with their results. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hitherto.model import Entry, ToolCall, ToolResult

MOST_HELD = 50
"""So many messages wait for results at most: memory stays small however long the session is."""


class Message(NamedTuple):
    """A message of the conversation, by its number, and the results of its calls by their ids."""

    number: int
    entry: Entry
    mark: bool
    results: dict[str, ToolResult]

    def calls(self) -> Iterator[ToolCall]:
        """What is called in it."""
        return (part for part in self.entry.parts if isinstance(part, ToolCall))

    def waits(self) -> bool:
        """Whether a result is still to come."""
        return any(call.id not in self.results for call in self.calls())


class Pairing:
    """Takes the entries in their order and gives them back in it; those that only bring results become part of the calls."""

    def __init__(self) -> None:
        self._count = 0
        self._held: list[Message] = []

    def add(self, entry: Entry, *, mark: bool) -> list[Message]:
        """The messages that are whole with this one."""
        self._count += 1
        if not mark and self._answers(entry):
            return [] if any(each.waits() for each in self._held) else self.rest()
        ended = self.rest() if mark or entry.role == "user" else []
        own = {part.id: part for part in entry.parts if isinstance(part, ToolResult)}
        self._held.append(Message(self._count, entry, mark, own))
        whole = not any(each.waits() for each in self._held)
        return [*ended, *(self.rest() if whole or len(self._held) > MOST_HELD else ())]

    def rest(self) -> list[Message]:
        """Those that wait for results which do not come."""
        held, self._held = self._held, []
        return held

    def _answers(self, entry: Entry) -> bool:
        """Whether the entry only has results of calls that wait; they now have them."""
        waiting = {
            call.id: each for each in self._held for call in each.calls() if call.id not in each.results
        }
        results = [part for part in entry.parts if isinstance(part, ToolResult) and part.id in waiting]
        if not results or len(results) < len(entry.parts):
            return False
        for result in results:
            waiting[result.id].results[result.id] = result
        return True
