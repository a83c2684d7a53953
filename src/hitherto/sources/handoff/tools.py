"""Calls of tools in the words of another agent: what it did is the same, the name and the input are its own. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hitherto.model import Json, ToolCall
from hitherto.presentation.plain_conversation import Tool, Tools, whole
from hitherto.sources.shared.tool_kinds import call_of, text_of

PATHS = ("file_path", "path", "filePath", "absolute_path", "notebook_path")
COMMANDS = ("command", "cmd", "script")
OLD, NEW = ("old_string", "oldString", "old_str"), ("new_string", "newString", "new_str")


class Action(NamedTuple):
    """What a call did, whichever tool it was: it ran a command, read, wrote or edited a file, or searched."""

    kind: str
    command: str = ""
    path: str = ""
    old: str = ""
    new: str = ""
    pattern: str = ""


def action_of(call: ToolCall) -> Action | None:
    """What a call did, if any agent has a tool for it."""
    given = _only_edit(call.input)
    path, command = _first(given, PATHS), _first(given, COMMANDS)
    kind = call_of(call.id, call.name, call.input).kind
    if kind == "execute" and command:
        return Action("run", command=command)
    if kind == "search" and (pattern := text_of(given, "pattern")):
        return Action("search", pattern=pattern, path=path)
    if kind == "read" and path and call.name.lower().startswith("read"):
        return Action("read", path=path)
    if kind == "edit" and path:
        return _edit(given, path)
    return None


def _edit(given: Json, path: str) -> Action | None:
    old, new = (next((given[name] for name in names if name in given), None) for names in (OLD, NEW))
    if isinstance(old, str) and isinstance(new, str):
        return Action("edit", path=path, old=old, new=new)
    content = given.get("content")
    return Action("write", path=path, new=content) if isinstance(content, str) else None


def _only_edit(given: Any) -> Json:
    """What a tool was given; of one that takes a list of edits, the only one."""
    match given:
        case {"edits": [dict(only)]}:
            return {**given, **only}
        case {"edits": _}:
            return {}
        case dict():
            return given
    return {}


def _first(given: Json, names: tuple[str, ...]) -> str:
    return next(filter(None, (text_of(given, name) for name in names)), "")


Maker = Callable[[Action], Tool]

CLAUDE: Mapping[str, Maker] = {
    "run": lambda did: Tool("Bash", {"command": did.command}),
    "read": lambda did: Tool("Read", {"file_path": did.path}),
    "write": lambda did: Tool("Write", {"file_path": did.path, "content": did.new}),
    "edit": lambda did: Tool("Edit", {"file_path": did.path, "old_string": did.old, "new_string": did.new}),
    "search": lambda did: Tool("Grep", _searched(did)),
}
CODEX: Mapping[str, Maker] = {"run": lambda did: Tool("exec_command", {"cmd": did.command})}
GEMINI: Mapping[str, Maker] = {
    "run": lambda did: Tool("run_shell_command", {"command": did.command}),
    "read": lambda did: Tool("read_file", {"file_path": did.path}),
    "write": lambda did: Tool("write_file", {"file_path": did.path, "content": did.new}),
    "edit": lambda did: Tool(
        "replace", {"file_path": did.path, "old_string": did.old, "new_string": did.new}
    ),
    "search": lambda did: Tool("grep_search", _searched(did)),
}
"""The tools that each agent has for an action."""


def _searched(did: Action) -> Json:
    return {"pattern": did.pattern, **({"path": did.path} if did.path else {})}


def tools_of(makers: Mapping[str, Maker]) -> Tools:
    """The calls of an agent with these tools."""

    def tool_for(call: ToolCall) -> Tool | None:
        did = action_of(call)
        return makers[did.kind](Action(*map(whole, did))) if did is not None and did.kind in makers else None

    return tool_for
