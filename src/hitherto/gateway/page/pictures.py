"""Pictures of a conversation, in the page itself: nothing is loaded from where a message says. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hitherto.exports.wording import IMAGE_TYPES, noted
from hitherto.model import Image, Part

LARGEST = 2_000_000
"""Of base64; a larger one is named, and can be had from the message as it is kept."""


class Picture(NamedTuple):
    """A picture, or why there is none."""

    note: str
    source: str | None = None


def picture(part: Image) -> Picture:
    """The picture itself if it is of a kind that only shows, and whole."""
    if part.mime_type not in IMAGE_TYPES or part.data is None:
        return Picture(noted(part))
    if len(part.data) > LARGEST:
        return Picture(f"{part.mime_type}, too large to be shown here")
    try:
        pure = base64.b64encode(base64.b64decode(part.data, validate=True)).decode()
    except ValueError:
        return Picture(noted(part))
    return Picture(f"a picture ({part.mime_type})", f"data:{part.mime_type};base64,{pure}")


def pictures(parts: Iterable[Part]) -> Iterator[Picture]:
    """Those among these parts."""
    return (picture(part) for part in parts if isinstance(part, Image))
