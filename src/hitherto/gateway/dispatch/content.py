"""Messages as callers write them, as drafts of entries. Pure.

The content of a message is a text, or a list of blocks: those of this program, and as well those of MCP and of the Agent
Client Protocol, which write `mimeType` and put what a resource holds into an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import field

from hitherto.errors import InvalidInput
from hitherto.exports.messages import arguments_of
from hitherto.gateway.dispatch.schema import Number, Params
from hitherto.model import (
    Audio,
    Draft,
    Entry,
    Image,
    Json,
    Origin,
    Part,
    Resource,
    ResourceLink,
    Role,
    Sender,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
)
from hitherto.values.token_count import ESTIMATED, tokens_of


class _Block(Params, frozen=True, kw_only=True):
    pass


class TextBlock(_Block, frozen=True, kw_only=True, tag="text"):
    """A text."""

    text: str


class ThoughtBlock(_Block, frozen=True, kw_only=True, tag="thought"):
    """What the assistant thought."""

    text: str


class ImageBlock(_Block, frozen=True, kw_only=True, tag="image"):
    """An image: its data in base64, or its address."""

    mime_type: str | None = None
    mimeType: str | None = None  # noqa: N815 - as other protocols write it
    data: str | None = None
    uri: str | None = None


class AudioBlock(_Block, frozen=True, kw_only=True, tag="audio"):
    """Sound, in base64."""

    data: str
    mime_type: str | None = None
    mimeType: str | None = None  # noqa: N815


class Embedded(_Block, frozen=True, kw_only=True):
    """What a resource holds."""

    uri: str
    mime_type: str | None = None
    mimeType: str | None = None  # noqa: N815
    text: str | None = None
    blob: str | None = None


class ResourceBlock(_Block, frozen=True, kw_only=True, tag="resource"):
    """A resource with what it holds, either beside its address or in an object."""

    resource: Embedded | None = None
    uri: str | None = None
    mime_type: str | None = None
    mimeType: str | None = None  # noqa: N815
    text: str | None = None
    blob: str | None = None


class LinkBlock(_Block, frozen=True, kw_only=True, tag="resource_link"):
    """The address of a resource."""

    uri: str
    name: str | None = None
    mime_type: str | None = None
    mimeType: str | None = None  # noqa: N815
    title: str | None = None
    description: str | None = None
    size: Number | None = None


Block = TextBlock | ThoughtBlock | ImageBlock | AudioBlock | ResourceBlock | LinkBlock
Content = str | tuple[Block, ...]


class Function(Params, frozen=True, kw_only=True):
    """A call as OpenAI's API writes it: the arguments are JSON in a string."""

    name: str
    arguments: str = ""


class NewToolCall(Params, frozen=True, kw_only=True):
    """A tool that the assistant has called."""

    id: str
    name: str | None = None
    input: Any = None
    type: Literal["function"] | None = None
    function: Function | None = None


class SenderOf(Params, frozen=True, kw_only=True):
    """Who wrote a message: an id that never changes, and the name that others see."""

    id: str
    name: str | None = None


class Attachment(Params, frozen=True, kw_only=True):
    """A file beside the text: its data in base64, or its address."""

    mime_type: str
    name: str | None = None
    data: str | None = None
    uri: str | None = None


class NewUsage(Params, frozen=True, kw_only=True):
    """What an answer has used, as far as it is known; `input_tokens` includes cached ones."""

    input_tokens: Number | None = None
    output_tokens: Number | None = None
    cache_read_tokens: Number | None = None
    cache_write_tokens: Number | None = None
    cost_usd: float | None = None


class NewMessage(Params, frozen=True, kw_only=True):
    """A message to be appended; that of a tool says to which call it is the result, that of an assistant may say which model
    made it and what it used."""

    role: Role
    content: Content | None = None
    timestamp: Number | None = None
    tool_calls: tuple[NewToolCall, ...] = ()
    tool_call_id: str | None = None
    is_error: bool = False
    message_id: str | None = None
    model: str | None = None
    usage: NewUsage | None = None
    sender: SenderOf | None = None
    reply_to: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()


def drafts_of(messages: Sequence[NewMessage]) -> list[Draft]:
    """What is to be appended; tokens are estimated, and marked so."""
    return [_draft(message) for message in messages]


def parts_of(content: Content) -> tuple[Part, ...]:
    """A prompt, or what a message says."""
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    return tuple(map(_part, content))


def origin_of(given: SenderOf | None, reply_to: str | None, metadata: Json) -> Origin | None:
    """Where a message comes from; None if nothing is said about it."""
    sender = None if given is None else Sender(id=given.id, name=given.name)
    origin = Origin(sender=sender, reply_to=reply_to, metadata=metadata)
    return None if origin == Origin() else origin


def attached(given: Sequence[Attachment]) -> tuple[Part, ...]:
    """Files as parts of a message."""
    return tuple(map(_attachment, given))


def _attachment(given: Attachment) -> Part:
    if (given.data is None) == (given.uri is None):
        raise InvalidInput("an attachment needs data or uri, and not both")
    kind = given.mime_type.partition("/")[0]
    if kind == "image":
        return Image(mime_type=given.mime_type, data=given.data, uri=given.uri)
    if given.uri is not None:
        return ResourceLink(uri=given.uri, name=given.name, mime_type=given.mime_type)
    if kind == "audio":
        return Audio(mime_type=given.mime_type, data=given.data or "")
    return Resource(uri=f"attachment:{given.name or 'file'}", mime_type=given.mime_type, blob=given.data)


def _draft(given: NewMessage) -> Draft:
    said = (*parts_of(given.content or ""), *attached(given.attachments))
    if given.role == "tool" and given.tool_call_id is not None:
        said = (ToolResult(id=given.tool_call_id, content=said, is_error=given.is_error),)
    elif given.tool_call_id is not None or given.is_error:
        raise InvalidInput("only messages with the role tool can have tool_call_id and is_error")
    if (given.tool_calls or given.model or given.usage) and given.role != "assistant":
        raise InvalidInput("only messages with the role assistant can have tool_calls, model and usage")
    parts = (*said, *map(_call, given.tool_calls))
    usage = None if given.usage is None else _usage(given.usage)
    counted = tokens_of(Entry(id="", at=0, role=given.role, parts=parts, usage=usage))
    meta: Json = {ESTIMATED: True} if counted.estimated else {}
    return Draft(
        role=given.role,
        parts=parts,
        id=given.message_id,
        at=given.timestamp,
        model=given.model,
        usage=usage,
        tokens=counted.number,
        meta=meta,
        origin=origin_of(given.sender, given.reply_to, given.metadata),
    )


def _usage(given: NewUsage) -> Usage:
    return Usage(
        input=given.input_tokens,
        output=given.output_tokens,
        cache_read=given.cache_read_tokens,
        cache_write=given.cache_write_tokens,
        cost=given.cost_usd,
    )


def _call(given: NewToolCall) -> ToolCall:
    if given.function is None:
        if not given.name:
            raise InvalidInput("a tool call needs a name")
        return ToolCall(id=given.id, name=given.name, input=given.input)
    return ToolCall(id=given.id, name=given.function.name, input=arguments_of(given.function.arguments))


def _part(block: Block) -> Part:
    match block:
        case TextBlock():
            return Text(text=block.text)
        case ThoughtBlock():
            return Thought(text=block.text)
        case ImageBlock():
            return _image(block)
        case AudioBlock():
            return Audio(mime_type=_kind(block.mime_type or block.mimeType), data=block.data)
        case ResourceBlock():
            return _resource(block)
    return ResourceLink(
        uri=block.uri,
        name=block.name,
        mime_type=block.mime_type or block.mimeType,
        title=block.title,
        description=block.description,
        size=block.size,
    )


def _image(block: ImageBlock) -> Image:
    if block.data is None and block.uri is None:
        raise InvalidInput("an image needs data or uri")
    kind = _kind(block.mime_type or block.mimeType)
    return Image(mime_type=kind, data=block.data, uri=block.uri)


def _resource(block: ResourceBlock) -> Resource:
    held = block.resource or block
    if held.uri is None:
        raise InvalidInput("a resource needs a uri")
    return Resource(uri=held.uri, mime_type=held.mime_type or held.mimeType, text=held.text, blob=held.blob)


def _kind(given: str | None) -> str:
    if not given:
        raise InvalidInput("mime_type is required for images and audio")
    return given
