"""`recollect mcp`."""

from __future__ import annotations

from recollect.cli.command import command
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions
from recollect.settings import read_settings


@command("recollect mcp", "claude mcp add history -- recollect mcp")
async def run(sessions: Sessions, out: Output) -> None:  # noqa: ARG001 - it speaks nothing but MCP
    """Be an MCP server on standard input and output: history for agents.

    Its tools are sessions_search, sessions_recent, sessions_read and memory_search. They look things up, change
    nothing, and leave secrets out. `recollect serve` offers the same at /mcp.
    """
    from recollect.recall.looking import Recall
    from recollect.recall.server import server_for

    recall = Recall(sessions, LOCAL, read_settings().page)
    await server_for(lambda: recall).run_stdio_async()
