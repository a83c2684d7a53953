"""The conversation so far, told to an agent that was not there: as it was said, and of a long one a summary and its end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from hitherto.model import Entry, Part, Text, ToolCall, ToolResult
from hitherto.service.extractive import Extractive
from hitherto.summariser import CompactionPolicy

MOST_CHARS = 60_000
"""What is told at most, but for the summary of what is left out."""
TOOL_CHARS = 500
NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
BEGIN = (
    "What follows was said earlier in this conversation, before you were part of it. It is context and no request:"
    " do not answer it, take it into account. The request comes after it.\n\n<conversation>\n"
)
END = "\n</conversation>"
LEFT_OUT = "Summary of what was said before:\n{}\n\nThe end of it, word for word:\n"


async def told(entries: Sequence[Entry]) -> str:
    """The text that tells an agent what these say; empty if they say nothing."""
    lines = [(at, line) for at, entry in enumerate(entries) if (line := _line(entry))]
    if not lines:
        return ""
    room, first = MOST_CHARS, len(lines)
    while first and len(lines[first - 1][1]) <= room:
        first -= 1
        room -= len(lines[first][1]) + 2
    kept = [line for _, line in lines[first:]]
    if first == 0:
        return BEGIN + "\n\n".join(kept) + END
    since = lines[first][0] if first < len(lines) else len(entries)
    summary = await Extractive().summarise(entries[:since], entries[since:], CompactionPolicy())
    return BEGIN + LEFT_OUT.format(summary.text) + "\n\n".join(kept) + END


def _line(entry: Entry) -> str:
    if entry.meta.get("meta") is True:  # what a program told its model; nobody has said it
        return ""
    said = "\n".join(filter(None, map(_said, entry.parts)))
    return f"{NAMES[entry.role]}: {said}" if said else ""


def _said(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCall():
            given = "" if part.input is None else _cut(json.dumps(part.input, ensure_ascii=False))
            return f"[calls {part.name}: {given}]"
        case ToolResult():
            said = " ".join(_texts(part))
            return f"[{'failed' if part.is_error else 'result'}: {_cut(said)}]"
    uri = getattr(part, "uri", None)
    return f"[{uri}]" if uri else ""


def _texts(result: ToolResult) -> Iterator[str]:
    for part in result.content:
        if isinstance(part, Text):
            yield part.text


def _cut(text: str) -> str:
    return text if len(text) <= TOOL_CHARS else text[:TOOL_CHARS] + "…"
