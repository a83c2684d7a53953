"""MCP servers as a client names them, checked. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.acp.protocol.params import Pair, Server
from hitherto.errors import InvalidInput, TooLarge
from hitherto.values.mcp_servers import McpServer, StdioServer, parse_server

MOST = 64


def servers_of(given: Sequence[Server] | None) -> tuple[McpServer, ...]:
    """The servers; one that cannot be is an error, for leaving it out would take tools away in silence."""
    if given is None:
        return ()
    if len(given) > MOST:
        raise TooLarge(f"a session may have at most {MOST} MCP servers")
    return tuple(map(_server, given))


def _server(given: Server) -> McpServer:
    if not given.name:
        raise InvalidInput("an MCP server needs a name")
    config = {
        "type": given.type or "stdio",
        "command": given.command or None,
        "args": given.args,
        "env": _mapping(given.env),
        "url": given.url,
        "headers": _mapping(given.headers),
    }
    server = parse_server(given.name, config, strict=False)
    for field in ("args", "env") if isinstance(server, StdioServer) else ("headers",):
        if config[field] is None:
            raise InvalidInput(f"MCP server {given.name!r} has no {field}: give a list, which may be empty")
    if not isinstance(server, StdioServer) and not server.url.startswith(("http://", "https://")):
        raise InvalidInput(f"MCP server {given.name!r} needs a URL that begins with http:// or https://")
    return server


def _mapping(pairs: Sequence[Pair] | None) -> dict[str, str] | None:
    return None if pairs is None else {pair.name: pair.value for pair in pairs}
