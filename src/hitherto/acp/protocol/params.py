"""The parameters of all methods. Decoding validates them. `_meta` is data, and never a parameter."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto.acp.protocol.content import ContentBlock
from hitherto.model import Archived, Json


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all parameters. A `_meta` that is not an object counts as absent."""

    given_meta: Any = msgspec.field(default=None, name="_meta")

    @property
    def meta(self) -> Json:
        return self.given_meta if isinstance(self.given_meta, dict) else {}


class Pair(msgspec.Struct, frozen=True):
    name: str
    value: str


class Server(msgspec.Struct, frozen=True):
    """An MCP server of any type; without a type it is a program."""

    name: str
    type: str | None = None
    command: str | None = None
    args: tuple[str, ...] | None = None
    env: tuple[Pair, ...] | None = None
    url: str | None = None
    headers: tuple[Pair, ...] | None = None


class SystemPrompt(Params, frozen=True, kw_only=True):
    """Instructions of the client for the model. `mode` is `append` or `override`."""

    mode: str
    content: tuple[ContentBlock, ...]


class Setting(Params, frozen=True, kw_only=True):
    """The folders, MCP servers and instructions that a session is opened with."""

    cwd: str
    mcp_servers: tuple[Server, ...] | None = None
    additional_directories: tuple[str, ...] | None = None
    system_prompt: SystemPrompt | None = None


class NewSession(Setting, frozen=True, kw_only=True):
    pass


class OpenSession(Setting, frozen=True, kw_only=True):
    """Of `session/load`, `session/resume` and `session/fork`."""

    session_id: str


class NamedSession(Params, frozen=True, kw_only=True):
    session_id: str


class ListSessions(Params, frozen=True, kw_only=True):
    cwd: str | None = None
    project: str | None = None
    worktrees: bool = False
    cursor: str | None = None
    archived: Archived | None = None
    search: str | None = None
    created_after: str | None = None


class Prompt(Params, frozen=True, kw_only=True):
    session_id: str
    prompt: tuple[ContentBlock, ...]


class SetMode(Params, frozen=True, kw_only=True):
    session_id: str
    mode_id: str


class SetOption(Params, frozen=True, kw_only=True):
    session_id: str
    config_id: str
    value: str | bool


class SetTitle(Params, frozen=True, kw_only=True):
    session_id: str
    title: str


class Authenticate(Params, frozen=True, kw_only=True):
    method_id: str


class Logout(Params, frozen=True, kw_only=True):
    pass


# Extensions


class Search(Params, frozen=True, kw_only=True):
    query: str
    cwd: str | None = None
    cursor: str | None = None
    archived: Archived | None = None
    count: bool = False


class BatchGet(Params, frozen=True, kw_only=True):
    session_ids: tuple[str, ...]


class Subscribe(Params, frozen=True, kw_only=True):
    cwd: str | None = None
    archived: Archived | None = None


class Unsubscribe(Params, frozen=True, kw_only=True):
    subscription_id: str
