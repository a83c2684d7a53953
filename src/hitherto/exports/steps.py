"""A tool call and its result as one line that unfolds, whatever the format. Pure."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.clean_text import clean, clean_lines
from hitherto.model import ToolCall, ToolResult
from hitherto.presentation import labels
from hitherto.presentation.calls import (
    COMMANDS,
    asked_change,
    call_summary,
    changed_lines,
    input_text,
    made_change,
)
from hitherto.presentation.diffs import Diff

NAME_CHARS = 100
SIGNS = {"added": "+", "removed": "-", "place": ""}
"""How lines of a diff begin; others begin with a space."""


class Step(NamedTuple):
    """What stands in the line, and what it unfolds into: the change if it made one, else its input; and its output."""

    name: str
    summary: str
    notes: tuple[str, ...]
    change: Diff | None
    given: str
    language: str
    output: str


def step(call: ToolCall, result: ToolResult | None, folder: str | None) -> Step:
    """A call with its result, if there is one. Paths are relative to the folder of the session."""
    made = made_change(call, result) if result is not None else None
    change = made or asked_change(call.input)
    counts = changed_lines([line.kind for line in change.lines]) if change and not change.more else ""
    failed = "failed" if result is not None and result.is_error else ""
    given, language = ("", "text") if change else _given(call)
    silent = result is None or (made is not None and not result.content)
    return Step(
        name=clean(call.name[:NAME_CHARS]).strip() or "Tool call",
        summary=call_summary(call, folder),
        notes=tuple(note for note in (counts, failed) if note),
        change=change,
        given=given,
        language=language,
        output="" if silent or result is None else labels.result_text(result),
    )


def diff_lines(diff: Diff) -> list[tuple[str, str]]:
    """The lines of a diff as a patch has them, each with its kind."""
    lines = [(line.kind, f"{SIGNS.get(line.kind, ' ')}{line.text}") for line in diff.lines]
    return [*lines, *[("more", f"… ({diff.more} more lines)")] * (diff.more > 0)]


def _given(call: ToolCall) -> tuple[str, str]:
    command = input_text(call.input, COMMANDS)
    if command is not None and len(call.input) == 1:
        return clean_lines(command), "bash"
    return labels.data(call.input), "text" if isinstance(call.input, str) else "json"
