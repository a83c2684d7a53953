"""Facets: numbers of sessions by agent, project, tag and source, and how they change with a session. Pure.

They count sessions that are not archived.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from hitherto.model import Facets, Session, agent_of

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
