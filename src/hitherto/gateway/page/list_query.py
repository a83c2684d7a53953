"""The query part of the address of the list: which sessions it selects, and addresses of related lists. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from hitherto.ids import now_ms
from hitherto.limits import TAGS
from hitherto.model import STATUSES, Archived, Condition, Filter, Status, Value
from hitherto.service.admin.spending import checked_zone, moment_of
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
Sort = Literal["cost", "changes", "messages"]
SORTS: tuple[Sort, ...] = get_args(Sort)
RECENT = {"1d": "Today", "7d": "7 days", "30d": "30 days"}
"""Times that end today, by the number of their days."""
_UNFINISHED = re.compile(r"(?:^|\s)\w{2,}$")


class ListQuery(Value, frozen=True):
    """What an address selects. Unknown parameters are ignored. With `ids`, only those sessions.

    `since` is a day or one of `RECENT`, `until` a day, both included and in the time of `zone`, which is the browser's.
    """

    q: str = ""
    sources: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: Status | None = None
    day: str | None = None
    since: str | None = None
    until: str | None = None
    archived: bool = False
    pinned: bool = False
    cursor: str | None = None
    ids: tuple[str, ...] = ()
    best: bool = False
    sort: Sort | None = None
    zone: str = "UTC"

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
            updated_after=self._moment(self.since, 0),
            updated_before=self._moment(self.until, 1),
            pinned=True if self.pinned else None,
            archived=archived,
            subagents=self.search is not None,
        )
        return filtered(given, Query(session=chosen))

    def _moment(self, day: str | None, later: int) -> int | None:
        """The beginning of a day, or of one so many days later."""
        if day is None:
            return None
        local = checked_zone(self.zone)
        if day in RECENT:
            later = 1 - int(day[:-1])
            first = datetime.fromtimestamp(now_ms() / 1_000, local).date()
        else:
            first = date.fromisoformat(day)
        return moment_of(first + timedelta(days=later), local)

    @property
    def is_narrowed(self) -> bool:
        """Whether a search or a filter is on."""
        return self.search is not None or self.is_faceted

    @property
    def is_faceted(self) -> bool:
        """Whether a filter is on."""
        return replace(self, q="", cursor=None, ids=(), best=False, sort=None) != ListQuery(zone=self.zone)

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
        pairs += [("status", self.status), ("day", self.day), ("since", self.since), ("until", self.until)]
        pairs += [("archived", "1" if self.archived else ""), ("pinned", "1" if self.pinned else "")]
        pairs += [("order", "best" if self.best else ""), ("sort", self.sort), ("cursor", self.cursor)]
        pairs += [("id", each) for each in self.ids]
        return [(name, value) for name, value in pairs if value]


def parse_query(query: bytes, zone: str = "UTC") -> ListQuery:
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
        since=last["since"] if last.get("since") in RECENT else _bound(last.get("since", "")),
        until=_bound(last.get("until", "")),
        sort=next((sort for sort in SORTS if sort == last.get("sort")), None),
        zone=zone,
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


def _bound(text: str) -> str | None:
    """A day of our time, so that its beginning is a moment everywhere."""
    day = _day(text)
    return day if day and "1970-01-02" <= day < "3000" else None
