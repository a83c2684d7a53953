"""What Claude Code attaches to a conversation and its user sees: files, pictures, what hooks said. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from hitherto.model import Image, Resource
from hitherto.sources.claude.records import Attachment, value_of


def attached_file(attachment: Attachment) -> Resource | Image:
    """A file that the user referred to, with its text or its bytes if present."""
    uri = attachment.filename or "file"
    match value_of(attachment.content):
        case {"type": "image", "file": {"base64": str(data), **told}}:
            kind = told.get("type")
            return Image(mime_type=kind if isinstance(kind, str) else "image/*", data=data, uri=uri)
        case {"type": "pdf", "file": {"base64": str(data)}}:
            return Resource(uri=uri, mime_type="application/pdf", blob=data)
        case {"file": {"content": str(text)}} | {"content": str(text)}:
            return Resource(uri=uri, text=text)
    return Resource(uri=uri)


def hook_output(attachment: Attachment) -> str:
    """What a hook said, behind its name; '' if it said nothing."""
    pieces = list(dict.fromkeys(_hook_texts(attachment)))
    return f"{attachment.hook_name or 'Hook'}: " + "\n".join(pieces) if pieces else ""


def _hook_texts(attachment: Attachment) -> Iterator[str]:
    for raw in (attachment.content, attachment.stdout, attachment.stderr, attachment.blocking_error):
        yield from _texts(value_of(raw))


def hook_report(line: memoryview) -> str:
    """What the summary of the hooks at the end of a turn tells beside that they ran; '' if that is nothing."""
    said: Any = value_of(Raw(bytes(line)))
    told = said if isinstance(said, dict) else {}
    pieces = list(dict.fromkeys([*_texts(told.get("hookErrors")), *_texts(told.get("stopReason"))]))
    return "Stop hooks: " + "\n".join(pieces) if pieces else ""


def _texts(value: Any) -> Iterator[str]:
    """The texts in what a hook gave: one, several, or an error with its text in it."""
    match value:
        case str():
            if value.strip():
                yield value.strip()
        case list():
            for item in value:
                yield from _texts(item)
        case {"blockingError": text} | {"error": text} | {"message": text}:
            yield from _texts(text)
