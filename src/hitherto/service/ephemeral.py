"""Ephemeral sessions: kept by one process, over a store in its memory, and gone with it."""

from __future__ import annotations

from collections import Counter

from hitherto.errors import InvalidInput, InvalidKey, StoreFull
from hitherto.model import Principal, Session
from hitherto.ports import Record
from hitherto.service.admin.retention import Policy, Retention
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Operation
from hitherto.service.turns.leases import Leases
from hitherto.values.keys import is_ephemeral

BOUND = Policy(keep_newest=1_000, keep_bytes=256 * 1024 * 1024, spare_read_ms=0, delete=True)
"""What an owner may have of them. Beyond it, the least recently active ones are deleted."""
SESSION_BYTES = 64 * 1024 * 1024
"""A larger session takes no more messages."""
LOOKED_AT_BYTES = 16 * 1024 * 1024
"""How many bytes an owner may append before the bound is checked again."""


class EphemeralHome:
    """Ephemeral sessions: never stored, searched, forked or added to memory. Their id is their key."""

    remembers = False

    def __init__(self) -> None:
        self._said: Counter[str] = Counter()
        """Bytes by owner since the bound was last checked."""

    def keeps(self, name: str) -> bool:  # noqa: ARG002 - there is nowhere else to go from here
        return True

    def id_for(self, key: str | None) -> str | None:
        return key

    def check_session(self, session: Session) -> None:
        if not is_ephemeral(session.key) or session.id != session.key:
            raise InvalidKey(f"{session.key or session.id!r} is not the key of an ephemeral session")

    def check_space(self, record: Record) -> None:
        if record.totals.bytes > SESSION_BYTES:
            raise StoreFull(f"an ephemeral session holds at most {SESSION_BYTES} bytes: start a new one")

    def check_allowed(self, operation: Operation) -> None:
        raise InvalidInput(f"an ephemeral session cannot be {operation}")

    async def created(self, core: Core, who: Principal) -> None:
        await _make_room(core, who)

    async def appended(self, core: Core, who: Principal, size: int) -> None:
        self._said[who.owner] += size
        if self._said[who.owner] > LOOKED_AT_BYTES:
            del self._said[who.owner]
            await _make_room(core, who)


async def _make_room(core: Core, who: Principal) -> None:
    """Delete what is beyond the bound, the least recently active first."""
    await Retention(core, Catalog(core), Leases(core)).prune(who, BOUND, dry_run=False)
