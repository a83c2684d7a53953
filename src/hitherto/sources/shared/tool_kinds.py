"""Tools of agents: the kind of each, and a one-line title for a call. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from hitherto.model import (
    Json,
    Plan,
    ToolCall,
)
from hitherto.values.titles import clean_title

TITLE_CHARS = 120


class Tool(NamedTuple):
    """The kind of a tool, and its title: a verb before the first of these inputs that is given."""

    kind: str
    verb: str = ""
    inputs: tuple[str, ...] = ()


_PATH = (
    "path",
    "file_path",
    "filePath",
    "absolute_path",
    "file",
    "filename",
    "target_file",
    "dir_path",
    "directory",
)
_COMMAND = ("command", "cmd", "script")
_QUERY = ("query", "pattern", "regex", "prompt")
_TASK = ("description", "task", "title", "prompt", "instructions")

READ, WRITE, EDIT = Tool("read", "Read", _PATH), Tool("edit", "Write", _PATH), Tool("edit", "Edit", _PATH)
RUN, FIND = Tool("execute", "", _COMMAND), Tool("search", "Find", (*_QUERY, *_PATH))
SEARCH, FETCH = Tool("search", "Search for", _QUERY), Tool("fetch", "Fetch", ("url", *_QUERY))
THINK, PLAN = Tool("think", "", _TASK), Tool("think", "Plan the work")

_WORDS: tuple[tuple[Tool, str], ...] = (
    (READ, "read read_file view view_image read_many_files cat open_file"),
    (WRITE, "write write_file create_file save_file"),
    (EDIT, "edit edit_file replace str_replace multiedit patch apply_patch text_editor insert_edit"),
    (Tool("delete", "Delete", _PATH), "delete delete_file remove_file"),
    (Tool("move", "Move", _PATH), "move move_file rename rename_file"),
    (
        RUN,
        "bash shell exec exec_command local_shell local_shell_call run_shell_command run_command execute_command",
    ),
    (RUN, "terminal process write_stdin user_shell"),
    (FIND, "glob find list list_dir list_directory ls list_files"),
    (SEARCH, "grep search search_file_content grep_files rg ripgrep codesearch"),
    (FETCH, "webfetch web_fetch fetch websearch web_search google_web_search web_search_call browser"),
    (PLAN, "todowrite todo_write todoread todo update_plan write_todos plan"),
    (THINK, "task agent subagent spawn_agent create_task delegate sessions_spawn think"),
)
NAMES = {name: tool for tool, names in _WORDS for name in names.split()}
"""Tools by the names that agents use, in lower case."""
_UNKNOWN = Tool("other")


def call_of(id: str, name: str, given: Any) -> ToolCall:
    """A call as it is stored: with the kind of the tool, a title, and the file that it uses."""
    tool = _tool(name)
    return ToolCall(
        id=id,
        name=name,
        input=given,
        kind=tool.kind,
        title=_title(tool, name, given),
        locations=_locations(given),
    )


def _tool(name: str) -> Tool:
    """The tool of this name, with or without the name of a server or extension before it."""
    plain = name.lower()
    return (
        NAMES.get(plain)
        or NAMES.get(plain.rpartition("__")[2])
        or NAMES.get(plain.rpartition(".")[2])
        or _UNKNOWN
    )


def _title(tool: Tool, name: str, given: Any) -> str | None:
    if tool is _UNKNOWN:
        server, _, inner = name.removeprefix("mcp__").rpartition("__")
        return f"{server}: {inner}"[:TITLE_CHARS] if server else None
    return title_of_call(tool, given) or None


def title_of_call(tool: Tool, given: Any) -> str:
    """The call in one line; empty if it has no such input."""
    input_text = next(filter(None, (text_of(given, each) for each in tool.inputs)), "")
    # A title shows only the start of a long command; cleaning all of it would be slow.
    title = clean_title(f"{tool.verb} {input_text[: 2 * TITLE_CHARS]}")
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"


def _locations(given: Any) -> tuple[Json, ...]:
    path = next(filter(None, (text_of(given, each) for each in _PATH)), "")
    return ({"path": path},) if path else ()


def text_of(given: Any, name: str) -> str:
    """An input as text; a command may be a list of words."""
    value = given.get(name) if isinstance(given, dict) else None
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return " ".join(value[-1:] if value[:2] == ["bash", "-lc"] else value)
    return value if isinstance(value, str) else ""


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
