"""What the address of the list says: which sessions are asked for, and where everything else on it leads. Pure."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from hitherto.limits import TAGS
from hitherto.model import STATUSES, Archived, Filter, Status, Value

SHORTEST = 2
"""Fewer characters than this are no question yet."""
NATIVE = "hitherto"
SOURCES = {
    NATIVE: "Hitherto",
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "goose": "goose",
    "openclaw": "OpenClaw",
    "opencode": "opencode",
    "pi": "Pi",
}
"""Where sessions come from, as people call it; others are called by their names."""
_UNFINISHED = re.compile(r"(?:^|\s)\w{2,}$")


class Asked(Value, frozen=True):
    """The list that an address means. Whatever it does not know it leaves out. With `ids` only those of its sessions."""

    q: str = ""
    source: str | None = None
    agent: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    status: Status | None = None
    day: str | None = None
    archived: bool = False
    pinned: bool = False
    cursor: str | None = None
    ids: tuple[str, ...] = ()

    @property
    def query(self) -> str | None:
        """What to search for; a last word that may still be typed stands for all words that begin so."""
        text = self.q.strip()
        if len(text) < SHORTEST:
            return None
        return f"{self.q}*" if _UNFINISHED.search(self.q) else text

    @property
    def filter(self) -> Filter:
        """Which sessions pass. A search looks among those that were put away too, and so does a day."""
        everything = self.query is not None or self.day is not None
        put_away: Archived = "only" if self.archived else "include" if everything else "exclude"
        return Filter(
            source=None if self.source == NATIVE else self.source,
            native=True if self.source == NATIVE or self.agent is not None else None,
            agent_id=self.agent,
            project=self.project,
            tags=self.tags,
            status=self.status,
            day=self.day,
            pinned=True if self.pinned else None,
            archived=put_away,
        )

    @property
    def is_narrowed(self) -> bool:
        """Whether something is left out."""
        return self.query is not None or self.is_faceted

    @property
    def is_faceted(self) -> bool:
        """Whether something is left out, apart from what is searched for."""
        return replace(self, q="", cursor=None, ids=()) != Asked()

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What a search goes on with: all that the address says, apart from what is searched for."""
        return replace(self, q="", cursor=None, ids=())._pairs()

    def but(self, **changes: Any) -> str:
        """The address of the same list with something changed, from its beginning."""
        return replace(self, **{"cursor": None, "ids": (), **changes}).address()

    def address(self) -> str:
        """The address that means this."""
        told = urlencode(self._pairs(), errors="replace")
        return f"/?{told}" if told else "/"

    def _pairs(self) -> list[tuple[str, str]]:
        pairs = [("q", self.q), ("source", self.source), ("agent", self.agent), ("project", self.project)]
        pairs += [("tag", tag) for tag in self.tags]
        pairs += [("status", self.status), ("day", self.day)]
        pairs += [("archived", "1" if self.archived else ""), ("pinned", "1" if self.pinned else "")]
        pairs.append(("cursor", self.cursor))
        pairs += [("id", each) for each in self.ids]
        return [(name, value) for name, value in pairs if value]


def asked(query: bytes) -> Asked:
    """The list that the part of an address behind its question mark means."""
    pairs = parse_qsl(query.decode("latin-1"), errors="replace", max_num_fields=100)
    last = dict(pairs)
    return Asked(
        q=last.get("q", ""),
        source=last.get("source") or None,
        agent=last.get("agent") or None,
        project=last.get("project") or None,
        tags=_all(pairs, "tag")[:TAGS],
        status=next((status for status in STATUSES if status == last.get("status")), None),
        day=_day(last.get("day", "")),
        archived=last.get("archived") == "1",
        pinned=last.get("pinned") == "1",
        cursor=last.get("cursor") or None,
        ids=_all(pairs, "id"),
    )


def called(name: str | None) -> str:
    """What people call an agent, or where a session comes from."""
    return SOURCES.get(name or NATIVE, name or NATIVE)


def _all(pairs: list[tuple[str, str]], name: str) -> tuple[str, ...]:
    """Each value of this name, once."""
    return tuple(dict.fromkeys(value for each, value in pairs if each == name))


def _day(text: str) -> str | None:
    try:
        return str(date.fromisoformat(text))
    except ValueError:
        return None
