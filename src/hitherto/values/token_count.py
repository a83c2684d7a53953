"""How many tokens a text or an entry takes: the provider's number where it is known, else an estimate by script. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hitherto.model import (
    Audio,
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    encode,
)

PROSE_CHARS = 4.0
CODE_CHARS = 3.0
OTHER_SCRIPT_CHARS = 2.0
WIDE_CHARS = 1.0
PER_ENTRY = 4
"""What marks the beginning and the end of a message."""
PER_MEDIUM = 1_500
ESTIMATED = "tokens_estimated"
"""The key of an entry's meta that says that nobody has counted its tokens."""
CODE_SHARE = 0.06
"""A text with more than this share of the signs that programs are made of is counted as code."""

_SIGNS = b'{}()[];=<>_/\\|"`#$&*'
# Han, Kana, Hangul, and the scripts of South East Asia that are written without spaces.
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U0001f300-\U0003ffff]"
)
_OTHER = re.compile("[\u0250-\U0010ffff]")


class Tokens(NamedTuple):
    """A number of tokens, and whether any of it was estimated."""

    number: int = 0
    estimated: bool = False


def estimate(text: str) -> int:
    """About how many tokens the text takes."""
    wide = other = 0
    if not text.isascii():
        wide = len(_WIDE.findall(text))
        other = len(_OTHER.findall(text)) - wide
    plain = len(text) - wide - other
    signs = _signs(text)
    per_token = CODE_CHARS if signs > CODE_SHARE * len(text) else PROSE_CHARS
    return math.ceil(plain / per_token + other / OTHER_SCRIPT_CHARS + wide / WIDE_CHARS)


def _signs(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return len(data) - len(data.translate(None, _SIGNS))


def tokens_of(entry: Entry) -> Tokens:
    """The tokens of one entry."""
    known = entry.tokens
    if known is None and entry.role == "assistant" and entry.usage is not None:
        known = entry.usage.output
    if known is not None:
        return Tokens(known, estimated=entry.meta.get(ESTIMATED) is True)
    return Tokens(PER_ENTRY + sum(map(_part, entry.parts)), estimated=True)


def total(entries: Iterable[Entry]) -> Tokens:
    """The tokens of all of them."""
    counts = [tokens_of(entry) for entry in entries]
    return Tokens(sum(each.number for each in counts), any(each.estimated for each in counts))


def context_size(history: Sequence[Entry]) -> Tokens:
    """How much of a window the history takes: what the newest answer reports, and an estimate of what follows it.

    Usage from before the context was made smaller describes another context, even where it was kept: then, and if no
    answer reports any, all of it is estimated.
    """
    reported = last_reported(history)
    if reported is None:
        return Tokens(total(history).number, estimated=True)
    place, used = reported
    after = total(history[place + 1 :])
    return Tokens(used + after.number, estimated=place + 1 < len(history))


def last_reported(history: Sequence[Entry]) -> tuple[int, int] | None:
    """The place of the newest answer that says how much of the window it took, and how much; None if none does."""
    since = max((entry.at for entry in history if _is_summary(entry)), default=None)
    for place in range(len(history) - 1, -1, -1):
        entry = history[place]
        if since is not None and entry.at < since:
            return None
        if entry.role == "assistant" and entry.usage and entry.usage.input is not None:
            return place, entry.usage.input + (entry.usage.output or 0)
    return None


def _is_summary(entry: Entry) -> bool:
    """Whether the entry stands for what was said before it: by a compaction here, or by another agent's."""
    return bool(entry.meta.get("compaction") or entry.meta.get("compact_summary"))


def _part(part: Part) -> int:
    match part:
        case Text(text=text) | Thought(text=text):
            return estimate(text)
        case ToolCall(name=name, input=given):
            return estimate(name) + estimate(encode(given).decode())
        case ToolResult(content=content, output=output):
            inner = sum(map(_part, content))
            return inner if content or output is None else estimate(encode(output).decode())
        case Resource(uri=uri, text=text):
            return estimate(uri) + estimate(text or "")
        case Plan(steps=steps):
            return estimate(encode(steps).decode())
        case Image() | Audio():
            return PER_MEDIUM
    return estimate(encode(part).decode())
