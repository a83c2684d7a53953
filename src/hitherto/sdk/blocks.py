"""What is said, in the blocks of Anthropic's Messages API: parts of entries as blocks, and prompts as parts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hitherto.errors import InvalidInput
from hitherto.model import (
    Audio,
    Image,
    Json,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    encode,
)
from hitherto.sources.claude.parts import parts_of
from hitherto.sources.claude.records import blocks_of

PromptPart = Text | Image | Audio | Resource | ResourceLink
"""The parts that a prompt may have."""
Prompt = str | Sequence[str | PromptPart | Mapping[str, Any]]
"""A text, or texts, parts and blocks of Anthropic's in a row."""


def prompt_parts(prompt: Prompt) -> tuple[Part, ...]:
    """The parts of a prompt. Raises `InvalidInput` if it is empty or cannot be said."""
    if isinstance(prompt, str):
        prompt = [prompt]
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise InvalidInput(f"a prompt must be a string or a list of parts, not {type(prompt).__name__}")
    parts = tuple(part for item in prompt for part in _item_parts(item))
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        raise InvalidInput("a prompt cannot be empty")
    return parts


def blocks(parts: Iterable[Part]) -> list[Json]:
    """Parts as blocks, in their order."""
    return [_BLOCKS[type(part)](part) for part in parts]


def usage_of(usage: Usage | None) -> dict[str, int | None]:
    """A usage in Anthropic's words, whose `input_tokens` leave out what was cached."""
    used = usage or Usage()
    cached = (used.cache_read or 0) + (used.cache_write or 0)
    return {
        "input_tokens": None if used.input is None else used.input - cached,
        "output_tokens": used.output,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation_input_tokens": used.cache_write,
    }


def _item_parts(item: object) -> tuple[Part, ...]:
    if isinstance(item, str):
        return (Text(text=item),)
    if isinstance(item, PromptPart):
        return (item,)
    parts = _block_parts(item) if isinstance(item, Mapping) else ()
    if not parts or not all(isinstance(part, PromptPart) for part in parts):
        raise InvalidInput(f"not a valid part of a prompt: {item!r:.200}")
    return parts


def _block_parts(block: Mapping[str, Any]) -> tuple[Part, ...]:
    try:
        data = encode([dict(block)])
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a block of a prompt must be JSON: {error}") from None
    return parts_of(blocks_of(msgspec.Raw(data)), {})


def _image(part: Image) -> Json:
    if part.data is None:
        return {"type": "image", "source": {"type": "url", "url": part.uri}}
    return {"type": "image", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}


def _audio(part: Audio) -> Json:
    return {"type": "audio", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}


def _document(part: Resource) -> Json:
    kind, data = ("text", part.text) if part.blob is None else ("base64", part.blob)
    source = {"type": kind, "media_type": part.mime_type or "text/plain", "data": data or ""}
    return {"type": "document", "title": part.uri, "source": source}


def _link(part: ResourceLink) -> Json:
    return {"type": "document", "title": part.title or part.name, "source": {"type": "url", "url": part.uri}}


def _result(part: ToolResult) -> Json:
    return {
        "type": "tool_result",
        "tool_use_id": part.id,
        "content": blocks(part.content),
        "is_error": part.is_error,
    }


_BLOCKS: dict[type, Callable[[Any], Json]] = {
    Text: lambda part: {"type": "text", "text": part.text},
    Thought: lambda part: {"type": "thinking", "thinking": part.text, "signature": part.signature or ""},
    Image: _image,
    Audio: _audio,
    Resource: _document,
    ResourceLink: _link,
    ToolCall: lambda part: {"type": "tool_use", "id": part.id, "name": part.name, "input": part.input},
    ToolResult: _result,
    Plan: lambda part: {"type": "plan", "steps": list(part.steps)},
    Unknown: lambda part: part.raw if isinstance(part.raw, dict) else {"type": "unknown", "raw": part.raw},
}
