"""What lies beyond a store: what sync noted on this machine is cleared, and the rest is named."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources.shared.files import path_of
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import clear_ledger

COPIES = "backups, exports and stores that were set aside"


async def clear_notes(sessions: Sessions) -> None:
    """Forget what sync noted on this machine of sessions that were deleted, or in which something was erased."""
    path = read_settings().data_dir / f"sources-{sessions.admin.store_id}.db"
    if path.exists():
        ledger = Ledger(path)
        try:
            await clear_ledger(sessions, LOCAL, ledger)
        finally:
            ledger.close()


def unreached(sessions: Sequence[Session]) -> list[str]:
    """What still has what was erased or deleted in these sessions, and only a person can clear."""
    files = [f"{session.source}'s own file {path_of(session)}" for session in sessions if session.source]
    return [COPIES, *files]
