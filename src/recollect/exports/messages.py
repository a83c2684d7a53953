"""An entry as a message of a chat, `{role, content, timestamp, tool_calls}`, and such a message as an entry. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from recollect.model import Entry, Json, Part, Role, Text, ToolCall, ToolResult


class Call(msgspec.Struct, frozen=True):
    """A call of a tool, as programs of many kinds write it; what else they write is not taken."""

    name: str
    id: str = ""
    input: Any = None


class Message(msgspec.Struct, frozen=True):
    """A message as it may come from anywhere."""

    role: Role
    content: str | None = None
    timestamp: int | None = None
    tool_calls: tuple[Call, ...] = ()


def message(entry: Entry) -> Json:
    """What was said, as one text; the calls of tools beside it."""
    told: Json = {"role": entry.role, "content": "\n".join(_texts(entry.parts)), "timestamp": entry.at}
    if entry.role == "assistant":
        calls = (part for part in entry.parts if isinstance(part, ToolCall))
        told["tool_calls"] = [{"id": call.id, "name": call.name, "input": call.input} for call in calls]
    return told


def entry_of(given: Message, *, id: str, at: int) -> Entry:
    """The entry that a message says; `at` is its time if it has none."""
    said: list[Part] = [Text(text=given.content)] if given.content else []
    calls = [ToolCall(id=call.id, name=call.name, input=call.input) for call in given.tool_calls]
    when = at if given.timestamp is None else given.timestamp
    return Entry(id=id, at=when, role=given.role, parts=(*said, *calls))


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            yield from _texts(part.content)
