"""Files by how they begin: what they are, whatever they are said to be. Pure."""

from __future__ import annotations

import re

BEGINNINGS = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
    ("application/pdf", re.compile(rb".{0,1000}?%PDF-", re.DOTALL)),
)
KNOWN = frozenset(kind for kind, _ in BEGINNINGS)


def kind_of(data: bytes) -> str | None:
    """What a file is; None if it is nothing that is known here."""
    return next((kind for kind, beginning in BEGINNINGS if beginning.match(data)), None)


def image_kind(data: bytes) -> str | None:
    """The same for images alone."""
    kind = kind_of(data)
    return kind if kind is not None and kind.startswith("image/") else None
