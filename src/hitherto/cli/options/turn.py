"""The options that say who answers a prompt, and what it may do."""

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
from hitherto.engine import Choices, McpServer
from hitherto.permissions import MODES
from hitherto.settings import MODEL

_FOLDER = click.Path(exists=True, file_okay=False)
_OPTIONS = (
    click.option("--model", metavar="NAME", help=f"The model, as anthropic:claude-sonnet-5.  [env: {MODEL}]"),
    click.option(
        "--cwd",
        metavar="FOLDER",
        type=_FOLDER,
        help="The folder of a new session, where tools work; by default the current one.",
    ),
    click.option(
        "--add-dir",
        "directories",
        metavar="FOLDER",
        type=_FOLDER,
        multiple=True,
        help="A further folder that tools of a new session may touch; may be repeated.",
    ),
    click.option(
        "--mode",
        type=click.Choice(MODES),
        default="default",
        show_default=True,
        help="What tools may do without asking.",
    ),
    click.option(
        "--max-turns",
        type=click.IntRange(1),
        metavar="N",
        help="How often the model may be asked for one prompt.",
    ),
    click.option("--system", metavar="TEXT", help="The system prompt, instead of the usual one."),
    click.option("--append-system", metavar="TEXT", help="What to add to the system prompt."),
    click.option(
        "--mcp",
        "commands",
        metavar="NAME=COMMAND",
        multiple=True,
        callback=servers.commands,
        help="An MCP server to start; may be repeated.",
    ),
    click.option(
        "--mcp-config",
        "config",
        metavar="FILE",
        type=click.File("rb"),
        callback=servers.config,
        help='MCP servers in a JSON file: {"mcpServers": {…}}.',
    ),
)


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say. `cwd` and `directories` are for a new session, None and empty if not given."""

    choices: Choices
    cwd: str | None
    directories: tuple[str, ...]
    servers: tuple[McpServer, ...]

    @property
    def folder(self) -> str:
        """Where a new session is to work."""
        return self.cwd or os.getcwd()


def choosing(work: Work) -> Work:
    """Give a command these options; it gets them as `chosen`."""

    @functools.wraps(work)
    async def with_choices(*given: Any, **rest: Any) -> int | None:
        return await work(*given, chosen=_chosen(rest), **rest)

    decorated: Callable[..., Any] = with_choices
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _chosen(options: dict[str, Any]) -> Chosen:
    """What the options mean, which are taken out."""
    cwd = options.pop("cwd")
    return Chosen(
        choices=Choices(
            model=options.pop("model"),
            mode=options.pop("mode"),
            max_requests=options.pop("max_turns"),
            system_prompt=options.pop("system"),
            append_system_prompt=options.pop("append_system"),
        ),
        cwd=None if cwd is None else folder(cwd),
        directories=tuple(map(folder, options.pop("directories"))),
        servers=(*options.pop("commands"), *options.pop("config")),
    )
