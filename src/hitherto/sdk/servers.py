"""MCP servers as options name them: a mapping of name to configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hitherto.engine import HttpServer, McpServer, SseServer, StdioServer
from hitherto.errors import InvalidInput

KINDS: dict[str, type[McpServer]] = {"stdio": StdioServer, "http": HttpServer, "sse": SseServer}
"""The `type` of a configuration → what it becomes."""


def servers_of(given: object) -> tuple[McpServer, ...]:
    """The servers that a mapping configures. Raises `InvalidInput`, naming the server that is wrong."""
    from hitherto.engines.mcp.configured import fault  # here: most sessions have no servers

    if not isinstance(given, Mapping):
        raise InvalidInput("mcp_servers must be a mapping of names to configurations")
    servers = tuple(_server(name, config) for name, config in given.items())
    for server in servers:
        if (wrong := fault(server, local=True)) is not None:
            raise InvalidInput(f"the MCP server {server.name!r:.100} cannot be used: {wrong}")
    return servers


def _server(name: object, config: object) -> McpServer:
    """One server; what it is configured with stays out of the message, since that may be secret."""
    where = f"the MCP server {name!r:.100}"
    if not isinstance(name, str) or not isinstance(config, Mapping):
        raise InvalidInput(f"{where} must have a text as its name and a mapping as its configuration")
    fields: dict[str, Any] = dict(config)
    kind = fields.pop("type", "stdio")
    shape = KINDS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise InvalidInput(f"{where} has the type {kind!r:.40}; types are {', '.join(KINDS)}")
    known = [field for field in shape.__struct_fields__ if field != "name"]
    if strange := [str(field) for field in fields if field not in known]:
        raise InvalidInput(f"{where} is {kind} and has {', '.join(known)}, not {', '.join(strange)}")
    try:
        return msgspec.convert({**fields, "type": kind, "name": name}, shape)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidInput(f"{where} is not configured as it should be: {error}") from None
