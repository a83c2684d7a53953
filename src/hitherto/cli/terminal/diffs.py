"""Tool input before it runs, and the diff of what a tool changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from hitherto.cli.terminal.entries import Styled
from hitherto.cli.terminal.output import clean, clean_lines, json_text
from hitherto.model import ToolCall, ToolResult

LINES = 40
LINE_CHARS = 500
LARGEST = 200_000
"""Texts with more characters are not compared."""

STYLES = {"+": "green", "-": "red", "@": "cyan"}
CHANGES = {"old": "-", "new": "+", "content": "+"}
"""Fields of an edit tool: removed and added text."""


def change(result: ToolResult) -> Iterator[Styled]:
    """The diff in a tool result, if there is one."""
    match result.output:
        case {"diff": {"oldText": str() | None as old, "newText": str(new)}}:
            yield from _shortened(_compared(old or "", new))


def request(call: ToolCall) -> Iterator[Styled]:
    """The whole input of a tool call, so that the user sees what they allow: edits as diff lines, other values by name.
    Cuts in long values are marked."""
    given = call.input if isinstance(call.input, dict) else {"input": call.input}
    for name, value in given.items():
        sign = CHANGES.get(name, "") if call.kind == "edit" and isinstance(value, str) else ""
        lines = seen(value).removesuffix("\n").split("\n")
        if sign:
            yield from _shortened(Styled(f"{sign}{line}", STYLES[sign]) for line in lines)
        else:
            first, *rest = lines
            yield from _shortened(map(Styled, (f"{clean(name)}: {first}", *(f"  {line}" for line in rest))))


def seen(value: Any) -> str:
    """A value as text; text with invisible characters is shown as JSON with escapes."""
    if isinstance(value, str) and clean_lines(value) == value:
        return value
    return json_text(value)


def _compared(old: str, new: str) -> Iterator[Styled]:
    if len(old) + len(new) > LARGEST:
        yield Styled("(too long to compare)", "dim")
        return
    before, after = clean_lines(old).splitlines(), clean_lines(new).splitlines()
    for line in islice(difflib.unified_diff(before, after, lineterm="", n=2), 2, None):
        yield Styled(line, STYLES.get(line[:1], "dim"))


def _shortened(lines: Iterable[Styled]) -> Iterator[Styled]:
    """The first lines, each cut to `LINE_CHARS`, and the number of the remaining ones."""
    rest = iter(lines)
    for line in islice(rest, LINES):
        more = len(line.text) - LINE_CHARS
        yield line if more <= 0 else Styled(f"{line.text[:LINE_CHARS]}… ({more} more characters)", line.style)
    if left := sum(1 for _ in rest):
        yield Styled(f"… ({left} more lines)", "dim")
