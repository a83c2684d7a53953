"""What tools were used for and what came of it, in a few lines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hitherto.model import Entry, Text, ToolCall, ToolResult
from hitherto.service.specifics import specifics
from hitherto.titles import clean_title

FAILURES = 5
FILES = 20
SHOWN_CHARS = 160
INPUT_CHARS = 500
_PLACES = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "uri", "target_file")


def tool_outcomes(entries: Sequence[Entry]) -> list[str]:
    """How often each tool ran, which files they were given, and the last failures."""
    calls = {part.id: part for entry in entries for part in entry.parts if isinstance(part, ToolCall)}
    if not calls:
        return []
    failed = [result for result in _results(entries) if result.is_error and result.id in calls]
    counts = Counter(part.name for entry in entries for part in entry.parts if isinstance(part, ToolCall))
    failures = Counter(calls[result.id].name for result in failed)
    used = ", ".join(_count(name, count, failures[name]) for name, count in counts.most_common(12))
    files = list(dict.fromkeys(place for call in reversed(calls.values()) for place in _places(call)))[:FILES]
    told = [f"Tools that ran: {used}."]
    told += [f"Files they were given: {', '.join(reversed(files))}."] if files else []
    return told + [_failure(calls[result.id], result) for result in failed[-FAILURES:]]


def _count(name: str, count: int, failures: int) -> str:
    return f"{name} {count}×" + (f" ({failures} failed)" if failures else "")


def _failure(call: ToolCall, result: ToolResult) -> str:
    """What failed, and the end of what it said: that is where programs tell why."""
    said = " ".join(part.text[-INPUT_CHARS:] for part in result.content if isinstance(part, Text))
    given = " ".join(_texts(call.input))
    return clean_title(f"Failed: {call.name} {given[:SHOWN_CHARS]}: {clean_title(said)[-SHOWN_CHARS:]}")


def _results(entries: Sequence[Entry]) -> Iterator[ToolResult]:
    return (part for entry in entries for part in entry.parts if isinstance(part, ToolResult))


def _places(call: ToolCall) -> Iterator[str]:
    """The files that a call names: by the name of the argument, else whatever looks like one in a command."""
    given: dict[str, Any] = call.input if isinstance(call.input, dict) else {}
    named = [value for name in _PLACES if isinstance(value := given.get(name), str)]
    if named:
        yield from named
        return
    for text in _texts(call.input):
        yield from (found.text for found in specifics(text) if found.kind == "path")


def _texts(given: Any) -> Iterator[str]:
    values = given.values() if isinstance(given, dict) else [given]
    return (value[:INPUT_CHARS] for value in values if isinstance(value, str))
