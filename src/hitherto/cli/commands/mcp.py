"""`hitherto mcp`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.errors import install_advice
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.settings import read_settings


@command("hitherto mcp", "claude mcp add history -- hitherto mcp", opens="read")
async def run(sessions: Sessions, out: Output) -> None:  # noqa: ARG001 - stdout carries MCP only
    """Run as an MCP server on standard input and output, so that agents can search your history.

    It offers the tools sessions_search, sessions_recent, sessions_read, memory_search, changes_search, blame and why. They are
    read-only and leave secrets out. `hitherto serve` offers the same tools at /mcp.
    """
    try:
        from hitherto.recall.server import server_for
        from hitherto.recall.tools import Recall
    except ModuleNotFoundError as error:
        raise click.UsageError(install_advice("this command", "models")) from error

    recall = Recall(sessions, LOCAL, read_settings().page)
    await server_for(lambda: recall).run_stdio_async()
