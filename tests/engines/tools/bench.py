"""Tools in a temporary folder, called as a turn calls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hitherto.engine import Host
from hitherto.engines.tool_calls import Tool, ToolOutput
from hitherto.engines.tools.toolset import local_tools
from hitherto.model import Text


class Bench:
    """The tools of a session in `folder`, by name."""

    def __init__(self, folder: Path, *more: Path, host: Host | None = None) -> None:
        self.folder = folder
        self.tools = {tool.name: tool for tool in local_tools((str(folder), *map(str, more)), host)}

    def __getitem__(self, name: str) -> Tool:
        return self.tools[name]

    async def call(self, name: str, show: Callable[[str], None] = lambda _: None, **given: Any) -> ToolOutput:
        return await self.tools[name].call(given, show)

    async def told(self, name: str, **given: Any) -> str:
        """What a tool says when it has done what it was asked."""
        ran = await self.call(name, **given)
        assert not ran.is_error, ran
        return words(ran)

    async def refused(self, name: str, **given: Any) -> str:
        """What a tool says when it has not."""
        ran = await self.call(name, **given)
        assert ran.is_error, ran
        return words(ran)


def words(ran: ToolOutput) -> str:
    (part,) = ran.content
    assert isinstance(part, Text)
    return part.text
