"""MCP servers on the command line: a command, or a JSON file in the common `mcpServers` format."""

from __future__ import annotations

import shlex
from typing import IO, Literal

import click
import msgspec

from hitherto.engine import HttpServer, McpServer, SseServer, StdioServer


class _Configured(msgspec.Struct, frozen=True):
    """A server in a file. Without a `type`, its fields decide: `command` is stdio, `url` is http."""

    type: Literal["stdio", "http", "streamable-http", "sse"] | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True, rename={"servers": "mcpServers"}):
    servers: dict[str, _Configured]


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
        read = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file.name}: {error}") from None
    return tuple(_configured(name, each) for name, each in read.servers.items())


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


def _configured(name: str, given: _Configured) -> McpServer:
    if given.command is not None and given.type in (None, "stdio"):
        return StdioServer(name=name, command=given.command, args=given.args, env=given.env)
    if given.url is not None and given.type != "stdio":
        kind = SseServer if given.type == "sse" else HttpServer
        return kind(name=name, url=given.url, headers=given.headers)
    raise click.BadParameter(f"the server {name!r} needs a 'command' or a 'url'.")
