"""What the address of the list says: which sessions are asked for, and where everything else on it leads. Pure."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from recollect.limits import TAGS
from recollect.model import Archived, Filter, Value

SHORTEST = 2
"""Fewer characters than this are no question yet."""
NATIVE = "recollect"
SOURCES = {NATIVE: "Recollect", "claude": "Claude Code"}
"""Where sessions come from, as people call it."""
_UNFINISHED = re.compile(r"(?:^|\s)\w{2,}$")


class Asked(Value, frozen=True):
    """The list that an address means. Whatever it does not know it leaves out."""

    q: str = ""
    source: str | None = None
    tags: tuple[str, ...] = ()
    archived: bool = False
    pinned: bool = False
    cursor: str | None = None

    @property
    def query(self) -> str | None:
        """What to search for; a last word that may still be typed stands for all words that begin so."""
        text = self.q.strip()
        if len(text) < SHORTEST:
            return None
        return f"{self.q}*" if _UNFINISHED.search(self.q) else text

    @property
    def filter(self) -> Filter:
        """Which sessions pass. A search looks among those that were put away too."""
        put_away: Archived = "only" if self.archived else "exclude" if self.query is None else "include"
        return Filter(
            source=None if self.source == NATIVE else self.source,
            native=True if self.source == NATIVE else None,
            tags=self.tags,
            pinned=True if self.pinned else None,
            archived=put_away,
        )

    @property
    def is_narrowed(self) -> bool:
        """Whether something is left out."""
        return self.query is not None or replace(self, q="", cursor=None) != Asked()

    def but(self, **changes: Any) -> str:
        """The address of the same list with something changed, from its beginning."""
        return replace(self, **{"cursor": None, **changes}).address()

    def address(self) -> str:
        """The address that means this."""
        pairs = [("q", self.q), ("source", self.source), *(("tag", tag) for tag in self.tags)]
        pairs += [("archived", "1" if self.archived else ""), ("pinned", "1" if self.pinned else "")]
        pairs.append(("cursor", self.cursor))
        told = urlencode([(name, value) for name, value in pairs if value], errors="replace")
        return f"/?{told}" if told else "/"


def asked(query: bytes) -> Asked:
    """The list that the part of an address behind its question mark means."""
    pairs = parse_qsl(query.decode("latin-1"), errors="replace", max_num_fields=100)
    last = dict(pairs)
    return Asked(
        q=last.get("q", ""),
        source=last.get("source") or None,
        tags=tuple(dict.fromkeys(value for name, value in pairs if name == "tag"))[:TAGS],
        archived=last.get("archived") == "1",
        pinned=last.get("pinned") == "1",
        cursor=last.get("cursor") or None,
    )
