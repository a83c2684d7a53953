"""What a running turn is saying, for those who follow it: each word once, in order."""

from __future__ import annotations

from collections.abc import Iterator

from hitherto.model import Live, Thought


def unseen(live: Live, seen: int) -> Iterator[tuple[bool, str]]:
    """What comes after the first `seen` characters of a message, and whether each piece is a thought.

    If a part between is missing, since the message is very long, nothing of what follows: it comes when the message is
    stored.
    """
    parts = (*live.earlier, *live.parts)
    starts = live.starts if len(live.starts) == len(parts) else _starts(parts)
    for start, part in zip(starts, parts, strict=True):
        text: str = getattr(part, "text", "")
        if start > seen:
            return
        if rest := text[seen - start :]:
            seen += len(rest)
            yield isinstance(part, Thought), rest


def _starts(parts: tuple[object, ...]) -> Iterator[int]:
    """The positions of parts that are there whole, as older programs show them."""
    start = 0
    for part in parts:
        yield start
        start += len(getattr(part, "text", ""))
