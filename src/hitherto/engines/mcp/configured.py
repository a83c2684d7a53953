"""What may be wrong with a server as it is configured, before anything of it is started. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hitherto.engine import McpServer, StdioServer
from hitherto.engines.mcp.addresses import url_fault
from hitherto.limits import NAME_CHARS, is_storable

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def checked(servers: Sequence[McpServer], *, local: bool) -> Iterator[tuple[McpServer, str | None]]:
    """Each server, and what is wrong with it: None if nothing is. Of several with one name the first is right."""
    names: set[str] = set()
    for server in servers:
        yield server, "another server has this name" if server.name in names else fault(server, local=local)
        names.add(server.name)


def fault(server: McpServer, *, local: bool) -> str | None:
    """What is wrong with a server by itself."""
    if not server.name.strip():
        return "it has no name"
    if len(server.name) > NAME_CHARS or not is_storable(server.name):
        return f"its name has more than {NAME_CHARS} characters, or some that cannot be kept"
    if not isinstance(server, StdioServer):
        return url_fault(server.url) or _header_fault(server.headers)
    if not local:
        return "programs are started for callers on this machine only"
    return _command_fault(server)


def _header_fault(headers: dict[str, str]) -> str | None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            return f"its header {name!r:.80} cannot be sent"
    return None


def _command_fault(server: StdioServer) -> str | None:
    if not server.command.strip():
        return "it has no command"
    if not all(map(_is_passable, (server.command, *server.args, *server.env, *server.env.values()))):
        return "its command has characters that no program can be given"
    if any(not name or "=" in name for name in server.env):
        return "its environment has a variable without a proper name"
    return None


def _is_passable(text: str) -> bool:
    """Whether a program can be given this text; undecodable bytes of file names, as Python keeps them, can be."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
