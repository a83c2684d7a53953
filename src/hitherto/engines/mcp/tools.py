"""What MCP tools give back, as parts of ours."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import mcp_types
from mcp.shared.dispatcher import ProgressFnT
from msgspec.structs import replace

from hitherto.clean_text import clean, clean_lines
from hitherto.engine import ServerPrompt
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.limits import RESULT_BYTES, TITLE_CHARS
from hitherto.model import Audio, Image, Json, Part, Resource, ResourceLink, Text, Unknown, encode

PROGRESS_LINES = 100


def tool_output(result: mcp_types.CallToolResult) -> ToolOutput:
    """A result: its content as parts, its structured content beside them (and as text, if that is all there is)."""
    content: Iterable[Part] = map(part, result.content)
    structured = result.structured_content
    if not result.content and structured is not None:
        content = (Text(text=encode(structured).decode()),)
    return ToolOutput(content=tuple(_bounded(content)), is_error=result.is_error, output=structured)


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


def _bounded(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts with at most `RESULT_BYTES` of text in them, and how much was left out."""
    left, over = RESULT_BYTES, 0
    for part in parts:
        size = _size(part)
        if size <= left:
            left -= size
            yield part
            continue
        over += size - left
        match part:
            case Text(text=text) if left:
                yield Text(text=_cut(text, left))
            case Resource(text=str(text)) if left > size - len(text.encode()):
                yield replace(part, text=_cut(text, left - size + len(text.encode())))
            case _:
                over += left
        left = 0
    if over:
        yield Text(text=f"({over} more bytes omitted)")


def _size(part: Part) -> int:
    """How many bytes of text a model would be shown; files have their own bound."""
    match part:
        case Text(text=text):
            texts: tuple[str | None, ...] = (text,)
        case Resource(uri=uri, text=text):
            texts = (uri, text)
        case ResourceLink(uri=uri, name=name, title=title, description=description):
            texts = (uri, name, title, description)
        case _:
            texts = ()
    return sum(len(text.encode("utf-8", "replace")) for text in texts if text)


def _cut(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def progress_callback(show: Show) -> ProgressFnT:
    """Shows what a server says while it works, line by line."""
    lines: deque[str] = deque(maxlen=PROGRESS_LINES)

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        of = "" if total is None else f"/{total:g}"
        lines.append(message or f"{progress:g}{of}")
        show("\n".join(lines))

    return on_progress


if TYPE_CHECKING:
    import mcp_types

NAME_CHARS = 64
"""The most characters that every provider takes as the name of a tool."""
DIGEST_CHARS = 8
DESCRIPTION_CHARS = 10_000
PROMPT_CHARS = 500

PLAIN_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9_-]*[A-Za-z0-9-]")
PLAIN_TOOL = re.compile(r"[A-Za-z0-9_-]+(?<!_[0-9a-f]{8})")
"""Names that can be read off a name of both: the server's ends at the first two underscores, and no digest follows."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")

Call = Callable[[str, Json, Show], Awaitable[ToolOutput]]
"""Calls a tool of one server by the name that the server has for it."""


def offered_name(server: str, tool: str) -> str:
    """The name that a tool is offered under: always the same, and never that of another tool.

    Where the two cannot be read off it (it would be too long, or they have other characters or too many underscores),
    it ends with a digest of both.
    """
    name = f"mcp__{server}__{tool}"
    if len(name) <= NAME_CHARS and PLAIN_SERVER.fullmatch(server) and PLAIN_TOOL.fullmatch(tool):
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{NOT_IN_NAMES.sub('_', name)[: NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"


def offered_tools(listed: Sequence[tuple[str, Call, mcp_types.Tool]]) -> tuple[Tool, ...]:
    """Tools, out of what each server lists: its name, how to call it, and a tool of it."""
    once: dict[tuple[str, str], tuple[Call, mcp_types.Tool]] = {}
    for server, call, tool in listed:
        once.setdefault((server, tool.name), (call, tool))
    return tuple(_tool(offered_name(*pair), *found) for pair, found in once.items())


def offered_prompt(server: str, prompt: mcp_types.Prompt) -> ServerPrompt:
    """A prompt as it is offered, under a name made like that of a tool."""
    described = clean(prompt.description or prompt.title or "")[:PROMPT_CHARS]
    arguments = ((clean(each.name)[:TITLE_CHARS], bool(each.required)) for each in prompt.arguments or ())
    return ServerPrompt(
        name=offered_name(server, prompt.name),
        description=described or f"A prompt of the MCP server {server}",
        arguments=tuple(arguments),
    )


def _tool(name: str, call: Call, tool: mcp_types.Tool) -> Tool:
    """A tool as it is offered. What it says of itself is cleaned, and makes nobody believe that it is harmless."""
    hints = tool.annotations
    title = clean(tool.title or (hints and hints.title) or "")[:TITLE_CHARS] or None

    async def run(given: Json, show: Show) -> ToolOutput:
        return await call(tool.name, given, show)

    return Tool(
        name=name,
        description=clean_lines(tool.description or "")[:DESCRIPTION_CHARS] or title or "",
        schema=tool.input_schema,
        kind="other",
        call=run,
        title=lambda _: title,
    )
