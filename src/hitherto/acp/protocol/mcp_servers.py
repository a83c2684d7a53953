"""MCP servers as a client names them, checked. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hitherto.acp.protocol.params import Pair, Server
from hitherto.engine import HttpServer, McpServer, SseServer, StdioServer
from hitherto.errors import InvalidInput, TooLarge

MOST = 64
T = TypeVar("T")


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
    make = _KINDS.get(given.type)
    if make is None:
        raise InvalidInput(
            f"MCP server {given.name!r}: type must be http, sse or left out, not {given.type!r}"
        )
    return make(given)


def _stdio(given: Server) -> McpServer:
    if not given.command:
        raise InvalidInput(f"MCP server {given.name!r} has no command")
    args, env = _given(given, "args", given.args), _given(given, "env", given.env)
    return StdioServer(name=given.name, command=given.command, args=args, env=_mapping(env))


def _http(given: Server) -> McpServer:
    return HttpServer(name=given.name, url=_url(given), headers=_headers(given))


def _sse(given: Server) -> McpServer:
    return SseServer(name=given.name, url=_url(given), headers=_headers(given))


def _url(given: Server) -> str:
    if given.url is None or not given.url.startswith(("http://", "https://")):
        raise InvalidInput(f"MCP server {given.name!r} needs a URL that begins with http:// or https://")
    return given.url


def _headers(given: Server) -> dict[str, str]:
    return _mapping(_given(given, "headers", given.headers))


def _given(server: Server, field: str, items: tuple[T, ...] | None) -> tuple[T, ...]:
    """A list that the protocol asks for, empty or not."""
    if items is None:
        raise InvalidInput(f"MCP server {server.name!r} has no {field}: give a list, which may be empty")
    return items


def _mapping(pairs: Sequence[Pair]) -> dict[str, str]:
    return {pair.name: pair.value for pair in pairs}


_KINDS: dict[str | None, Callable[[Server], McpServer]] = {
    None: _stdio,
    "stdio": _stdio,
    "http": _http,
    "sse": _sse,
}
