"""What a list can be narrowed to, and how many sessions there are of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hitherto.gateway.page.list_query import NATIVE, Asked, called
from hitherto.model import Counts, Facets, Status
from hitherto.presentation import formats
from hitherto.values.facets import MOST

SHOWN = 8
"""So many of a group are seen at once; the others are folded away."""
NOBODY = {"source": None, "agent": None}


class Choice(NamedTuple):
    """A link that narrows the list, or takes that back if it is narrowed so already."""

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
        """Those that are seen at once, what was chosen among them."""
        return tuple(each for at, each in enumerate(self.choices) if at < SHOWN or each.chosen)

    @property
    def rest(self) -> tuple[Choice, ...]:
        """The others."""
        return tuple(each for each in self.choices[SHOWN:] if not each.chosen)

    @property
    def is_cut(self) -> bool:
        """Whether there may be more than are told."""
        return len(self.choices) >= MOST


class _Kind(NamedTuple):
    """What sessions are told apart by: the names, those that were chosen, and what it changes to choose one."""

    title: str
    counts: Counts
    chosen: tuple[str | None, ...]
    choose: Callable[[str], dict[str, Any]]
    leave: Callable[[str], dict[str, Any]]
    told: Callable[[str], str] = str


def groups(facets: Facets, asked: Asked) -> list[Group]:
    """All groups that have something to choose."""
    made = [
        Group("Sessions", tuple(_whole(facets, asked))),
        *(Group(kind.title, tuple(_choices(kind, asked))) for kind in _kinds(facets, asked)),
    ]
    return [group for group in made if group.choices]


def whose(name: str, sources: Counts) -> dict[str, str | None]:
    """What an address says for an agent: those whose files are read are sources, the others agents of our own."""
    return {**NOBODY, "source" if name in dict(sources) else "agent": name}


def _whole(facets: Facets, asked: Asked) -> Iterator[Choice]:
    yield Choice("All", Asked(q=asked.q).address(), not asked.is_faceted, facets.total)
    yield _doing("running", asked)
    if asked.status not in (None, "running"):
        yield _doing(asked.status, asked)
    yield Choice("Pinned", asked.but(pinned=not asked.pinned), asked.pinned, facets.pinned)
    yield Choice("Archived", asked.but(archived=not asked.archived), asked.archived, facets.archived)


def _doing(status: Status, asked: Asked) -> Choice:
    chosen = asked.status == status
    return Choice(status.capitalize(), asked.but(status=None if chosen else status), chosen)


def _kinds(facets: Facets, asked: Asked) -> Iterator[_Kind]:
    yield _Kind("Day", (), (asked.day,), lambda name: {"day": name}, lambda _: {"day": None})
    yield _Kind(
        "Agent",
        facets.agents,
        (asked.agent, None if asked.source == NATIVE else asked.source),
        lambda name: whose(name, facets.sources),
        lambda _: NOBODY,
        called,
    )
    yield _Kind(
        "Project",
        facets.projects,
        (asked.project,),
        lambda name: {"project": name},
        lambda _: {"project": None},
        formats.folder,
    )
    yield _Kind(
        "Tag",
        facets.tags,
        asked.tags,
        lambda name: {"tags": (*asked.tags, name)},
        lambda name: {"tags": tuple(tag for tag in asked.tags if tag != name)},
    )
    yield _Kind(
        "Source",
        _sources(facets),
        (asked.source,),
        lambda name: {"source": name, "agent": None},
        lambda _: {"source": None},
        called,
    )


def _choices(kind: _Kind, asked: Asked) -> Iterator[Choice]:
    """All of a kind. What was chosen is there also if nothing has it any more."""
    counts: dict[str, int | None] = dict(kind.counts)
    counts |= {name: None for name in kind.chosen if name is not None and name not in counts}
    for name, many in counts.items():
        chosen = name in kind.chosen
        changes = kind.leave(name) if chosen else kind.choose(name)
        text = kind.told(name)
        yield Choice(text, asked.but(**changes), chosen, many, None if text == name else name)


def _sources(facets: Facets) -> Counts:
    """What was made here stands first; there is nothing to choose if nothing comes from elsewhere."""
    here = facets.total - sum(many for _, many in facets.sources)
    return ((NATIVE, here), *facets.sources) if facets.sources and here else facets.sources
