"""What an agent offers, and the checks that the protocol asks of clients: what was not offered is not asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hitherto.acp.client.values import items, table, text
from hitherto.acp.protocol.initialize import PROTOCOL_VERSION, has_capability
from hitherto.errors import EngineError, InvalidInput
from hitherto.model import Json
from hitherto.values.mcp_servers import HttpServer, McpServer, SseServer, StdioServer

Path = tuple[str, ...]
GATES: dict[str, Path] = {
    "session/load": ("loadSession",),
    "session/list": ("sessionCapabilities", "list"),
    "session/resume": ("sessionCapabilities", "resume"),
    "session/close": ("sessionCapabilities", "close"),
    "session/delete": ("sessionCapabilities", "delete"),
    "session/fork": ("sessionCapabilities", "fork"),
    "session/archive": ("sessionCapabilities", "archive"),
    "session/unarchive": ("sessionCapabilities", "archive"),
    "session/set_title": ("sessionCapabilities", "title"),
    "session/status": ("sessionCapabilities", "status"),
    "logout": ("auth", "logout"),
}
"""The capability without which a method must not be called; methods that are not here need none."""
DIRECTORIES: Path = ("sessionCapabilities", "additionalDirectories")
ARCHIVED: Path = ("sessionCapabilities", "archive")
SERVERS: dict[type[Any], Path] = {
    HttpServer: ("mcpCapabilities", "http"),
    SseServer: ("mcpCapabilities", "sse"),
}
CONTENT: dict[str, Path] = {
    "image": ("promptCapabilities", "image"),
    "audio": ("promptCapabilities", "audio"),
    "resource": ("promptCapabilities", "embeddedContext"),
}


class AgentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent said of itself at `initialize`."""

    protocol_version: int
    capabilities: Json = {}
    name: str | None = None
    title: str | None = None
    version: str | None = None
    auth_methods: tuple[Json, ...] = ()
    meta: Json = {}

    def offers(self, *path: str) -> bool:
        """Whether a capability is there: `true`, or an object, even an empty one."""
        return has_capability(self.capabilities, *path)

    def supports(self, method: str) -> bool:
        """Whether a method may be called."""
        return method not in GATES or self.offers(*GATES[method])


def agent_info(answer: Json) -> AgentInfo:
    """What the answer to `initialize` says; an agent that speaks only other versions is of no use."""
    version = answer.get("protocolVersion")
    if version != PROTOCOL_VERSION:
        raise EngineError(
            f"the agent uses protocol version {version!r:.50}; this client supports only {PROTOCOL_VERSION}"
        )
    info = table(answer.get("agentInfo"))
    return AgentInfo(
        protocol_version=version,
        capabilities=table(answer.get("agentCapabilities")),
        name=text(info.get("name")),
        title=text(info.get("title")),
        version=text(info.get("version")),
        auth_methods=tuple(
            each for each in map(table, items(answer.get("authMethods"))) if text(each.get("id"))
        ),
        meta=table(answer.get("_meta")),
    )


def check(agent: AgentInfo, path: Path, wanted: str) -> None:
    """`InvalidInput` unless the agent offers this."""
    if not agent.offers(*path):
        agent_name = agent.title or agent.name or "the agent"
        raise InvalidInput(
            f"{agent_name} does not offer {wanted}: the capability {'.'.join(path)} is missing"
        )


def check_method(agent: AgentInfo, method: str) -> None:
    if method in GATES:
        check(agent, GATES[method], method)


def session_params(
    agent: AgentInfo, cwd: str, directories: Sequence[str], servers: Sequence[McpServer]
) -> Json:
    """Where a session works and with what, as parameters; only what the agent can make use of passes."""
    if not cwd.startswith("/"):
        raise InvalidInput(f"cwd must be an absolute path, not {cwd!r:.200}")
    if directories:
        check(agent, DIRECTORIES, "additional directories")
    for server in servers:
        if type(server) in SERVERS:
            check(agent, SERVERS[type(server)], f"MCP servers such as {server.name!r:.100}")
    params: Json = {"cwd": cwd, "mcpServers": [_server(each) for each in servers]}
    return {**params, "additionalDirectories": list(directories)} if directories else params


def prompt_blocks(agent: AgentInfo, prompt: str | Sequence[Json]) -> list[Json]:
    """A prompt as content blocks; only kinds that the agent takes pass."""
    blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else list(prompt)
    for block in blocks:
        kind = block.get("type")
        if kind in CONTENT:
            check(agent, CONTENT[kind], f"prompts with {kind} content")
    return blocks


def _server(server: McpServer) -> Json:
    if isinstance(server, StdioServer):
        return {
            "name": server.name,
            "command": server.command,
            "args": list(server.args),
            "env": _pairs(server.env),
        }
    kind = "http" if isinstance(server, HttpServer) else "sse"
    return {"type": kind, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(mapping: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in mapping.items()]
