"""Labels that the formats for reading share: times, speakers, names of parts. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hitherto.cleaning import clean, clean_lines
from hitherto.exports.format import About
from hitherto.exports.lines import Replaced
from hitherto.model import Audio, Entry, Image, Part, Resource, ResourceLink, Text, ToolResult

SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
SUMMARY = "Summary of earlier messages"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def when(ms: int) -> str:
    """A time that reads the same everywhere."""
    try:
        return datetime.fromtimestamp(ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def title(about: About) -> str:
    """The session's title in one line."""
    return clean(about.session.title or "") or "Untitled session"


def facts(about: About) -> list[tuple[str, str]]:
    """The facts about a session, above its messages."""
    session = about.session
    rows = [
        ("Session", session.id),
        ("Folder", session.cwd or ""),
        ("Tags", ", ".join(session.tags)),
        ("Started", when(session.created_at)),
        ("Last message", when(session.updated_at)),
        ("Messages", str(about.message_count)),
        ("Exported", when(about.exported_at)),
    ]
    return [(name, clean(value)) for name, value in rows if value]


def speaker(entry: Entry, *, mark: bool) -> str:
    """The heading of a message."""
    return SUMMARY if mark else SPEAKERS[entry.role]


def replacement(each: Replaced) -> str:
    """One row of the list of replacements."""
    place = f"entry {each.entry}" if each.entry is not None else each.where or "the session"
    return clean(f"{each.kind}: {each.count} in {place}")


def part_label(part: Part) -> str:
    """A label for a part that is not text."""
    match part:
        case Image(mime_type=kind, uri=uri):
            label = f"image {kind} {uri or ''}"
        case Audio(mime_type=kind):
            label = f"audio {kind}"
        case Resource(uri=uri):
            label = f"resource {uri}"
        case ResourceLink(uri=uri, name=name, title=named):
            label = f"link {named or name or ''} {uri}"
        case _:
            label = "unknown content"
    return " ".join(clean(label[:2_000]).split())


def result_text(result: ToolResult) -> str:
    """The result of a tool as text."""
    said = "\n".join(_said(part) for part in result.content)
    return said if said.strip() else data(result.output)


def _said(part: Part) -> str:
    match part:
        case Text(text=text):
            return clean_lines(text)
        case Resource(text=str(text)):
            return clean_lines(text)
        case ToolResult():
            return result_text(part)
    return f"[{part_label(part)}]"


def data(value: Any) -> str:
    """A JSON value as readable text; empty for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_lines(value)
    return clean_lines(json.dumps(value, ensure_ascii=False, indent=2))


def shortened(text: str, most: int) -> str:
    """The beginning of a text, and how much is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n… ({len(text) - most} more characters)"


def steps(given: Sequence[Any]) -> list[str]:
    """The steps of a plan."""
    return [
        clean(f"{str(step.get('content', ''))[:2_000]} ({step.get('status', 'pending')})") for step in given
    ]
