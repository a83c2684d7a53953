"""Content blocks of the protocol and parts of our entries, each as the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hitherto import model
from hitherto.acp.protocol import entry_bytes
from hitherto.engines.capabilities import Reads
from hitherto.model import Audio, Image, Part, Resource, ResourceLink
from hitherto.rpc.frames import invalid

Block = dict[str, Any]


# What a client sends


class TextBlock(msgspec.Struct, frozen=True, tag="text"):
    text: str


class ImageBlock(msgspec.Struct, frozen=True, tag="image", rename="camel"):
    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(msgspec.Struct, frozen=True, tag="audio", rename="camel"):
    data: str
    mime_type: str


class LinkBlock(msgspec.Struct, frozen=True, tag="resource_link", rename="camel"):
    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: Annotated[int, Meta(ge=0)] | None = None


class Embedded(msgspec.Struct, frozen=True, rename="camel"):
    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


class ResourceBlock(msgspec.Struct, frozen=True, tag="resource"):
    resource: Embedded


ContentBlock = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


def parts_of(blocks: Sequence[ContentBlock]) -> tuple[Part, ...]:
    """A prompt as parts of an entry."""
    if not blocks:
        raise invalid("a prompt needs at least one content block")
    return tuple(map(_part, blocks))


def _part(block: ContentBlock) -> Part:
    match block:
        case TextBlock():
            return model.Text(text=block.text)
        case ImageBlock():
            return Image(mime_type=block.mime_type, data=block.data, uri=block.uri)
        case LinkBlock():
            return ResourceLink(
                uri=block.uri,
                name=block.name,
                mime_type=block.mime_type,
                title=block.title,
                description=block.description,
                size=block.size,
            )
        case AudioBlock():
            return Audio(mime_type=block.mime_type, data=block.data)
        case ResourceBlock(resource=held):
            if held.text is None and held.blob is None:
                raise invalid("an embedded resource needs a text or a blob")
            return Resource(uri=held.uri, mime_type=held.mime_type, text=held.text, blob=held.blob)


def expect_readable(parts: Sequence[Part], reads: Reads) -> None:
    """Refuse content that the model cannot read: once stored, it would break every later turn."""
    unread = {Image: not reads.image, Audio: not reads.audio, Resource: not reads.embedded}
    for part in parts:
        if unread.get(type(part)):
            kind = type(part).__name__.lower()
            raise invalid(f"the model of this session does not read {kind} content")


# What a client gets


def block_of(part: entry_bytes.Piece) -> Block | None:
    """A part of an entry as a content block; None for tools, plans and unknown parts."""
    match part:
        case entry_bytes.Text() | entry_bytes.Thought():
            return {"type": "text", "text": part.text}
        case Image(data=str(data)):
            return _given(type="image", data=data, mimeType=part.mime_type, uri=part.uri)
        case Audio():
            return {"type": "audio", "data": part.data, "mimeType": part.mime_type}
        case Image(uri=str(uri)):
            return _given(type="resource_link", uri=uri, name=_last(uri), mimeType=part.mime_type)
        case Resource():
            return _resource(part)
        case ResourceLink():
            return _link(part)
    return None


def _resource(part: Resource) -> Block:
    if part.text is None and part.blob is None:
        return _given(type="resource_link", uri=part.uri, name=_last(part.uri), mimeType=part.mime_type)
    held = {"text": part.text} if part.text is not None else {"blob": part.blob}
    return {"type": "resource", "resource": _given(uri=part.uri, mimeType=part.mime_type, **held)}


def _link(part: ResourceLink) -> Block:
    return _given(
        type="resource_link",
        uri=part.uri,
        name=part.name or part.title or _last(part.uri),
        mimeType=part.mime_type,
        title=part.title,
        description=part.description,
        size=part.size,
    )


def _given(**fields: Any) -> Block:
    return {name: value for name, value in fields.items() if value is not None}


def _last(uri: str) -> str:
    """A name for a URI: its last segment."""
    return uri.rstrip("/").rpartition("/")[2] or uri
