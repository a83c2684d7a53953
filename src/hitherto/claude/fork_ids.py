"""Who descends from whom in a fork: new uuids for old ones, and parents among the links that are copied."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

Id = bytes
"""A uuid as it stands in a file, quotes included."""
AT_ONCE = 512


class Lineage:
    """The links of a transcript as they come, one after the other.

    A link may name one that comes later, or never. It is given a new uuid all the same; `wrong` tells in the end
    which of these were never copied, and a further reading that knows `before` gets them right.
    """

    def __init__(self, before: Lineage | None = None) -> None:
        self._ids = new_ids()
        self._copied: dict[Id, Id] = {}
        self._promised: dict[Id, Id] = {}
        # Links that are not copied, each with its parent: what follows them follows from there.
        self._passed: dict[Id, Id | None] = {} if before is None else before._passed
        self._missing: frozenset[Id] = frozenset() if before is None else before._missing | before.wrong
        self._last: dict[object, Id] = {}

    @property
    def wrong(self) -> frozenset[Id]:
        """What was taken for a link that is copied, and is none."""
        return frozenset(self._promised.keys() - self._copied.keys() - self._missing)

    def copy(self, uuid: Id, parent: Id | None, writer: object) -> tuple[Id, Id | None]:
        """Copy a link: its new uuid and its new parent's.

        Where the parent is lost, the link goes on from what the same writer wrote before it.
        """
        own = self._copied.get(uuid) or self._promised.get(uuid) or next(self._ids)
        self._copied[uuid] = own
        above = None if parent is None else self._copied.get(parent) or self._above(parent, writer)
        self._last[writer] = own
        return own, above

    def pass_over(self, uuid: Id, parent: Id | None) -> None:
        """Leave a link out."""
        self._passed.setdefault(uuid, parent)

    def copied(self, old: Id | None) -> Id | None:
        """The new uuid of a link that was copied."""
        return None if old is None else self._copied.get(old)

    def new(self, old: Id | None) -> Id | None:
        """The new uuid of a link that was, or presumably will be, copied."""
        if old is None or old in self._copied:
            return self.copied(old)
        if old in self._passed or old in self._missing:
            return None
        if old not in self._promised:
            self._promised[old] = next(self._ids)
        return self._promised[old]

    def nearest(self, old: Id) -> Id | None:
        """The new uuid of a link or of the nearest above it that is copied."""
        return self.copied(old) or self._above(old, None)

    def _above(self, old: Id | None, writer: object) -> Id | None:
        seen = set()
        while old is not None and old in self._passed and old not in self._copied:
            if old in seen:
                return None
            seen.add(old)
            old = self._passed[old]
        return self._last.get(writer) if old in self._missing else self.new(old)


def quoted(text: str) -> Id:
    """A text as it stands in a file."""
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(text).encode()


def plain(uuid: Id | None) -> str | None:
    """The text that was quoted."""
    return None if uuid is None else str(json.loads(uuid))


def new_ids() -> Iterator[Id]:
    """Random uuids of version 4."""
    while True:
        noise = os.urandom(16 * AT_ONCE).hex()
        for at in range(0, len(noise), 32):
            one = noise[at : at + 32]
            variant = "89ab"[int(one[16], 16) & 3]
            yield f'"{one[:8]}-{one[8:12]}-4{one[13:16]}-{variant}{one[17:20]}-{one[20:]}"'.encode()
