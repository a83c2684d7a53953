"""The filters of the list, with the number of sessions of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hitherto.gateway.page.list_query import ListQuery, source_label
from hitherto.model import Counts, Facets, Status
from hitherto.presentation import formats
from hitherto.values.facets import MOST

VISIBLE = 8
"""How many choices of a group are visible; the others are folded."""


class Choice(NamedTuple):
    """A link that adds a filter, or removes it if it is already on."""

    text: str
    address: str
    chosen: bool
    many: str | None = None
    whole: str | None = None


class Group(NamedTuple):
    """Choices of one kind, the most frequent first."""

    title: str
    choices: tuple[Choice, ...]

    @property
    def first(self) -> tuple[Choice, ...]:
        """The visible choices, including every chosen one."""
        return tuple(each for at, each in enumerate(self.choices) if at < VISIBLE or each.chosen)

    @property
    def rest(self) -> tuple[Choice, ...]:
        """The folded choices."""
        return tuple(each for each in self.choices[VISIBLE:] if not each.chosen)

    @property
    def is_cut(self) -> bool:
        """Whether there may be more than these."""
        return len(self.choices) >= MOST


class _Kind(NamedTuple):
    """A kind of filter: its values with counts, and those that are chosen, which the field `name` of the query has."""

    title: str
    counts: Counts
    name: str
    chosen: tuple[str, ...]
    label: Callable[[str], str] = str


def groups(facets: Facets, query: ListQuery) -> list[Group]:
    """All groups that have a choice."""
    made = [
        Group("Sessions", tuple(_whole_list(facets, query))),
        *(Group(kind.title, tuple(_choices(kind, facets, query))) for kind in _kinds(facets, query)),
    ]
    return [group for group in made if group.choices]


def _whole_list(facets: Facets, query: ListQuery) -> Iterator[Choice]:
    everything = ListQuery(q=query.q, best=query.best)
    yield Choice("All", everything.address(), not query.is_faceted, _many(facets.total, "total", facets))
    yield _status("running", query)
    if query.status not in (None, "running"):
        yield _status(query.status, query)
    pinned, archived = (
        query.address_with(pinned=not query.pinned),
        query.address_with(archived=not query.archived),
    )
    yield Choice("Pinned", pinned, query.pinned, _many(facets.pinned, "pinned", facets))
    yield Choice("Archived", archived, query.archived, _many(facets.archived, "archived", facets))


def _status(status: Status, query: ListQuery) -> Choice:
    chosen = query.status == status
    return Choice(status.capitalize(), query.address_with(status=None if chosen else status), chosen)


def _kinds(facets: Facets, query: ListQuery) -> Iterator[_Kind]:
    yield _Kind("Day", (), "day", () if query.day is None else (query.day,))
    yield _Kind("Agent", facets.agents, "agents", query.agents, source_label)
    yield _Kind("Project", facets.projects, "projects", query.projects, formats.folder)
    yield _Kind("Tag", facets.tags, "tags", query.tags)
    yield _Kind("Source", facets.sources, "sources", query.sources, source_label)


def _choices(kind: _Kind, facets: Facets, query: ListQuery) -> Iterator[Choice]:
    """All choices of a kind. A chosen one is included even if no session has it any more."""
    counts: dict[str, int | None] = dict(kind.counts)
    counts |= {name: None for name in kind.chosen if name not in counts}
    for name, many in counts.items():
        chosen, text = name in kind.chosen, kind.label(name)
        others = tuple(each for each in kind.chosen if each != name)
        changes: dict[str, Any] = {kind.name: others if chosen else (*kind.chosen, name)}
        address = query.address_with(**({"day": None} if kind.name == "day" else changes))
        told = None if many is None else _many(many, kind.name, facets)
        yield Choice(text, address, chosen, told, None if text == name else name)


def _many(number: int, field: str, facets: Facets) -> str:
    """A number of sessions; of more than were counted, at least so many."""
    return f"{formats.count(number)}{'+' if field in facets.more and number else ''}"
