"""MCP servers on the command line: a command, or a JSON file in the common `mcpServers` format."""

from __future__ import annotations

import shlex
from typing import IO, Any

import click
import msgspec

from hitherto.errors import InvalidInput
from hitherto.values.mcp_servers import McpServer, StdioServer, parse_servers


class _File(msgspec.Struct, frozen=True, rename={"servers": "mcpServers"}):
    servers: dict[str, Any]


def commands(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[McpServer, ...]:
    """Callback of an option that takes `NAME=COMMAND`."""
    return tuple(map(_command, given))


def config(_: click.Context, __: click.Parameter, file: IO[bytes] | None) -> tuple[McpServer, ...]:
    """Callback of an option that takes a file with `mcpServers`."""
    if file is None:
        return ()
    with file:
        data = file.read()
    try:
        return parse_servers(msgspec.json.decode(data, type=_File).servers, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput) as error:
        raise click.BadParameter(f"{file.name}: {error}") from None


def _command(given: str) -> McpServer:
    name, _, line = given.partition("=")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise click.BadParameter(f"{given!r}: {error}") from None
    if not (name and words):
        raise click.BadParameter(
            f"{given!r} is not of the form NAME=COMMAND, such as 'files=npx server-files .'."
        )
    return StdioServer(name=name, command=words[0], args=tuple(words[1:]))
