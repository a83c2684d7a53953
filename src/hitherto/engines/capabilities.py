"""What models read beside text. Pure, and light: editors get this before anything slow is imported."""

from __future__ import annotations

import re
from typing import NamedTuple

from hitherto.engines.model_names import PLAIN_NAMES

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
DOCUMENTS = IMAGES | {"application/pdf"}
SOUNDS = frozenset({"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"})
FILES = {
    "anthropic": DOCUMENTS,
    "openai": DOCUMENTS,
    "google": DOCUMENTS | SOUNDS,
    "google-cloud": DOCUMENTS | SOUNDS,
}
"""What each provider can look at; any other provider is shown images."""

TEXT_ONLY = re.compile(
    r"gpt-3\.5|gpt-4(-\d|-32k|$)|gpt-oss|o1-(mini|preview)|o3-mini|claude-(2|instant)|deepseek|codestral|mixtral"
    r"|qwen.*coder|qwq|llama-?[23](?!.*vision)"
)
"""Names of models that read nothing but text, and whose providers refuse a conversation with an image in it."""


class Reads(NamedTuple):
    """What a prompt may hold beside text and links; `embedded` are resources with their text, which every model reads."""

    image: bool = True
    audio: bool = False
    embedded: bool = True


def reads_of(model: str | None) -> Reads:
    """What a model reads, by its name; one that nothing is known of reads images."""
    if model is None:
        return Reads()
    if TEXT_ONLY.search(model):
        return Reads(image=False)
    provider, colon, _ = model.partition(":")
    if not colon:
        provider = next((by for beginning, by in PLAIN_NAMES if beginning.match(model)), "")
    return Reads(audio=not SOUNDS.isdisjoint(FILES.get(provider, IMAGES)))
