"""The tools of MCP servers as the model is offered them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from hitherto.cleaning import clean, clean_lines
from hitherto.engines.toolbox import Ran, Show, Tool
from hitherto.engines.tools.bounds import TITLE_CHARS
from hitherto.model import Json

if TYPE_CHECKING:
    import mcp_types

NAME_CHARS = 64
"""The most characters that every provider takes as the name of a tool."""
DIGEST_CHARS = 8
DESCRIPTION_CHARS = 10_000

PLAIN_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9_-]*[A-Za-z0-9-]")
PLAIN_TOOL = re.compile(r"[A-Za-z0-9_-]+(?<!_[0-9a-f]{8})")
"""Names that can be read off a name of both: the server's ends at the first two underscores, and no digest follows."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")

Call = Callable[[str, Json, Show], Awaitable[Ran]]
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


def offered(listed: Sequence[tuple[str, Call, mcp_types.Tool]]) -> tuple[Tool, ...]:
    """Tools, out of what each server lists: its name, how to call it, and a tool of it."""
    once: dict[tuple[str, str], tuple[Call, mcp_types.Tool]] = {}
    for server, call, tool in listed:
        once.setdefault((server, tool.name), (call, tool))
    return tuple(_tool(offered_name(*pair), *found) for pair, found in once.items())


def _tool(name: str, call: Call, tool: mcp_types.Tool) -> Tool:
    """A tool as it is offered. What it says of itself is cleaned, and makes nobody believe that it is harmless."""
    hints = tool.annotations
    title = clean(tool.title or (hints and hints.title) or "")[:TITLE_CHARS] or None

    async def run(given: Json, show: Show) -> Ran:
        return await call(tool.name, given, show)

    return Tool(
        name=name,
        description=clean_lines(tool.description or "")[:DESCRIPTION_CHARS] or title or "",
        schema=tool.input_schema,
        kind="other",
        call=run,
        title=lambda _: title,
    )
