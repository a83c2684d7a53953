"""Everything that there is to read in several sources, each session once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from hitherto.sources.port import Found, Source
from hitherto.sources.tables import Row

Rank = tuple[bool, int, int]


def found_in_all(sources: Iterable[Source]) -> list[Found]:
    """All sessions of these sources. Of one that lies in several places of an agent, as in a backup or the folder of a
    project that was moved, it is the fullest: the longest file, in databases what was changed last."""
    of_agents = defaultdict[str, dict[str, Found]](dict)
    for source in sources:
        best = of_agents[source.name]
        for each in source.find():
            name = each.identity or each.key
            known = best.setdefault(name, each)
            if known is not each and _rank(each) > _rank(known):
                best[name] = each
    return [each for best in of_agents.values() for each in best.values()]


def _rank(found: Found) -> Rank:
    """What lies in a database is newer than what lies in files; how long it is there nobody has counted."""
    in_database = isinstance(found.where, Row)
    return in_database, 0 if in_database else found.size, found.at
