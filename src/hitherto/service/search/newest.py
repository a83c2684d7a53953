"""Newest first: the messages that have all the words, and the sessions they are in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from hitherto.limits import HITS_EXAMINED, MORE_CAP, SEARCH_WALK
from hitherto.model import Entry, Filter, Hit
from hitherto.ports import Match, Reader, SearchKey
from hitherto.service.search.conditions import Conditions, sought
from hitherto.service.search.standing import Standing, short
from hitherto.service.search.tally import Tally
from hitherto.values.query.language import Query

FIRST_BATCH = 200
LARGEST_BATCH = 1_000
READ_EXAMINED = 2_000
"""So many messages are looked at for a page if each must be read for it."""

Order = Literal["newest", "best"]
ORDERS: tuple[Order, ...] = get_args(Order)


class Walk(msgspec.Struct, array_like=True):
    """How far a search has come: the last document looked at, and which sessions were shown."""

    before: SearchKey
    shown: tuple[str, ...] = ()


class Asking(NamedTuple):
    """One search of one owner."""

    owner: str
    text: str
    query: Query
    wanted: Filter
    limit: int
    order: Order = "newest"

    @property
    def is_question(self) -> bool:
        """Whether the best match is looked for: by words."""
        return self.order == "best" and bool(self.query.terms)

    def standing(self, tx: Reader, secret: bytes, shown: Sequence[str] = ()) -> Standing:
        """What it asks of sessions. Of a question, words such as `last week` say what to prefer, else what there must be."""
        conditions = Conditions(tx, self.owner, secret, self.query)
        during = self.query.during(named=not self.is_question)
        return Standing(tx, self.owner, conditions, self.wanted, during, shown)


class NewestMatch:
    """One page of one search, inside one transaction."""

    def __init__(self, tx: Reader, standing: Standing, asking: Asking, walk: Walk | None = None) -> None:
        self.tx = tx
        self.asking = asking
        self.sought = sought(asking.query)
        self.before = None if walk is None else walk.before
        self.standing = standing
        self.reads_all = standing.reads_all
        self.found: dict[str, Hit] = {}
        self.more: dict[str, int] = {}

    async def run(self) -> tuple[list[Hit], Walk | None]:
        """Walk the matching documents, newest first, until the page is full, the walk too long, or the end."""
        examined, batch = 0, FIRST_BATCH
        while examined < self._most:
            matches = await self._matches(self.before, batch)
            for match in matches:
                if not await self._take(match):
                    # The next page looks at this match again, for the sessions that found no room.
                    self.before = match.key.above()
                    return self._answer(ended=False)
                self.before = match.key
                if self.standing.is_spent:
                    return self._answer(ended=False)
            examined += len(matches)
            if len(matches) < batch:
                return self._answer(ended=True)
            batch = LARGEST_BATCH
        return self._answer(ended=False)

    async def count(self, tally: Tally) -> None:
        """Count all that the search finds, from the top."""
        before, examined = None, 0
        while examined < self._most:
            matches = await self._matches(before, LARGEST_BATCH)
            if not await tally.take(matches) or len(matches) < LARGEST_BATCH:
                return
            before, examined = matches[-1].key, examined + len(matches)
        tally.more = True

    @property
    def _most(self) -> int:
        """How many documents are looked at, at most."""
        return READ_EXAMINED if self.reads_all else HITS_EXAMINED

    async def _matches(self, before: SearchKey | None, most: int) -> list[Match]:
        query = self.asking.query
        return await self.tx.matches(
            self.asking.owner,
            self.sought.terms,
            query.role,
            before,
            most,
            every=self.sought.every,
            without=query.without,
            during=query.during(named=True),
        )

    def _answer(self, *, ended: bool) -> tuple[list[Hit], Walk | None]:
        shown = (*self.standing.shown, *map(short, self.found))
        hits = [
            msgspec.structs.replace(hit, more=min(self.more[name], MORE_CAP))
            for name, hit in self.found.items()
        ]
        if ended or self.before is None or len(shown) >= SEARCH_WALK:
            return hits, None
        return hits, Walk(self.before, tuple(sorted(shown)))

    async def _take(self, match: Match) -> bool:
        """Count the match for every session it stands in; False when the page has no room for a new one."""
        entry: Entry | None = None
        for session, branch in await self.standing.standing_in(match):
            hit = self.found.get(session.id)
            if hit is not None and not self.reads_all and not _is_better(match, hit):
                self.more[session.id] += 1
                continue
            if match.place is not None and entry is None:
                entry = await self.standing.read(match.place)
            at = session.created_at if entry is None else entry.at
            if not await self.standing.is_wanted(entry, match.place, at):
                continue
            if hit is None and len(self.found) == self.asking.limit:
                return False
            if hit is None or _is_better(match, hit):
                # A message comes where it was said, not where the title stood.
                self.found.pop(session.id, None)
                self.found[session.id] = self.standing.hit(session, entry, at, branch, self.sought.terms)
            self.more[session.id] = self.more.get(session.id, -1) + 1
        return True


def _is_better(match: Match, hit: Hit) -> bool:
    """Messages say more than a title, which is often made from them."""
    return match.place is not None and hit.entry is None
