"""Claude Code's own tools: what kind of thing each does, and how a call is named in one line. Pure."""

from __future__ import annotations

from typing import Any

from hitherto.model import Json, Plan
from hitherto.sources.tools import TITLE_CHARS, Tool, text_of, title_of_call

_PATH = ("file_path", "notebook_path", "path")
_TASK = ("description", "subject", "task_id", "taskId", "prompt")

TOOLS = {
    "Read": Tool("read", "Read", _PATH),
    "NotebookRead": Tool("read", "Read", _PATH),
    "LSP": Tool("read", "Look up", ("operation", "filePath")),
    "ReadMcpResource": Tool("read", "Read", ("uri",)),
    "ReadMcpResourceTool": Tool("read", "Read", ("uri",)),
    "Write": Tool("edit", "Write", _PATH),
    "Edit": Tool("edit", "Edit", _PATH),
    "MultiEdit": Tool("edit", "Edit", _PATH),
    "NotebookEdit": Tool("edit", "Edit", _PATH),
    "Bash": Tool("execute", "", ("command",)),
    "PowerShell": Tool("execute", "", ("command",)),
    "BashOutput": Tool("execute", "Output of", ("bash_id",)),
    "TaskOutput": Tool("execute", "Output of", ("task_id",)),
    "KillShell": Tool("execute", "Stop", ("shell_id",)),
    "KillBash": Tool("execute", "Stop", ("shell_id",)),
    "TaskStop": Tool("execute", "Stop", ("task_id",)),
    "Monitor": Tool("execute", "Watch", ("description", "command")),
    "Grep": Tool("search", "Search for", ("pattern",)),
    "Glob": Tool("search", "Find", ("pattern",)),
    "LS": Tool("search", "List", ("path",)),
    "ToolSearch": Tool("search", "Find tools for", ("query",)),
    "WebFetch": Tool("fetch", "Fetch", ("url",)),
    "WebSearch": Tool("fetch", "Search the web for", ("query",)),
    "web_search": Tool("fetch", "Search the web for", ("query",)),
    "web_fetch": Tool("fetch", "Fetch", ("url",)),
    "Task": Tool("think", "", _TASK),
    "Agent": Tool("think", "", _TASK),
    "TaskCreate": Tool("think", "Plan", _TASK),
    "TaskUpdate": Tool("think", "Update task", ("taskId",)),
    "TodoWrite": Tool("think", "Plan the work"),
    "EnterPlanMode": Tool("think", "Make a plan"),
    "ExitPlanMode": Tool("think", "Present the plan"),
    "Skill": Tool("other", "Use the skill", ("skill", "command")),
    "SlashCommand": Tool("other", "Run", ("command",)),
    "AskUserQuestion": Tool("other", "Ask the user"),
}
_UNKNOWN = Tool("other")
_LOCATED = (("file_path", "offset"), ("notebook_path", ""), ("filePath", "line"), ("path", ""))


def kind_of(name: str) -> str:
    """What the tool does: read, edit, execute, search, fetch, think or other."""
    return TOOLS.get(name, _UNKNOWN).kind


def title_of(name: str, given: Any) -> str | None:
    """The call in one line; None if the name alone says all there is."""
    tool = TOOLS.get(name)
    if tool is None:
        server, _, inner = name.removeprefix("mcp__").partition("__")
        return f"{server}: {inner}"[:TITLE_CHARS] if name.startswith("mcp__") and inner else None
    return title_of_call(tool, given)


def locations_of(given: Any) -> tuple[Json, ...]:
    """The file that the call is about, with its line if that is known."""
    for name, line in _LOCATED:
        if path := text_of(given, name):
            number = given.get(line)
            known = isinstance(number, int) and not isinstance(number, bool) and number > 0
            return ({"path": path, "line": number} if known else {"path": path},)
    return ()


def plan_of(given: Any) -> Plan | None:
    """The to-do list in a call of `TodoWrite`."""
    todos = given.get("todos") if isinstance(given, dict) else None
    if not isinstance(todos, list):
        return None
    return Plan(steps=tuple(_step(todo) for todo in todos if isinstance(todo, dict)))


def _step(todo: Json) -> Json:
    return {
        "content": str(todo.get("content", "")),
        "status": str(todo.get("status", "pending")),
        "priority": str(todo.get("priority", "medium")),
    }
