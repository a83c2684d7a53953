"""What stands in Codex's messages and in what its tools give back, as parts of our entries. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hitherto.model import Image, Json, Part, ResourceLink, Text, Unknown
from hitherto.sources.codex_records import text

Unknowns = Counter[str]

TEXTS = frozenset(
    {"input_text", "output_text", "text", "Text", "inputText", "summary_text", "reasoning_text"}
)
PICTURES = frozenset({"input_image", "inputImage", "image"})
FILES = frozenset({"local_image", "localImage", "skill", "mention", "resource_link"})
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^,]*)?;base64,", re.ASCII)
# What stands around a picture, so that the model knows where it begins and ends.
_AROUND = re.compile(r"\s*</?image(?:\s[^<>]*)?>\s*")


def parts_of(content: Any, unknown: Unknowns) -> Iterator[Part]:
    """The parts of a content: a text, or a list of pieces."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and not _says_nothing(piece):
            yield _part(piece, unknown)


def _says_nothing(piece: Json) -> bool:
    said = piece.get("text")
    return text(piece, "type") in TEXTS and (
        not isinstance(said, str) or not said or _AROUND.fullmatch(said) is not None
    )


def _part(piece: Json, unknown: Unknowns) -> Part:
    kind = text(piece, "type")
    if kind in TEXTS:
        return Text(text=piece["text"])
    if kind in PICTURES and (picture := picture_of(piece)) is not None:
        return picture
    if kind in FILES and (place := text(piece, "path", "uri")):
        return ResourceLink(uri=place, name=text(piece, "name"))
    unknown[f"content {kind}"[:80]] += 1
    return Unknown(raw=piece)


def picture_of(piece: Json) -> Image | None:
    """A picture: its data, or where it is."""
    if data := text(piece, "data"):
        return Image(mime_type=text(piece, "mimeType", "mime_type") or "image/png", data=data)
    address = text(piece, "image_url", "url")
    if address is None:
        return None
    found = _DATA.match(address)
    return (
        Image(mime_type=found[1], data=address[found.end() :])
        if found
        else Image(mime_type="image/*", uri=address)
    )
