"""A house for sources: an agent's folder, a store and a ledger, and what came of a sync."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hitherto.model import LOCAL, Entry, Filter, Session, Text, View
from hitherto.service import Sessions
from hitherto.sources import Source
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Report, Sync, find_all
from tests.sources.census import assert_counted

COUNTED = 1 << 20
"""Up to this size, in bytes, every record of a session is counted."""


class House:
    """Syncs one source into a store."""

    def __init__(self, folder: Path, sessions: Sessions, source: Source) -> None:
        self.folder, self.sessions, self.source = folder, sessions, source

    async def sync(self) -> Report:
        """One run of a sync, with what the runs before have noted; no record may be lost in it."""
        ledger = Ledger(self.folder / "data" / "ledger.db")
        found = find_all([self.source])
        try:
            report = await Sync(self.sessions, LOCAL, ledger).run([self.source], found)
        finally:
            ledger.close()
        for each in found:
            if each.stamp and each.size < COUNTED and not report.failed:
                assert_counted(each, self.source.read(each, None))
        return report

    async def only(self) -> Session:
        """The one session that there is."""
        (session,) = (await self.sessions.find(LOCAL, Filter(archived="include"))).sessions
        return session

    async def entries(self, session_id: str) -> tuple[Entry, ...]:
        """All that was said in a session."""
        page = await self.sessions.history(LOCAL, session_id, view="conversation", limit=10_000)
        return page.entries

    async def said(self, session_id: str, view: View = "conversation") -> list[str]:
        """The texts of a session."""
        page = await self.sessions.history(LOCAL, session_id, view=view, limit=10_000)
        return [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]

    def hashes(self, folder: Path) -> dict[str, str]:
        """All files of a folder and what is in them."""
        found = (path for path in folder.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}
