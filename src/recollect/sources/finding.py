"""Everything that there is to read in several sources, each session once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from recollect.sources.port import WITHIN, Found, Source

Rank = tuple[int, int]


def found_in_all(sources: Sequence[Source]) -> list[Found]:
    """All sessions of these sources. Of one that lies in several folders of an agent, as in a backup, it is the fullest:
    the longest file, in databases what was changed last."""
    found = [each for source in sources for each in source.find()]
    often = {name for name, count in Counter(source.name for source in sources).items() if count > 1}
    if not often:
        return found
    best: dict[object, Found] = {}
    for each in found:
        # A database that cannot be read has no stamp, and is like no other: each is told of.
        repeated = each.source.name in often and each.stamp
        place = (each.source.name, _within(each)) if repeated else id(each)
        known = best.get(place)
        if known is None or _rank(each) > _rank(known):
            best[place] = each
    return list(best.values())


def _within(found: Found) -> str:
    """Where a session lies in its agent's folder."""
    folders = (f"{folder}{os.sep}" for folder in found.source.folders())
    return next((found.key.removeprefix(each) for each in folders if found.key.startswith(each)), found.key)


def _rank(found: Found) -> Rank:
    size = 0
    if WITHIN not in found.key:
        with suppress(OSError):
            size = os.stat(found.key).st_size
    return size, found.at
