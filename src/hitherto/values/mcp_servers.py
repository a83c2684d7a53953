"""MCP servers: what is known of one, and the one reader of their configurations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hitherto.errors import InvalidInput
from hitherto.model import Value


class StdioServer(Value, frozen=True, tag="stdio"):
    """An MCP server that is a program on this machine."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)


class HttpServer(Value, frozen=True, tag="http"):
    """An MCP server that speaks streamable HTTP."""

    name: str
    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class SseServer(Value, frozen=True, tag="sse"):
    """An MCP server that speaks HTTP with server-sent events."""

    name: str
    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)


McpServer = StdioServer | HttpServer | SseServer

KINDS: dict[str, type[McpServer]] = {
    "stdio": StdioServer,
    "http": HttpServer,
    "streamable-http": HttpServer,
    "sse": SseServer,
}
"""The `type` of a configuration → what it becomes."""


def parse_servers(given: object, *, strict: bool) -> tuple[McpServer, ...]:
    """The servers of a mapping of names to configurations, the common format. Raises `InvalidInput`."""
    if not isinstance(given, Mapping):
        raise InvalidInput("MCP servers must be a mapping of names to configurations")
    return tuple(parse_server(name, config, strict=strict) for name, config in given.items())


def parse_server(name: object, config: object, *, strict: bool) -> McpServer:
    """One server. Without a `type` its fields decide: `command` is stdio, `url` is http.

    Files of other programs have fields that we do not know; `strict` refuses these. An error names the server, but never a
    value of its configuration, since that may be secret.
    """
    where = f"the MCP server {name!r:.100}"
    if not isinstance(name, str) or not isinstance(config, Mapping):
        raise InvalidInput(f"{where} must have a text as its name and a mapping as its configuration")
    fields: dict[str, Any] = {field: value for field, value in config.items() if value is not None}
    kind = fields.pop("type", "http" if "url" in fields and "command" not in fields else "stdio")
    shape = KINDS.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise InvalidInput(f"{where} has the type {kind!r:.40}; types are {', '.join(KINDS)}")
    known = [field for field in shape.__struct_fields__ if field != "name"]
    if strict and (unknown := [str(field) for field in fields if field not in known]):
        raise InvalidInput(f"{where} is {kind} and has {', '.join(known)}, not {', '.join(unknown)}")
    try:
        return msgspec.convert({**fields, "type": shape.__struct_config__.tag, "name": name}, shape)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidInput(f"{where} is not configured as it should be: {error}") from None
