"""The size of a value or a message, and shortening it to fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from hitherto.model import (
    Json,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)

OUTPUT_BYTES = 4_096
"""How much of a tool's structured result is kept: most of it repeats the output or the whole file."""


def json_size(value: Any, most: int) -> int:
    """About how many bytes a value takes; counting stops beyond `most`."""
    size, stack = 0, [value]
    while stack and size <= most:
        item = stack.pop()
        size += len(item) + 2 if isinstance(item, str) else 8
        if isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return size


def shortened(parts: Iterable[Part], room: int) -> tuple[Part, ...]:
    """The parts of a message that is too long, shortened to `room` characters: texts are cut, data is left out."""
    kept: list[Part] = []
    for part in parts:
        if room <= 0:
            break
        kept.append(piece := _shortened(part, room))
        room -= json_size(msgspec.to_builtins(piece), room) + 100
    return tuple(kept)


def _shortened(part: Part, room: int) -> Part:
    match part:
        case Text() | Thought():
            return replace(part, text=part.text[:room])
        case ToolResult():
            return replace(part, content=shortened(part.content, room))
        case ToolCall():
            return replace(part, input=_short_fields(part.input) if isinstance(part.input, dict) else None)
    return Text(text="[left out: too large to be kept]")


def _short_fields(value: Json) -> Json:
    kept: Json = {}
    room = OUTPUT_BYTES
    for name, item in value.items():
        room -= (size := json_size(item, room)) + len(name)
        if room < 0:
            room += size + len(name)
            continue
        kept[name] = item
    return kept
