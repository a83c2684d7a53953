"""What a model is shown of a part: text, or a file that it can look at. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from pydantic_ai.messages import BinaryContent

from hitherto.engines.capabilities import FILES, IMAGES
from hitherto.engines.tool_calls import DEEPEST
from hitherto.engines.tools.file_types import KNOWN, kind_of
from hitherto.engines.tools.limits import IMAGE_BYTES
from hitherto.model import Audio, Image, Part, Resource, ResourceLink, Text, encode

Rendered = str | BinaryContent

TOO_DEEP = "(nested too deep to be shown)"


def render_parts(parts: Iterable[Part], provider: str) -> list[Rendered]:
    """What these parts show, in order, text that stands together as one; parts that show nothing are left out."""
    found: list[Rendered] = []
    for item in (item for part in parts for item in _render_part(part, provider)):
        if isinstance(item, str) and found and isinstance(before := found[-1], str):
            found[-1] = f"{before}\n\n{item}"
        else:
            found.append(item)
    return found


def clean(text: str) -> str:
    """The text as it can be sent: real transcripts hold lone surrogates, which no wire carries."""
    return text.encode("utf-8", "replace").decode()


def clean_value(value: Any, depth: int = 0) -> Any:
    """A JSON value with all its text clean, cut where it is nested too deep to be sent."""
    match value:
        case str():
            return clean(value)
        case dict() | list() | tuple() if depth == DEEPEST:
            return TOO_DEEP
        case dict():
            return {clean(str(name)): clean_value(inner, depth + 1) for name, inner in value.items()}
        case list() | tuple():
            return [clean_value(inner, depth + 1) for inner in value]
    return value


def _render_part(part: Part, provider: str) -> Iterator[Rendered]:
    match part:
        case Text(text=text) if text.strip():
            yield clean(text)
        case Image(data=str(data), mime_type=kind) | Audio(data=data, mime_type=kind):
            yield _file(data, kind, provider)
        case Image(uri=str(uri)):
            yield clean(f"[image: {uri}]")
        case Resource(text=str(text), uri=uri):
            yield clean(f'<resource uri="{escape(uri)}">\n{text}\n</resource>')
        case Resource(blob=str(blob), mime_type=str(kind)):
            yield _file(blob, kind, provider)
        case Resource(uri=uri):
            yield clean(f"[resource: {uri}]")
        case ResourceLink():
            yield clean(_link(part))


def _file(data: str, kind: str, provider: str) -> Rendered:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return clean(f"[{kind}: cannot be read]")
    found = kind_of(content) if kind in KNOWN else kind
    if reason := _why_not_shown(content, found, provider):
        return clean(f"[{kind}, {len(content)} bytes: {reason}]")
    return BinaryContent(data=content, media_type=found or kind)


def _why_not_shown(content: bytes, kind: str | None, provider: str) -> str | None:
    """Why a model is not shown this file: providers refuse a conversation with what they cannot read in it."""
    if kind is None:
        return "cannot be read"
    if not content or kind not in FILES.get(provider, IMAGES):
        return "cannot be shown to this model"
    return "too large to be shown" if kind in IMAGES and len(content) > IMAGE_BYTES else None


def _link(link: ResourceLink) -> str:
    name = link.title or link.name
    label = f"[resource: {name} <{link.uri}>]" if name else f"[resource: {link.uri}]"
    return f"{label}\n{link.description}" if link.description else label


def structured(output: object) -> str:
    """Structured output of a tool, as text."""
    return encode(output).decode("utf-8", "replace")
