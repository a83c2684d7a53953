"""Codex's tool calls and their results. Pure.

The call is an item of the model. Its result is there twice: in an event of the program, which says whether it failed, and
as the text that the model got.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitherto.claude.lines import decode
from hitherto.model import Json, Part, Plan, Text, ToolResult
from hitherto.sources.codex.records import Unknowns, fields, items, parts_of, picture_of, text, whole
from hitherto.sources.shared.tool_kinds import call_of

PATCH = "apply_patch"
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code|exit code:) *(-?\d+)", re.MULTILINE)
_HEAD = 1_000
_FAILED = frozenset({"failed", "declined", "error", "errored"})
_SHELL = 3
"""The length of a command for a shell: the shell, `-lc`, and the command line."""


class CallRequest(NamedTuple):
    """A call of a tool."""

    id: str
    name: str
    input: Any


class Outcome(NamedTuple):
    """The result of a call."""

    id: str
    content: tuple[Part, ...] = ()
    failed: bool = False
    output: Any = None

    def part(self) -> ToolResult:
        return ToolResult(id=self.id, content=self.content, is_error=self.failed, output=self.output)


def call_parts(request: CallRequest) -> tuple[Part, ...]:
    """The call, with the plan if it is a plan update."""
    call = call_of(request.id, request.name, request.input)
    if places := paths_of(request.input):
        call = replace(call, kind="edit", locations=places)
    plan = tuple(map(_step, items(request.input, "plan"))) if request.name == "update_plan" else ()
    return (call, Plan(steps=plan)) if plan else (call,)


def _step(step: Any) -> Json:
    return {
        "content": text(step, "step") or "",
        "status": text(step, "status") or "pending",
        "priority": "medium",
    }


# The model's own items


def call_of_item(item: Json) -> CallRequest | None:
    """The call in a model item; None if it has no id to match a result with."""
    kind = text(item, "type")
    id = text(item, "call_id", "id")
    if id is None or kind not in CALL_ITEMS:
        return None
    return CallRequest(id, *CALL_ITEMS[kind](item))


def _function(item: Json) -> tuple[str, Any]:
    name, space = text(item, "name") or "function", text(item, "namespace")
    return f"{space.rstrip('_')}__{name}" if space else name, _edit_or(_arguments(item.get("arguments")))


def _custom(item: Json) -> tuple[str, Any]:
    given = item.get("input")
    patch = of_patch(given) if isinstance(given, str) else None
    return text(item, "name") or "tool", patch or {"input": given}


def _shell(item: Json) -> tuple[str, Any]:
    action = fields(item, "action")
    return "local_shell", {"command": action.get("command"), "workdir": action.get("working_directory")}


def _search(item: Json) -> tuple[str, Any]:
    action = fields(item, "action")
    return "web_search", {"query": text(action, "query", "url", "pattern") or text(item, "query"), **action}


def _tool_search(item: Json) -> tuple[str, Any]:
    return "tool_search", _arguments(item.get("arguments"))


def _picture(item: Json) -> tuple[str, Any]:
    return "image_generation", {"prompt": text(item, "revised_prompt")}


CALL_ITEMS: dict[str, Callable[[Json], tuple[str, Any]]] = {
    "function_call": _function,
    "custom_tool_call": _custom,
    "local_shell_call": _shell,
    "web_search_call": _search,
    "tool_search_call": _tool_search,
    "image_generation_call": _picture,
}
"""Items of the model's that call a tool → its name, and what it is given."""

RESULT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
"""Items with a result for the model."""


def result_of_item(item: Json, unknown: Unknowns) -> Outcome | None:
    """The result that the model got."""
    id = text(item, "call_id", "id")
    if id is None:
        return None
    output = item.get("output", item.get("tools"))
    match output:
        case str():
            return _text_outcome(id, output)
        case {"content": str(content_text), **rest}:
            return Outcome(id, _texts(content_text), rest.get("success") is False)
        case list():
            content = tuple(parts_of(output, unknown)) if "output" in item else ()
            return Outcome(id, content, output=None if content else output)
    return Outcome(id, output=output)


def _text_outcome(id: str, output: str) -> Outcome:
    """A result as text: some start with an exit code, some are JSON with output and exit code."""
    if output.startswith('{"output"'):
        match _arguments(output):
            case {"output": str(output), "metadata": {"exit_code": int(code)}}:
                return Outcome(id, _texts(output), code != 0)
    found = _EXIT.search(output[:_HEAD])
    return Outcome(id, _texts(output), found is not None and int(found[1]) != 0)


# Events of the program


def finished_call(item: Json, unknown: Unknowns) -> tuple[CallRequest, Outcome] | None:
    """The call and result in a shown item or an event; None if there are none."""
    kind = text(item, "type") or ""
    id = text(item, "call_id", "id")
    if id is None or kind not in FINISHED_ITEMS:
        return None
    name, given, outcome = FINISHED_ITEMS[kind](id, snake_case(item), unknown)
    return CallRequest(id, name, given), outcome


Finished = tuple[str, Any, Outcome]


def _command(id: str, item: Json, _: Unknowns) -> Finished:
    output = text(item, "aggregated_output", "formatted_output") or "\n".join(
        filter(None, (text(item, "stdout"), text(item, "stderr")))
    )
    code = whole(item, "exit_code")
    outcome = Outcome(id, _texts(output), _has_failed(item) or bool(code), {"exit_code": code})
    return "exec_command", {"command": command_of(item), "workdir": text(item, "cwd")}, outcome


def _files(id: str, item: Json, _: Unknowns) -> Finished:
    output = "\n".join(filter(None, (text(item, "stdout"), text(item, "stderr"))))
    failed = _has_failed(item) or item.get("success") is False
    return PATCH, of_changes(item.get("changes")) or {}, Outcome(id, _texts(output), failed)


def _mcp_call(id: str, item: Json, unknown: Unknowns) -> Finished:
    """A tool of a server: the result stands in `result`, in an event under `Ok` or `Err`."""
    call, result = fields(item, "invocation") or item, fields(item, "result")
    error = text(result, "Err") or text(item.get("error"), "message") or text(item, "error")
    result = fields(result, "Ok") or result
    failed = _has_failed(item) or result.get("isError") is True or result.get("is_error") is True
    content = _texts(error) if error else tuple(parts_of(result.get("content"), unknown))
    name = f"mcp__{text(call, 'server') or ''}__{text(call, 'tool') or ''}"
    return name, call.get("arguments"), Outcome(id, content, failed or error is not None)


def _dynamic(id: str, item: Json, unknown: Unknowns) -> Finished:
    content = tuple(parts_of(item.get("content_items"), unknown))
    error = text(item, "error")
    failed = _has_failed(item) or item.get("success") is False or error is not None
    space, name = text(item, "namespace"), text(item, "tool") or "tool"
    return (
        f"{space.rstrip('_')}__{name}" if space else name,
        item.get("arguments"),
        Outcome(id, (*content, *_texts(error or "")), failed),
    )


def _web_search(id: str, item: Json, _: Unknowns) -> Finished:
    return *_search(item), Outcome(id)


def _image_view(id: str, item: Json, unknown: Unknowns) -> Finished:
    place = {"type": "local_image", "path": text(item, "path") or "?"}
    return "view_image", {"path": text(item, "path")}, Outcome(id, tuple(parts_of([place], unknown)))


def _image_generation(id: str, item: Json, _: Unknowns) -> Finished:
    picture = picture_of({"data": item.get("result")})
    where = text(item, "saved_path")
    content: tuple[Part, ...] = (picture,) if picture else _texts(where or "")
    return *_picture(item), Outcome(id, content, _has_failed(item))


def _subagent_call(id: str, item: Json, _: Unknowns) -> Finished:
    given = {name: item[name] for name in ("prompt", "model", "receiver_thread_ids") if item.get(name)}
    states = item.get("agents_states")
    return _snake(text(item, "tool") or "agent"), given, Outcome(id, (), _has_failed(item), states)


def _function_output(id: str, item: Json, unknown: Unknowns) -> Finished:
    name, space = text(item, "name") or "function", text(item, "namespace")
    outcome = result_of_item({"call_id": id, "output": item.get("output")}, unknown) or Outcome(id)
    return f"{space.rstrip('_')}__{name}" if space else name, None, outcome


FINISHED_ITEMS: dict[str, Callable[[str, Json, Unknowns], Finished]] = {
    "CommandExecution": _command,
    "FileChange": _files,
    "McpToolCall": _mcp_call,
    "DynamicToolCall": _dynamic,
    "WebSearch": _web_search,
    "ImageView": _image_view,
    "ImageGeneration": _image_generation,
    "CollabAgentToolCall": _subagent_call,
    "FunctionCallOutput": _function_output,
    "exec_command_end": _command,
    "patch_apply_end": _files,
    "mcp_tool_call_end": _mcp_call,
    "dynamic_tool_call_response": _dynamic,
}
"""Readers of items and events with a result → the tool, its input and the result."""


def command_of(item: Json) -> str:
    """A command as you would type it."""
    command = item.get("command")
    if isinstance(command, str):
        return command
    words = [word for word in items(item, "command") if isinstance(word, str)]
    return words[-1] if len(words) == _SHELL and words[1] in ("-lc", "-c") else " ".join(words)


def _has_failed(item: Json) -> bool:
    return (text(item, "status") or "").lower() in _FAILED


def _edit_or(given: Any) -> Any:
    """The input of a call; a patch becomes an edit."""
    patch = text(given, "input", "patch")
    return (of_patch(patch) if patch else None) or given


def _arguments(given: Any) -> Any:
    """Arguments, which are JSON in a text."""
    if not isinstance(given, str):
        return given
    try:
        return decode(given.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return given


def _texts(output: str) -> tuple[Part, ...]:
    return (Text(text=output),) if output else ()


def snake_case(item: Json) -> Json:
    """An item with field names in snake case: some versions write `exitCode`, some `exit_code`."""
    return {_snake(name): value for name, value in item.items()}


def _snake(name: str) -> str:
    return name if name.islower() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


BEGIN, END = "*** Begin Patch", "*** End Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")


def of_patch(patch: str) -> Json | None:
    """A patch in the format of `apply_patch` as the input of an edit; None if it is not one."""
    if BEGIN not in patch:
        return None
    paths, edits, lines = list[str](), list[Json](), list[str]()
    for line in [*patch.partition(BEGIN)[2].partition(END)[0].splitlines(), END]:
        if not line.startswith("*** "):
            lines.append(line)
            continue
        edits += _edits(paths[-1], lines) if paths else ()
        lines = []
        if name := next((each for each in _FILES if line.startswith(each)), None):
            paths.append(line.removeprefix(name).strip())
    return _input(paths, edits)


def of_changes(changes: Any) -> Json | None:
    """Changed files as the input of an edit; None if there are none."""
    if not isinstance(changes, dict):
        return None
    paths, edits = list[str](), list[Json]()
    for path, change in changes.items():
        paths.append(path)
        edits += _change(path, change) if isinstance(change, dict) else ()
    return _input(paths, edits)


def paths_of(given: Any) -> tuple[Json, ...]:
    """The files that an edit changes."""
    edits = given.get("edits") if isinstance(given, dict) else None
    named = [text(each, "path") for each in (given, *edits)] if isinstance(edits, list) else []
    return tuple({"path": path} for path in dict.fromkeys(filter(None, named)))


def _input(paths: list[str], edits: list[Json]) -> Json | None:
    return {"path": paths[0], "edits": edits} if paths else None


def _change(path: str, change: Json) -> Iterator[Json]:
    kind, content = text(change, "type"), text(change, "content") or ""
    match kind or next(iter(change), None):
        case "add":
            yield _edit(path, "", content or text(change.get("add"), "content") or "")
        case "delete":
            yield _edit(path, content or text(change.get("delete"), "content") or "", "")
        case "update":
            update = change if kind else change.get("update")
            yield from _edits(path, (text(update, "unified_diff") or "").splitlines())


def _edits(path: str, lines: list[str]) -> Iterator[Json]:
    """One edit for each hunk after a `@@`."""
    old, new = list[str](), list[str]()
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield _edit(path, "\n".join(old), "\n".join(new))
            old, new = [], []
        elif not line.startswith(("--- ", "+++ ", "\\")):
            old += [line[1:]] if line[:1] != "+" else []
            new += [line[1:]] if line[:1] != "-" else []


def _edit(path: str, old: str, new: str) -> Json:
    return {"path": path, "old_string": old, "new_string": new}
