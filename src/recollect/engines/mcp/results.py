"""What MCP tools give back, as parts of ours."""

from __future__ import annotations

from collections import deque

import mcp_types
from mcp.shared.dispatcher import ProgressFnT

from recollect.engines.toolbox import Ran, Show
from recollect.model import Audio, Image, Part, Resource, ResourceLink, Text, Unknown, encode

PROGRESS_LINES = 100


def ran(result: mcp_types.CallToolResult) -> Ran:
    """A result: its content as parts, its structured content beside them (and as text, if that is all there is)."""
    content = tuple(map(part, result.content))
    structured = result.structured_content
    if not content and structured is not None:
        content = (Text(text=encode(structured).decode()),)
    return Ran(content=content, is_error=result.is_error, output=structured)


def part(block: mcp_types.ContentBlock) -> Part:
    """A piece of content; one of a kind that we do not know is kept as it came."""
    match block:
        case mcp_types.TextContent():
            return Text(text=block.text)
        case mcp_types.ImageContent():
            return Image(mime_type=block.mime_type, data=block.data)
        case mcp_types.AudioContent():
            return Audio(mime_type=block.mime_type, data=block.data)
        case mcp_types.EmbeddedResource():
            return _resource(block.resource)
        case mcp_types.ResourceLink():
            return ResourceLink(
                uri=block.uri,
                name=block.name,
                mime_type=block.mime_type,
                title=block.title,
                description=block.description,
                size=block.size,
            )
    return Unknown(raw=block.model_dump(mode="json", by_alias=True, exclude_none=True))


def _resource(resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents) -> Resource:
    if isinstance(resource, mcp_types.TextResourceContents):
        return Resource(uri=resource.uri, mime_type=resource.mime_type, text=resource.text)
    return Resource(uri=resource.uri, mime_type=resource.mime_type, blob=resource.blob)


def showing(show: Show) -> ProgressFnT:
    """Shows what a server says while it works, line by line."""
    lines: deque[str] = deque(maxlen=PROGRESS_LINES)

    async def said(progress: float, total: float | None, message: str | None) -> None:
        of = "" if total is None else f"/{total:g}"
        lines.append(message or f"{progress:g}{of}")
        show("\n".join(lines))

    return said
