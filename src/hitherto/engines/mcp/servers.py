"""The MCP servers of a session, started and ended with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Self

from hitherto.engine import McpServer, Notice
from hitherto.engines.endings import to_the_end
from hitherto.engines.mcp.addresses import Resolve, resolved
from hitherto.engines.mcp.configured import checked
from hitherto.engines.mcp.offered import offered
from hitherto.engines.toolbox import Tool

if TYPE_CHECKING:
    from hitherto.engines.mcp.owner import Owner

START_SECONDS = 15.0
CALL_SECONDS = 300.0


class McpServers:
    """Servers that belong to one session alone.

    Entering starts all of them side by side and does not wait; leaving ends them, with every process in their process
    groups, from whichever task and however the block ends. What is wrong with one is reported with its name, and the
    others go on. For callers who are not `local` no program is started, and only public addresses are connected to.
    """

    def __init__(
        self,
        servers: tuple[McpServer, ...],
        *,
        cwd: str | None,
        local: bool,
        report: Callable[[Notice], None],
        start_seconds: float | None = None,
        call_seconds: float = CALL_SECONDS,
        resolve: Resolve = resolved,
    ) -> None:
        self._servers = servers
        self._cwd = cwd
        self._local = local
        self._report = report
        self._start_seconds = START_SECONDS if start_seconds is None else start_seconds
        self._call_seconds = call_seconds
        self._resolve = resolve
        self._owners: tuple[Owner, ...] = ()

    async def __aenter__(self) -> Self:
        right: list[McpServer] = []
        for server, fault in checked(self._servers, local=self._local):
            if fault is None:
                right.append(server)
            else:
                self._refuse(server, fault)
        self._starting = asyncio.create_task(self._start(right), name="mcp")
        return self

    async def __aexit__(self, *error: object) -> None:
        await to_the_end(self._close())

    async def tools(self) -> tuple[Tool, ...]:
        """The tools of all servers, when each of them is ready, has failed, or is out of time."""
        await asyncio.wait((self._starting,))
        lists = await asyncio.gather(*(owner.tools() for owner in self._owners))
        pairs = zip(self._owners, lists, strict=True)
        return offered([(owner.name, owner.call, tool) for owner, tools in pairs for tool in tools])

    async def _start(self, servers: list[McpServer]) -> None:
        if not servers:
            return
        try:
            await asyncio.to_thread(import_module, "hitherto.engines.mcp.owner")
        except ImportError:
            for server in servers:
                self._refuse(server, "the package mcp is missing; install hitherto[models]")
            return
        from hitherto.engines.mcp.owner import Owner

        self._owners = tuple(
            Owner(
                server,
                cwd=self._cwd,
                local=self._local,
                report=self._report,
                resolve=self._resolve,
                start_seconds=self._start_seconds,
                call_seconds=self._call_seconds,
            )
            for server in servers
        )

    async def _close(self) -> None:
        self._starting.cancel()
        await asyncio.wait((self._starting,))
        await asyncio.gather(*(owner.close() for owner in self._owners))

    def _refuse(self, server: McpServer, fault: str) -> None:
        self._report(
            Notice(text=f"The MCP server {server.name!r:.100} is not used: {fault}.", severity="error")
        )
