"""The filters of the list, with the number of sessions of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hitherto.gateway.page.list_query import NATIVE, ListQuery, source_label
from hitherto.model import Counts, Facets, Status
from hitherto.presentation import formats
from hitherto.values.facets import MOST

VISIBLE = 8
"""How many choices of a group are visible; the others are folded."""
ANY_AGENT = {"source": None, "agent": None}


class Choice(NamedTuple):
    """A link that adds a filter, or removes it if it is already on."""

    text: str
    address: str
    chosen: bool
    many: int | None = None
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
    """A kind of filter: its values with counts, the chosen ones, and the changes of the query that add or remove one."""

    title: str
    counts: Counts
    chosen: tuple[str | None, ...]
    choose: Callable[[str], dict[str, Any]]
    remove: Callable[[str], dict[str, Any]]
    label: Callable[[str], str] = str


def groups(facets: Facets, query: ListQuery) -> list[Group]:
    """All groups that have a choice."""
    made = [
        Group("Sessions", tuple(_whole_list(facets, query))),
        *(Group(kind.title, tuple(_choices(kind, query))) for kind in _kinds(facets, query)),
    ]
    return [group for group in made if group.choices]


def agent_filter(name: str, sources: Counts) -> dict[str, str | None]:
    """The query parameters for an agent: `source` if its files are read, else `agent`."""
    return {**ANY_AGENT, "source" if name in dict(sources) else "agent": name}


def _whole_list(facets: Facets, query: ListQuery) -> Iterator[Choice]:
    yield Choice("All", ListQuery(q=query.q).address(), not query.is_faceted, facets.total)
    yield _status("running", query)
    if query.status not in (None, "running"):
        yield _status(query.status, query)
    yield Choice("Pinned", query.address_with(pinned=not query.pinned), query.pinned, facets.pinned)
    yield Choice("Archived", query.address_with(archived=not query.archived), query.archived, facets.archived)


def _status(status: Status, query: ListQuery) -> Choice:
    chosen = query.status == status
    return Choice(status.capitalize(), query.address_with(status=None if chosen else status), chosen)


def _kinds(facets: Facets, query: ListQuery) -> Iterator[_Kind]:
    yield _Kind("Day", (), (query.day,), lambda name: {"day": name}, lambda _: {"day": None})
    yield _Kind(
        "Agent",
        facets.agents,
        (query.agent, None if query.source == NATIVE else query.source),
        lambda name: agent_filter(name, facets.sources),
        lambda _: ANY_AGENT,
        source_label,
    )
    yield _Kind(
        "Project",
        facets.projects,
        (query.project,),
        lambda name: {"project": name},
        lambda _: {"project": None},
        formats.folder,
    )
    yield _Kind(
        "Tag",
        facets.tags,
        query.tags,
        lambda name: {"tags": (*query.tags, name)},
        lambda name: {"tags": tuple(tag for tag in query.tags if tag != name)},
    )
    yield _Kind(
        "Source",
        _sources(facets),
        (query.source,),
        lambda name: {"source": name, "agent": None},
        lambda _: {"source": None},
        source_label,
    )


def _choices(kind: _Kind, query: ListQuery) -> Iterator[Choice]:
    """All choices of a kind. A chosen one is included even if no session has it any more."""
    counts: dict[str, int | None] = dict(kind.counts)
    counts |= {name: None for name in kind.chosen if name is not None and name not in counts}
    for name, many in counts.items():
        chosen = name in kind.chosen
        changes = kind.remove(name) if chosen else kind.choose(name)
        text = kind.label(name)
        yield Choice(text, query.address_with(**changes), chosen, many, None if text == name else name)


def _sources(facets: Facets) -> Counts:
    """Sessions created here come first; there is no choice if all sessions are."""
    here = facets.total - sum(many for _, many in facets.sources)
    return ((NATIVE, here), *facets.sources) if facets.sources and here else facets.sources
