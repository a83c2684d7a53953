"""What a tool is about to change, and what it has changed, line by line."""

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
"""Beyond so many characters lines are not compared."""

STYLES = {"+": "green", "-": "red", "@": "cyan"}
CHANGES = {"old": "-", "new": "+", "content": "+"}
"""Input of a tool that edits: text that goes, and text that comes."""


def change(result: ToolResult) -> Iterator[Styled]:
    """The diff that a tool has given back, if it has."""
    match result.output:
        case {"diff": {"oldText": str() | None as old, "newText": str(new)}}:
            yield from _shortened(_compared(old or "", new))


def request(call: ToolCall) -> Iterator[Styled]:
    """All that a tool is to be given, so that nobody allows what they have not seen: the lines of a change, and any
    other value under its name. What is left out of a long one is said."""
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
    """A value as it is: a text that has something in it that would not be seen is written with escapes."""
    if isinstance(value, str) and clean_lines(value) == value:
        return value
    return json_text(value)


def _compared(old: str, new: str) -> Iterator[Styled]:
    if len(old) + len(new) > LARGEST:
        yield Styled("(too long to be compared)", "dim")
        return
    before, after = clean_lines(old).splitlines(), clean_lines(new).splitlines()
    for line in islice(difflib.unified_diff(before, after, lineterm="", n=2), 2, None):
        yield Styled(line, STYLES.get(line[:1], "dim"))


def _shortened(lines: Iterable[Styled]) -> Iterator[Styled]:
    """The first lines, each not too long, and how many there are more."""
    rest = iter(lines)
    for line in islice(rest, LINES):
        more = len(line.text) - LINE_CHARS
        yield line if more <= 0 else Styled(f"{line.text[:LINE_CHARS]}… ({more} more characters)", line.style)
    if left := sum(1 for _ in rest):
        yield Styled(f"… ({left} more lines)", "dim")
