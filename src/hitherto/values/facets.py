"""Facets: numbers of sessions by agent, project, tag and source, and how they change with a session. Pure.

Those that are kept count sessions that are not archived; of a search, all that it finds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.model import Facets, Filter, Session, agent_of
from hitherto.values.filters import HERE

MOST = 50
COUNT, AGENT, PROJECT, TAG, SOURCE = "count", "agent", "project", "tag", "source"
TOTAL, ARCHIVED, PINNED = "total", "archived", "pinned"
LISTED = (AGENT, PROJECT, TAG, SOURCE)
"""The kinds of marks of which it is shown how frequent each is."""


class Mark(NamedTuple):
    """Something that sessions have in common."""

    kind: str
    value: str


class Traits(NamedTuple):
    """What the marks of a session follow from."""

    archived: bool
    pinned: bool
    agent: str | None
    project: str | None
    source: str | None
    tags: tuple[str, ...]


def traits_of(session: Session) -> Traits:
    """The traits of a session."""
    return Traits(
        session.archived, session.pinned, agent_of(session), session.project, session.source, session.tags
    )


def marks(traits: Traits) -> list[Mark]:
    """The marks of a session, each once."""
    if traits.archived:
        return [Mark(COUNT, ARCHIVED)]
    found = [Mark(COUNT, TOTAL), *(Mark(TAG, tag) for tag in traits.tags)]
    if traits.pinned:
        found.append(Mark(COUNT, PINNED))
    named = ((AGENT, traits.agent), (PROJECT, traits.project), (SOURCE, traits.source))
    return found + [Mark(kind, value) for kind, value in named if value is not None]


def count_changes(old: Traits | None, new: Traits | None) -> dict[Mark, int]:
    """By how much each number changes when a session that was `old` becomes `new`; None: it is not there."""
    if old == new:
        return {}
    change = Counter(marks(new) if new else ())
    change.subtract(marks(old) if old else ())
    return {mark: number for mark, number in change.items() if number}


KINDS = {
    AGENT: "agents",
    PROJECT: "projects",
    TAG: "tags",
    SOURCE: "sources",
    TOTAL: "total",
    ARCHIVED: "archived",
    PINNED: "pinned",
}
"""What is counted, and the field of `Facets` that says how often."""


def freed(given: Filter, kind: str, *, is_search: bool) -> Filter:
    """The filter that says what else could be chosen of a kind: without what is chosen of it. Of tags a session must have all
    that are chosen, so they stay. A search looks at archived sessions too."""
    where = tuple(each for each in given.where if each.field != kind)
    match kind:
        case "total":
            return Filter(archived="include" if is_search else "exclude", subagents=given.subagents)
        case "archived":
            return given if given.archived == "include" else replace(given, archived="only")
        case "pinned":
            return replace(given, pinned=None)
        case "project":
            return replace(given, project=None, where=where)
        case "source":
            return replace(given, source=None, native=None, where=where)
        case "agent":
            return replace(given, agent_id=None, where=where)
        case _:
            return given


def is_kept(given: Filter, kind: str) -> bool:
    """Whether the store keeps the numbers of this kind for such a filter: because it asks for nothing else."""
    plain = Filter(subagents=given.subagents)
    return freed(given, kind, is_search=False) == freed(plain, kind, is_search=False)


def facets_of(sessions: Mapping[str, Sequence[Session]]) -> Facets:
    """The facets of the sessions that were found for each kind; archived ones count too."""
    found: Counter[Mark] = Counter()
    for kind in sessions.keys() & LISTED:
        for session in sessions[kind]:
            alive = marks(traits_of(replace(session, archived=False)))
            found.update(mark for mark in alive if mark.kind == kind)
    found[Mark(COUNT, TOTAL)] = len(sessions.get(TOTAL, ()))
    found[Mark(COUNT, ARCHIVED)] = sum(session.archived for session in sessions.get(ARCHIVED, ()))
    found[Mark(COUNT, PINNED)] = sum(session.pinned for session in sessions.get(PINNED, ()))
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0].value))
    listed = facets((mark.kind, mark.value, number) for mark, number in ordered)
    return with_here(listed, sum(session.source is None for session in sessions.get(SOURCE, ())))


def with_here(given: Facets, here: int) -> Facets:
    """The facets with the sessions that were made here as a source: the first, if there are others."""
    return replace(given, sources=((HERE, here), *given.sources)) if given.sources and here else given


def facets(counts: Iterable[tuple[str, str, int]]) -> Facets:
    """What is shown of numbers by kind and value, of which those of a kind come in order, the most frequent first."""
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for kind, value, number in counts:
        found[kind].append((value, number))
    plain = dict(found[COUNT])
    agents, projects, tags, sources = (tuple(found[kind][:MOST]) for kind in LISTED)
    return Facets(
        total=plain.get(TOTAL, 0),
        archived=plain.get(ARCHIVED, 0),
        pinned=plain.get(PINNED, 0),
        agents=agents,
        projects=projects,
        tags=tags,
        sources=sources,
    )
