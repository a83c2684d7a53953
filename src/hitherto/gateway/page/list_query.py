"""The query part of the address of the list: which sessions it selects, and addresses of related lists. Pure."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from hitherto.limits import TAGS
from hitherto.model import STATUSES, Archived, Condition, Filter, Status, Value
from hitherto.service.search.sessions import Order
from hitherto.values.filters import HERE
from hitherto.values.query.language import Query, filtered
from hitherto.values.query.moments import said_in

SHORTEST = 2
"""A search needs at least this many characters."""
NATIVE = HERE
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
    sources: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
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
        """The text to search for; the last word, which may be incomplete, matches as a prefix, but not that of a question, or of a
        time such as `last week`."""
        text = self.q.strip()
        if len(text) < SHORTEST:
            return None
        is_begun = _UNFINISHED.search(self.q) and said_in(self.q, 0)[0] == said_in(f"{self.q}*", 0)[0]
        return f"{self.q}*" if is_begun and not self.best else text

    @property
    def order(self) -> Order:
        """The order of what a search finds."""
        return "best" if self.best else "newest"

    @property
    def filter(self) -> Filter:
        """Which sessions pass. A search, or a day, includes archived sessions."""
        everything = self.search is not None or self.day is not None
        archived: Archived = "only" if self.archived else "include" if everything else "exclude"
        named = (("source", self.sources), ("agent", self.agents), ("project", self.projects))
        chosen = tuple(Condition(field=name, values=values) for name, values in named if values)
        given = Filter(
            tags=self.tags,
            status=self.status,
            day=self.day,
            pinned=True if self.pinned else None,
            archived=archived,
            subagents=self.search is not None,
        )
        return filtered(given, Query(session=chosen))

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
        chosen = (
            ("source", self.sources),
            ("agent", self.agents),
            ("project", self.projects),
            ("tag", self.tags),
        )
        pairs: list[tuple[str, str | None]] = [("q", self.q)]
        pairs += [(name, value) for name, values in chosen for value in values]
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
        sources=_all(pairs, "source"),
        agents=_all(pairs, "agent"),
        projects=_all(pairs, "project"),
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
    return tuple(dict.fromkeys(value for each, value in pairs if each == name and value))


def _day(text: str) -> str | None:
    try:
        return str(date.fromisoformat(text))
    except ValueError:
        return None
