"""The options of a session: as callers give them, and as they are after one reading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from hitherto.engine import Choices, Engine
from hitherto.errors import InvalidInput
from hitherto.limits import TITLE_CHARS, checked_length
from hitherto.model import Value
from hitherto.permissions import MODES, Mode
from hitherto.sdk.permission import CanUseTool
from hitherto.service.validation import checked_directories
from hitherto.values.filters import normal_cwd
from hitherto.values.mcp_servers import McpServer, parse_servers


class SDKSessionOptions(TypedDict, total=False):
    """What a session may be given, as keywords or as one mapping; there also in camelCase. `model` is required.

    An `engine` answers instead of a model, which is not required then.
    """

    model: str | None
    cwd: str | os.PathLike[str] | None
    title: str | None
    system_prompt: str | None
    append_system_prompt: str | None
    permission_mode: Mode | None
    max_turns: int | None
    mcp_servers: Mapping[str, Mapping[str, Any]] | None
    additional_directories: Iterable[str | os.PathLike[str]] | None
    can_use_tool: CanUseTool | None
    include_partial_messages: bool | None
    store: str | None
    engine: Engine | None


Given = SDKSessionOptions | Mapping[str, Any] | object | None


class Options(Value, frozen=True):
    """Options that have been read; None is what was not given."""

    model: str | None = None
    cwd: str | None = None
    title: str | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    permission_mode: Mode = "default"
    max_turns: int | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    can_use_tool: CanUseTool | None = None
    include_partial_messages: bool = False
    store: str | None = None
    engine: Engine | None = None

    @property
    def choices(self) -> Choices:
        """What they choose for a turn."""
        return Choices(
            model=self.model,
            mode=self.permission_mode,
            max_requests=self.max_turns,
            system_prompt=self.system_prompt,
            append_system_prompt=self.append_system_prompt,
        )


def read_options(given: Given, more: Mapping[str, Any], *, model_required: bool = True) -> Options:
    """The options of a mapping or object, and of keywords, which go before. Raises `InvalidInput`."""
    values = {**_by_name(given), **_by_name(more)}
    options = Options(**{name: CHECKS[name](name, value) for name, value in values.items()})
    if model_required and options.model is None and options.engine is None:
        raise InvalidInput("the option `model` is required; for example model='claude-sonnet-4-6'")
    return options


def _by_name(given: Given) -> dict[str, Any]:
    """The options that are given, by their names here."""
    if given is None:
        return {}
    try:
        fields = given if isinstance(given, Mapping) else vars(given)
    except TypeError:
        raise InvalidInput(f"options must be a mapping or keywords, not {type(given).__name__}") from None
    if strange := [str(name) for name in fields if name not in SPELLINGS]:
        raise InvalidInput(f"unknown option: {', '.join(strange)}; known: {', '.join(CHECKS)}")
    found: dict[str, Any] = {}
    for spelling, value in fields.items():
        name = SPELLINGS[spelling]
        if name in found:
            raise InvalidInput(f"the option {name} is given twice")
        found[name] = value
    return {name: value for name, value in found.items() if value is not None}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} must be a string, not {value!r:.100}")
    return value


def _prompt(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {value!r:.100}")
    return value


def _title(name: str, value: Any) -> str:
    return checked_length(_text(name, value), TITLE_CHARS, "a title")


def _folder(name: str, value: Any) -> str:
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str) or not path:
        raise InvalidInput(f"{name} must be a path, not {value!r:.100}")
    return normal_cwd(os.path.abspath(path))


def _folders(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} must be a list of paths, not {value!r:.100}")
    return checked_directories([_folder(name, each) for each in value])


def _mode(name: str, value: Any) -> Mode:
    for mode in MODES:
        if value == mode:
            return mode
    raise InvalidInput(f"{name} must be one of {', '.join(MODES)}, not {value!r:.100}")


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1, not {value!r:.100}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {value!r:.100}")
    return value


def _function(name: str, value: Any) -> CanUseTool:
    if not callable(value):
        raise InvalidInput(f"{name} must be a function, not {value!r:.100}")
    function: CanUseTool = value
    return function


def _store(name: str, value: Any) -> str:
    from hitherto.stores import connector  # here: the default store needs no looking up

    connector(_text(name, value))
    return str(value)


def _engine(name: str, value: Any) -> Engine:
    if not callable(getattr(value, "open", None)):
        raise InvalidInput(f"{name} must be a hitherto.engine.Engine, not {value!r:.100}")
    engine: Engine = value
    return engine


CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "model": _text,
    "cwd": _folder,
    "title": _title,
    "system_prompt": _prompt,
    "append_system_prompt": _prompt,
    "permission_mode": _mode,
    "max_turns": _count,
    "mcp_servers": lambda _, value: servers_of(value),
    "additional_directories": _folders,
    "can_use_tool": _function,
    "include_partial_messages": _flag,
    "store": _store,
    "engine": _engine,
}
"""Option → how its value is read."""


def camel(name: str) -> str:
    """The name as JavaScript spells it."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


SPELLINGS = {spelling: name for name in CHECKS for spelling in (name, camel(name))}


def servers_of(given: object) -> tuple[McpServer, ...]:
    """The servers that a mapping configures. Raises `InvalidInput`, naming the server that is wrong."""
    from hitherto.engines.mcp.servers import fault  # here: most sessions have no servers

    servers = parse_servers(given, strict=True)
    for server in servers:
        if (wrong := fault(server, local=True)) is not None:
            raise InvalidInput(f"the MCP server {server.name!r:.100} cannot be used: {wrong}")
    return servers
