"""The options that choose the model, its tools and what they may do."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click
import msgspec

from hitherto.cli.command import Work
from hitherto.cli.options import mcp_servers as servers
from hitherto.cli.options.values import folder
from hitherto.engine import Choices
from hitherto.permissions import MODES
from hitherto.settings import MODEL
from hitherto.values.mcp_servers import McpServer

_FOLDER = click.Path(exists=True, file_okay=False)
_OPTIONS = (
    click.option(
        "--model", metavar="NAME", help=f"The model, such as anthropic:claude-sonnet-5.  [env: {MODEL}]"
    ),
    click.option(
        "--cwd",
        metavar="FOLDER",
        type=_FOLDER,
        help="The folder of a new session, in which tools work. Default: the current folder.",
    ),
    click.option(
        "--add-dir",
        "directories",
        metavar="FOLDER",
        type=_FOLDER,
        multiple=True,
        help="Another folder that tools of a new session may use. Can be repeated.",
    ),
    click.option(
        "--mode",
        type=click.Choice(MODES),
        default="default",
        show_default=True,
        help="What tools may do without asking you.",
    ),
    click.option(
        "--max-turns",
        type=click.IntRange(1),
        metavar="N",
        help="The maximum number of model requests for one prompt.",
    ),
    click.option("--system", metavar="TEXT", help="Replace the system prompt."),
    click.option("--append-system", metavar="TEXT", help="Add this text to the system prompt."),
    click.option(
        "--mcp",
        "commands",
        metavar="NAME=COMMAND",
        multiple=True,
        callback=servers.commands,
        help="Start this MCP server: 'files=npx server-files .'. Can be repeated.",
    ),
    click.option(
        "--mcp-config",
        "config",
        metavar="FILE",
        type=click.File("rb"),
        callback=servers.config,
        help='Use the MCP servers in this JSON file: {"mcpServers": {…}}.',
    ),
)


class TurnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the options. `cwd` and `directories` apply to a new session only."""

    choices: Choices
    cwd: str | None
    directories: tuple[str, ...]
    servers: tuple[McpServer, ...]

    @property
    def folder(self) -> str:
        """The folder of a new session."""
        return self.cwd or os.getcwd()


def turn_options(work: Work) -> Work:
    """Add these options to a command, which receives them as `options`."""

    @functools.wraps(work)
    async def with_options(*given: Any, **rest: Any) -> int | None:
        return await work(*given, options=_parse_options(rest), **rest)

    decorated: Callable[..., Any] = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _parse_options(values: dict[str, Any]) -> TurnOptions:
    """Remove the options from `values` and make one value of them."""
    cwd = values.pop("cwd")
    return TurnOptions(
        choices=Choices(
            model=values.pop("model"),
            mode=values.pop("mode"),
            max_requests=values.pop("max_turns"),
            system_prompt=values.pop("system"),
            append_system_prompt=values.pop("append_system"),
        ),
        cwd=None if cwd is None else folder(cwd),
        directories=tuple(map(folder, values.pop("directories"))),
        servers=(*values.pop("commands"), *values.pop("config")),
    )
