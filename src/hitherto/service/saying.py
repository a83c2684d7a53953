"""The message that is being said, as far as its deltas tell."""

from __future__ import annotations

from hitherto.engine import Delta
from hitherto.limits import ENTRY_BYTES, LIVE_BYTES
from hitherto.model import Draft, Live, Part, Text, Thought, encode

SHOWN_CHARS = LIVE_BYTES // 12
"""So much of a text fits a live row, however its characters are encoded."""
KEPT_CHARS = ENTRY_BYTES // 12
"""The same for an entry."""


class Saying:
    """Pieces of text and thought, joined only when somebody wants to see them."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self._pieces: list[tuple[bool, list[str]]] = []

    def __bool__(self) -> bool:
        """Whether anything has been said."""
        return bool(self._pieces)

    def add(self, delta: Delta) -> None:
        """Some more; a text after a thought, or the other way round, begins a new part."""
        if not self._pieces or self._pieces[-1][0] != delta.thought:
            self._pieces.append((delta.thought, []))
        self._pieces[-1][1].append(delta.text)

    def live(self) -> bytes:
        """What every process is shown: the newest part, and its end if it is long."""
        thought, texts = self._pieces[-1]
        return encode(Live(entry=self.entry, parts=(_part(thought, "".join(texts)[-SHOWN_CHARS:]),)))

    def partial(self, meta: dict[str, object]) -> Draft:
        """The message as it would be stored now, unfinished."""
        room, parts = KEPT_CHARS, list[Part]()
        for thought, texts in self._pieces:
            text = "".join(texts)[:room]
            room -= len(text)
            parts += [_part(thought, text)] if text else []
        return Draft(role="assistant", parts=tuple(parts), id=self.entry, meta=meta)


def _part(thought: bool, text: str) -> Part:
    return Thought(text=text) if thought else Text(text=text)
