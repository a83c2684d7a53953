"""An entry as a message of a chat, `{role, content, timestamp, tool_calls}`, and such a message as an entry. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import to_builtins

from hitherto.model import (
    Entry,
    Image,
    Json,
    Part,
    ResourceLink,
    Role,
    Text,
    ToolCall,
    ToolResult,
    decode_json,
)

_DATA = re.compile(r"data:(?P<kind>[\w.+-]+/[\w.+-]+);base64,(?P<data>[A-Za-z0-9+/=]*)")
"""A data URL with base64 content."""


class Function(msgspec.Struct, frozen=True):
    """A call as OpenAI's API writes it: the arguments are JSON in a text."""

    name: str
    arguments: str = ""


class Call(msgspec.Struct, frozen=True):
    """A tool call in any common form; other fields are ignored."""

    name: str | None = None
    id: str = ""
    input: Any = None
    function: Function | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.function is None:
            raise ValueError("a tool call needs a name")


class TextBlock(msgspec.Struct, frozen=True, tag="text"):
    """A text."""

    text: str


class Address(msgspec.Struct, frozen=True):
    """Where an image is, or all of it in a data address."""

    url: str


class ImageBlock(msgspec.Struct, frozen=True, tag="image_url"):
    """An image."""

    image_url: Address


class Message(msgspec.Struct, frozen=True):
    """A message as it may come from anywhere."""

    role: Role | Literal["developer"]
    content: str | tuple[TextBlock | ImageBlock, ...] | None = None
    timestamp: int | None = None
    tool_calls: tuple[Call, ...] | None = None
    tool_call_id: str | None = None


def message(entry: Entry) -> Json:
    """The text of an entry, with its tool calls."""
    message: Json = {"role": entry.role, "content": "\n".join(_texts(entry.parts)), "timestamp": entry.at}
    if entry.origin is not None:
        message |= to_builtins(entry.origin)
    if entry.role == "assistant":
        calls = (part for part in entry.parts if isinstance(part, ToolCall))
        message["tool_calls"] = [{"id": call.id, "name": call.name, "input": call.input} for call in calls]
    return message


def entry_of(given: Message, *, id: str, at: int) -> Entry:
    """A message as an entry; `at` is the time if the message has none."""
    said = _said(given.content)
    if given.role == "tool" and given.tool_call_id is not None:
        said = (ToolResult(id=given.tool_call_id, content=said),)
    when = at if given.timestamp is None else given.timestamp
    role = "system" if given.role == "developer" else given.role
    return Entry(id=id, at=when, role=role, parts=(*said, *map(_call, given.tool_calls or ())))


def arguments_of(text: str) -> Any:
    """The arguments of a call, parsed; text that is not JSON stays text."""
    try:
        return decode_json(text.encode()) if text else None
    except (ValueError, RecursionError):
        return text


def _said(content: str | tuple[TextBlock | ImageBlock, ...] | None) -> tuple[Part, ...]:
    if isinstance(content, tuple):
        return tuple(map(_part, content))
    return (Text(text=content),) if content else ()


def _part(block: TextBlock | ImageBlock) -> Part:
    if isinstance(block, TextBlock):
        return Text(text=block.text)
    held = _DATA.fullmatch(block.image_url.url)
    if held is None:
        return ResourceLink(uri=block.image_url.url)
    return Image(mime_type=held["kind"], data=held["data"])


def _call(given: Call) -> ToolCall:
    if given.function is None:
        return ToolCall(id=given.id, name=given.name or "", input=given.input)
    return ToolCall(id=given.id, name=given.function.name, input=arguments_of(given.function.arguments))


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            yield from _texts(part.content)
