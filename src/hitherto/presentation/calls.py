"""A tool call in one line, and the change that it made. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitherto.clean_text import clean
from hitherto.model import ToolCall, ToolResult
from hitherto.presentation.diffs import Diff, is_edit, of_call, of_result
from hitherto.presentation.effort import bounded

SUMMARY_CHARS = 200
SUMMARY_INPUTS = (
    "command", "cmd", "file_path", "filePath", "notebook_path", "path", "pattern", "query", "url", "uri", "description",
    "subject", "prompt", "skill", "name",
)  # fmt: skip
"""Inputs that summarise a call; the first one given is used."""
COMMANDS = ("command", "cmd")
PATHS = ("file_path", "filePath", "notebook_path", "path")


def call_summary(call: ToolCall, folder: str | None) -> str:
    """What was called for, in one line, with paths relative to the folder of the session."""
    summary = (call.title or input_text(call.input, SUMMARY_INPUTS) or "")[: 4 * SUMMARY_CHARS]
    if folder and len(folder) > 1:
        summary = summary.replace(f"{folder.rstrip('/')}/", "")
    line = clean(summary[: 2 * SUMMARY_CHARS]).strip().removeprefix(f"{call.name} ")
    return line if len(line) <= SUMMARY_CHARS else f"{line[: SUMMARY_CHARS - 1]}…"


def input_text(given: Any, names: tuple[str, ...]) -> str | None:
    """The first of these inputs that is given as a text."""
    if not isinstance(given, dict):
        return None
    return next(
        (value for name in names if isinstance(value := given.get(name), str) and value.strip()), None
    )


def asked_change(given: Any) -> Diff | None:
    """The change that a call asks for; None if it asks for none."""
    return bounded(lambda: of_call(given), lambda: of_call(given, compare=False))


def made_change(call: ToolCall | None, result: ToolResult) -> Diff | None:
    """The change that the result tells of, unless the call says the same."""
    made = bounded(lambda: of_result(result.output), lambda: of_result(result.output, compare=False))
    if made is not None and call is not None and is_edit(call.input) and not is_placed(made):
        return None
    return made


def is_placed(diff: Diff) -> bool:
    """Whether the numbers of its lines are known."""
    return any(line.number is not None for line in diff.lines)


def changed_lines(kinds: Sequence[str]) -> str:
    """How many of these lines of a diff were added and removed: `+8 −6`."""
    added, removed = kinds.count("added"), kinds.count("removed")
    return " ".join([*[f"+{added}"] * (added > 0), *[f"−{removed}"] * (removed > 0)])
