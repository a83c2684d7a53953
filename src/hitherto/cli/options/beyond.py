"""What lies beyond a store: what sync noted on this machine is cleared, and the rest is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources.shared.files import path_of
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import clear_ledger
from hitherto.stores.sqlite.replacement import set_aside

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


async def unreached(sessions: Sessions, touched: Sequence[Session]) -> list[str]:
    """What still has what was erased or deleted in these sessions, and only a person can clear."""
    files = [f"{session.source}'s own file {path_of(session)}" for session in touched if session.source]
    about = await sessions.admin.about()
    aside = set_aside(Path(about["path"])) if "path" in about else []
    return [COPIES, *(f"the store {path}, which a backup replaced" for path in aside), *files]
