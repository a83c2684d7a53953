"""Labels that texts for reading share: speakers, names of parts, data as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hitherto.clean_text import clean, clean_lines
from hitherto.model import EPISODE, Audio, Entry, Image, Part, Resource, ResourceLink, Text, ToolResult

SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
SUMMARY = "Summary of earlier messages"
EPISODES = {
    "daily": "New episode, after the daily reset",
    "idle": "New episode, after a silence",
    "manual": "New episode, after a reset",
}
"""The headings of episodes, by why the one before ended."""
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


NAME_CHARS = 100


def speaker(entry: Entry, *, mark: bool) -> str:
    """The heading of a message: who speaks, by name if that is known."""
    if mark:
        return episode(entry) or SUMMARY
    name = sender_name(entry)
    return f"{SPEAKERS[entry.role]} {name}" if name else SPEAKERS[entry.role]


def episode(entry: Entry) -> str:
    """The heading of the episode that begins with this entry; empty if none does."""
    return EPISODES.get(str(entry.meta.get(EPISODE)), "New episode") if EPISODE in entry.meta else ""


def sender_name(entry: Entry) -> str:
    """Who wrote a message of a chat, as one short line; empty if that is not known. An id stands for who has no name."""
    sender = None if entry.origin is None else entry.origin.sender
    if sender is None:
        return ""
    return " ".join(clean((sender.name or sender.id)[:NAME_CHARS]).replace(":", " ").split())


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
