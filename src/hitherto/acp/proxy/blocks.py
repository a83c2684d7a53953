"""Content blocks of any agent, well written or not, as parts that can be kept. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto.acp import content
from hitherto.acp.content import ContentBlock
from hitherto.limits import ENTRY_BYTES
from hitherto.model import Part, Text, Unknown, encode

MOST_BYTES = ENTRY_BYTES // 4
"""What is larger is not kept, but that it was there: an entry must have room for it, and for what stands beside it."""
TOO_LARGE = "[{} bytes, too many to be kept]"


def parts_of(blocks: Any) -> tuple[Part, ...]:
    """The parts of a prompt; what is no list has none."""
    return tuple(map(part_of, blocks)) if isinstance(blocks, list) else ()


def part_of(block: Any) -> Part:
    """A content block as a part: of a kind that is not known, kept as it came."""
    size = len(encode(block))
    if size > MOST_BYTES:
        return Text(text=TOO_LARGE.format(size))
    try:
        known: ContentBlock = msgspec.convert(block, ContentBlock)
    except (msgspec.ValidationError, ValueError):
        return Unknown(raw=block)
    return content.parts_of((known,))[0]


def results_of(shown: Any, terminals: dict[str, str]) -> tuple[Part, ...]:
    """What a tool call shows. Of a terminal of the editor's, it is what was seen in it."""
    return tuple(_result_of(item, terminals) for item in shown) if isinstance(shown, list) else ()


def _result_of(item: Any, terminals: dict[str, str]) -> Part:
    match item:
        case {"type": "content", "content": block}:
            return part_of(block)
        case {"type": "terminal", "terminalId": str(number)} if number in terminals:
            return Text(text=terminals[number][-MOST_BYTES // 4 :])
    return part_of(item)


def text_within(value: Any) -> Any:
    """A value, unless it is too large to be kept."""
    if value is None:
        return None
    size = len(encode(value))
    return value if size <= MOST_BYTES else TOO_LARGE.format(size)
