"""The query part of the address of the list: which sessions it selects, and addresses of related lists. Pure."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from hitherto.limits import TAGS
from hitherto.model import STATUSES, Archived, Filter, Status, Value
from hitherto.service.search.sessions import Order

SHORTEST = 2
"""A search needs at least this many characters."""
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
"""Display names of sources; any other source is shown by its own name."""
_UNFINISHED = re.compile(r"(?:^|\s)\w{2,}$")


class ListQuery(Value, frozen=True):
    """What an address selects. Unknown parameters are ignored. With `ids`, only those sessions."""

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
    best: bool = False

    @property
    def search(self) -> str | None:
        """The text to search for; the last word, which may be incomplete, matches as a prefix, but not that of a question."""
        text = self.q.strip()
        if len(text) < SHORTEST:
            return None
        return f"{self.q}*" if _UNFINISHED.search(self.q) and not self.best else text

    @property
    def order(self) -> Order:
        """The order of what a search finds."""
        return "best" if self.best else "newest"

    @property
    def filter(self) -> Filter:
        """Which sessions pass. A search, or a day, includes archived sessions."""
        everything = self.search is not None or self.day is not None
        archived: Archived = "only" if self.archived else "include" if everything else "exclude"
        return Filter(
            source=None if self.source == NATIVE else self.source,
            native=True if self.source == NATIVE or self.agent is not None else None,
            agent_id=self.agent,
            project=self.project,
            tags=self.tags,
            status=self.status,
            day=self.day,
            pinned=True if self.pinned else None,
            archived=archived,
            subagents=self.search is not None,
        )

    @property
    def is_narrowed(self) -> bool:
        """Whether a search or a filter is on."""
        return self.search is not None or self.is_faceted

    @property
    def is_faceted(self) -> bool:
        """Whether a filter is on."""
        return replace(self, q="", cursor=None, ids=(), best=False) != ListQuery()

    @property
    def filter_fields(self) -> list[tuple[str, str]]:
        """The filters as pairs, which the search form sends along."""
        return replace(self, q="", cursor=None, ids=())._pairs()

    def address_with(self, **changes: Any) -> str:
        """The address of this list with changes, from its first page."""
        return replace(self, **{"cursor": None, "ids": (), **changes}).address()

    def address(self) -> str:
        """The address of this list."""
        query = urlencode(self._pairs(), errors="replace")
        return f"/?{query}" if query else "/"

    def _pairs(self) -> list[tuple[str, str]]:
        pairs = [("q", self.q), ("source", self.source), ("agent", self.agent), ("project", self.project)]
        pairs += [("tag", tag) for tag in self.tags]
        pairs += [("status", self.status), ("day", self.day)]
        pairs += [("archived", "1" if self.archived else ""), ("pinned", "1" if self.pinned else "")]
        pairs += [("order", "best" if self.best else ""), ("cursor", self.cursor)]
        pairs += [("id", each) for each in self.ids]
        return [(name, value) for name, value in pairs if value]


def parse_query(query: bytes) -> ListQuery:
    """Parse the query part of an address."""
    pairs = parse_qsl(query.decode("latin-1"), errors="replace", max_num_fields=100)
    last = dict(pairs)
    return ListQuery(
        q=last.get("q", ""),
        source=last.get("source") or None,
        agent=last.get("agent") or None,
        project=last.get("project") or None,
        tags=_all(pairs, "tag")[:TAGS],
        status=next((status for status in STATUSES if status == last.get("status")), None),
        day=_day(last.get("day", "")),
        archived=last.get("archived") == "1",
        best=last.get("order") == "best",
        pinned=last.get("pinned") == "1",
        cursor=last.get("cursor") or None,
        ids=_all(pairs, "id"),
    )


def source_label(name: str | None) -> str:
    """The display name of an agent or a source."""
    return SOURCES.get(name or NATIVE, name or NATIVE)


def _all(pairs: list[tuple[str, str]], name: str) -> tuple[str, ...]:
    """Each value of this name, once."""
    return tuple(dict.fromkeys(value for each, value in pairs if each == name))


def _day(text: str) -> str | None:
    try:
        return str(date.fromisoformat(text))
    except ValueError:
        return None
