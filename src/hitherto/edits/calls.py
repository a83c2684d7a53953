"""From a tool call and its result to the edits that it made: tables of names that agents use. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hitherto.edits import patches, shell
from hitherto.edits.edit import Edit, Hunk, Kind, compared, lines_of
from hitherto.model import ToolCall, ToolResult, Unknown

PATH = ("file_path", "path", "filePath", "notebook_path", "absolute_path", "target_file", "file", "filename")
OLD = ("old_string", "old", "oldText", "old_str", "oldString", "before")
NEW = ("new_string", "new", "newText", "new_str", "newString", "after", "new_source", "insert_text")
WHOLE = ("content", "file_text", "contents", "text")
PATCH = ("patch", "patchText", "patch_text", "input", "diff")
COMMAND = ("command", "cmd", "script", "code", "input")
SOURCE, TARGET = (
    ("source", "from", "old_path", "path", "source_path"),
    ("destination", "to", "new_path", "target"),
)
PATH_CHARS = 1_000

EDITING = frozenset(
    [
        "edit",
        "write",
        "multiedit",
        "notebookedit",
        "edit_file",
        "write_file",
        "create_file",
        "save_file",
        "replace",
        "str_replace",
        "text_editor",
        "apply_patch",
        "patch",
        "insert_edit",
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "edit_notebook",
        "search_replace",
        "edit_block",
    ]
)
"""Tools that change a file, by the names that agents use, in lower case."""
RUNNING = frozenset(
    [
        "bash",
        "shell",
        "exec",
        "exec_command",
        "local_shell",
        "local_shell_call",
        "run_shell_command",
        "run_command",
        "execute_command",
        "terminal",
        "user_shell",
        "powershell",
    ]
)
"""Tools that run a command, or a program that calls other tools."""
DELETING = frozenset(("delete", "delete_file", "remove_file"))
MOVING = frozenset(("move", "move_file", "rename", "rename_file"))
READING = frozenset(("view", "read", "undo_edit"))
"""What tools that edit are also asked to do, in their field `command`."""


def edits_of(call: ToolCall, result: ToolResult | None) -> list[Edit]:
    """The edits of a call; what its result says it changed goes before what the call asked for."""
    name = call.name.lower()
    short = name.rpartition("__")[2].rpartition(".")[2]
    reader = next((reader for names, reader in _READERS if short in names), None)
    if reader is None and call.kind != "edit":
        return []
    if result is not None and not result.is_error and (told := list(_told(call.input, result))):
        return told
    found = (reader or _edited)(call.input if isinstance(call.input, dict) else {"input": call.input})
    return [edit for edit in found if edit.path and len(edit.path) <= PATH_CHARS and edit.path.isprintable()]


def is_told_by_result(result: ToolResult) -> bool:
    """Whether a result says itself what was changed."""
    return next(_told({}, result), None) is not None


def _told(given: Any, result: ToolResult) -> Iterator[Edit]:
    """What a result says was changed."""
    output = result.output
    match output:
        case {"structuredPatch": list(hunks), "filePath": str(path)} if path:
            yield from _structured(given, output, path, hunks)
        case {"diff": {"path": str(path), "newText": str(new), **rest}} if path:
            yield _replaced(path, rest.get("oldText"), new)
        case {"fileDiff": str(diff)} if named := _text(given, PATH) or _text(
            output, ("filePath", "fileName")
        ):
            kind: Kind = "create" if output.get("isNewFile") is True else "edit"
            yield Edit(path=named, kind=kind, hunks=patches.of_unified(diff))
    for part in result.content:
        match part:
            case Unknown(raw={"type": "diff", "path": str(path), "newText": str(new), **rest}) if path:
                yield _replaced(path, rest.get("oldText"), new)


def _structured(given: Any, output: dict[str, Any], path: str, hunks: list[Any]) -> Iterator[Edit]:
    """Claude Code's own account. A new file has no hunks, and neither has one that was written as it was."""
    if output.get("type") == "create":
        content = _text(output, ("content",)) or _text(given, WHOLE)
        yield Edit(path=path, kind="create", hunks=_all_added(content or ""))
        return
    lines = [" "]
    for hunk in hunks:
        told = hunk.get("lines") if isinstance(hunk, dict) else None
        lines += [line for line in told if isinstance(line, str)] if isinstance(told, list) else []
        lines.append(" ")
    if found := patches.hunks_of(lines):
        yield Edit(path=path, kind="edit", hunks=found)


def _edited(given: dict[str, Any]) -> Iterator[Edit]:
    if given.get("command") in READING:
        return
    for patch in (
        text for name in PATCH if isinstance(text := given.get(name), str) and patches.BEGIN in text
    ):
        yield from patches.in_text(patch)
        return
    path = _text(given, PATH)
    several = given.get("edits")
    hunks: dict[str, list[Hunk]] = {}
    for each in several if isinstance(several, list) else [given]:
        if isinstance(each, dict) and (new := _text(each, NEW)) is not None:
            named = _text(each, PATH) or path or ""
            hunks.setdefault(named, []).extend(compared(_text(each, OLD) or "", new))
    for named, found in hunks.items():
        yield Edit(path=named, kind="edit", hunks=tuple(found))
    if not hunks and path and (whole := _text(given, WHOLE)) is not None:
        yield Edit(path=path, kind="write", hunks=_all_added(whole))


def _ran(given: dict[str, Any]) -> Iterator[Edit]:
    command = _text(given, COMMAND)
    words = given.get("command")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        command = words[-1] if len(words) > 1 and words[1] in ("-lc", "-c") else " ".join(words)
    if isinstance(given.get("edits"), list):  # a program in which a patch was found
        yield from _edited(given)
    elif command and patches.BEGIN in command:
        yield from patches.in_text(command)
    elif command:
        yield from shell.edits_of(command)


def _deleted(given: dict[str, Any]) -> Iterator[Edit]:
    if path := _text(given, PATH):
        yield Edit(path=path, kind="delete")


def _moved(given: dict[str, Any]) -> Iterator[Edit]:
    old, new = _text(given, SOURCE), _text(given, TARGET)
    if old and new:
        yield Edit(path=old, kind="move", to=new)


_READERS: tuple[tuple[frozenset[str], Callable[[dict[str, Any]], Iterator[Edit]]], ...] = (
    (EDITING, _edited),
    (RUNNING, _ran),
    (DELETING, _deleted),
    (MOVING, _moved),
)


def _replaced(path: str, old: Any, new: str) -> Edit:
    if isinstance(old, str):
        return Edit(path=path, kind="edit", hunks=compared(old, new))
    return Edit(path=path, kind="create", hunks=_all_added(new))


def _all_added(text: str) -> tuple[Hunk, ...]:
    return (Hunk((), lines),) if (lines := lines_of(text)) else ()


def _text(given: Any, names: tuple[str, ...]) -> str | None:
    if not isinstance(given, dict):
        return None
    return next((value for name in names if isinstance(value := given.get(name), str)), None)
