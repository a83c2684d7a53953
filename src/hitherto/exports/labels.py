"""What the formats for reading have in common: times, names, and what a part is called. Pure."""

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
SUMMARY = "Summary of what was said so far"
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
    """What is said of the session before it begins."""
    session = about.session
    told = [
        ("Session", session.id),
        ("Folder", session.cwd or ""),
        ("Tags", ", ".join(session.tags)),
        ("Began", when(session.created_at)),
        ("Last message", when(session.updated_at)),
        ("Messages", str(about.message_count)),
        ("Exported", when(about.exported_at)),
    ]
    return [(name, clean(value)) for name, value in told if value]


def speaker(entry: Entry, *, mark: bool) -> str:
    """Who says it."""
    return SUMMARY if mark else SPEAKERS[entry.role]


def replacement(each: Replaced) -> str:
    """One row of the list of what was replaced."""
    place = f"entry {each.entry}" if each.entry is not None else each.where or "the session"
    return clean(f"{each.kind}: {each.count} in {place}")


def noted(part: Part) -> str:
    """What stands for something that is not text."""
    match part:
        case Image(mime_type=kind, uri=uri):
            told = f"image {kind} {uri or ''}"
        case Audio(mime_type=kind):
            told = f"audio {kind}"
        case Resource(uri=uri):
            told = f"resource {uri}"
        case ResourceLink(uri=uri, name=name, title=named):
            told = f"link {named or name or ''} {uri}"
        case _:
            told = "something that this program does not know"
    return " ".join(clean(told[:2_000]).split())


def told_by(result: ToolResult) -> str:
    """What a tool came back with, as text."""
    said = "\n".join(_said(part) for part in result.content)
    return said if said.strip() else data(result.output)


def _said(part: Part) -> str:
    match part:
        case Text(text=text):
            return clean_lines(text)
        case Resource(text=str(text)):
            return clean_lines(text)
        case ToolResult():
            return told_by(part)
    return f"[{noted(part)}]"


def data(value: Any) -> str:
    """A JSON value for people; nothing for nothing."""
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
