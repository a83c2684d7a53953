"""The tools of MCP servers as the model is offered them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from recollect.engines.toolbox import Ran, Show, Tool
from recollect.model import Json

if TYPE_CHECKING:
    import mcp_types

NAME_CHARS = 64
"""The most characters that every provider takes as the name of a tool."""
DIGEST_CHARS = 8

Call = Callable[[str, Json, Show], Awaitable[Ran]]
"""Calls a tool of one server by the name that the server has for it."""


def names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names to offer tools under, given as pairs of server and tool: each its own, and the same whatever the order.

    Names that are too long, or that would be the same, end with a digest of what they stand for.
    """
    plain = [re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{server}__{tool}") for server, tool in pairs]
    times = Counter(plain)
    return [
        name if times[name] == 1 and len(name) <= NAME_CHARS else _marked(name, pair)
        for name, pair in zip(plain, pairs, strict=True)
    ]


def _marked(name: str, pair: tuple[str, str]) -> str:
    digest = hashlib.sha256("\0".join(pair).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    return f"{name[: NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"


def offered(listed: Sequence[tuple[str, Call, mcp_types.Tool]]) -> tuple[Tool, ...]:
    """Tools, out of what each server lists: its name, how to call it, and a tool of it."""
    once: dict[tuple[str, str], tuple[Call, mcp_types.Tool]] = {}
    for server, call, tool in listed:
        once.setdefault((server, tool.name), (call, tool))
    return tuple(_tool(name, *found) for name, found in zip(names(list(once)), once.values(), strict=True))


def _tool(name: str, call: Call, tool: mcp_types.Tool) -> Tool:
    hints = tool.annotations
    title = tool.title or (hints.title if hints else None)

    async def run(given: Json, show: Show) -> Ran:
        return await call(tool.name, given, show)

    return Tool(
        name=name,
        description=tool.description or title or "",
        schema=tool.input_schema,
        kind="read" if hints is not None and hints.read_only_hint else "other",
        call=run,
        title=lambda _: title,
    )
