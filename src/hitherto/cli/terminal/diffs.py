"""Tool input before it runs, and the diff of what a tool changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from hitherto.cli.terminal.entries import Styled
from hitherto.cli.terminal.output import clean, clean_lines, json_text
from hitherto.model import ToolCall, ToolResult
from hitherto.presentation import diffs

LINES = 40
LINE_CHARS = 500
SIGNS = {"added": "+", "removed": "-", "same": " ", "place": ""}
STYLES = {"added": "green", "removed": "red", "place": "cyan", "same": "dim"}


def change(result: ToolResult) -> Iterator[Styled]:
    """The diff in a tool result, if there is one."""
    diff = diffs.of_result(result.output)
    if diff is not None and diff.too_long:
        yield Styled("(too long to compare)", "dim")
    elif diff is not None:
        yield from _shortened((_styled(line.kind, line.text) for line in diff.lines), diff.more)


def request(call: ToolCall) -> Iterator[Styled]:
    """The whole input of a tool call, so that the user sees what they allow: edits as diff lines, other values by name.
    Cuts in long values are marked."""
    given = call.input if isinstance(call.input, dict) else {"input": call.input}
    for name, value in given.items():
        kind = diffs.FIELDS.get(name) if call.kind == "edit" and isinstance(value, str) else None
        lines = visible_text(value).removesuffix("\n").split("\n")
        if kind is not None:
            yield from _shortened(_styled(kind, line) for line in lines)
        else:
            first, *rest = lines
            yield from _shortened(map(Styled, (f"{clean(name)}: {first}", *(f"  {line}" for line in rest))))


def visible_text(value: Any) -> str:
    """A value as text; text with invisible characters is shown as JSON with escapes."""
    if isinstance(value, str) and clean_lines(value) == value:
        return value
    return json_text(value)


def _styled(kind: str, line: str) -> Styled:
    return Styled(f"{SIGNS[kind]}{line}", STYLES[kind])


def _shortened(lines: Iterable[Styled], more_lines: int = 0) -> Iterator[Styled]:
    """The first lines, each cut to `LINE_CHARS`, and the number of the remaining ones."""
    rest = iter(lines)
    for line in islice(rest, LINES):
        more = len(line.text) - LINE_CHARS
        yield line if more <= 0 else Styled(f"{line.text[:LINE_CHARS]}… ({more} more characters)", line.style)
    if left := sum(1 for _ in rest) + more_lines:
        yield Styled(f"… ({left} more lines)", "dim")
