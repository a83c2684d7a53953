"""How much a search finds in all: exactly if it is little, else as much as was counted."""

from __future__ import annotations

from collections.abc import Iterable

from hitherto.limits import COUNTED
from hitherto.model import Found, Session
from hitherto.ports import Match
from hitherto.service.search.standing import Standing


class Tally:
    """Counts the documents that a search wants, each once, and the sessions that they stand in, up to `COUNTED` of each."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._hits = 0
        self.sessions: dict[str, Session] = {}
        self.more = False
        """Whether there is more, or may be."""

    def found(self) -> Found:
        """What was counted."""
        hits, sessions = min(self._hits, COUNTED), min(len(self.sessions), COUNTED)
        return Found(hits=hits, sessions=sessions, more=self.more)

    async def take(self, matches: Iterable[Match]) -> bool:
        """Count these documents; False if that is enough."""
        for match in matches:
            if self._hits >= COUNTED or len(self.sessions) >= COUNTED or self._standing.is_spent:
                self.more = True
                return False
            await self._take(match)
        return True

    async def _take(self, match: Match) -> None:
        standing, entry, wanted = self._standing, None, False
        for session, _ in await standing.standing_in(match):
            if standing.reads_all and match.place is not None and entry is None:
                entry = await standing.read(match.place)
            at = session.created_at if entry is None else entry.at
            if not standing.reads_all or await standing.is_wanted(entry, match.place, at):
                self.sessions[session.id] = session
                wanted = True
        self._hits += wanted
