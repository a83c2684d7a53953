"""The service: every rule of the product, and nothing else. One module for each family of use cases."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.engine import Engine
from hitherto.errors import InvalidInput
from hitherto.ids import now_ms, uuid7
from hitherto.keys import is_ephemeral
from hitherto.ports import Store
from hitherto.service.access.presence import Presence
from hitherto.service.access.signin import Visits
from hitherto.service.access.tokens import Access
from hitherto.service.admin.maintenance import Upkeep
from hitherto.service.admin.retention import Doomed, Policy, Retention
from hitherto.service.admin.statistics import Overviews
from hitherto.service.channels.resets import ResetPolicy, Resets, parse_resets
from hitherto.service.channels.routing import Address, Routing, address_of
from hitherto.service.history.comparison import Comparing
from hitherto.service.idempotency import Guard, Guarding
from hitherto.service.memory import Memory
from hitherto.service.search.sessions import Searching
from hitherto.service.search.within import Looking
from hitherto.service.transfer.import_ import Importing
from hitherto.service.transfer.synced import Imported, Intake, Taken
from hitherto.service.turns.open_session import OpenSession, Turns
from hitherto.summariser import CompactionPolicy


class Sessions(
    Turns,
    Searching,
    Looking,
    Comparing,
    Retention,
    Resets,
    Importing,
    Intake,
    Memory,
    Upkeep,
    Overviews,
    Access,
    Visits,
    Presence,
    Routing,
    Guarding,
):
    """All that can be done with sessions. Every call takes the principal on whose behalf it is made."""

    engine: Engine | None = None
    """What answers prompts, where that is not the caller's to choose: a server's."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = uuid7,
        ephemeral: Sessions | None = None,
        compaction: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - a frozen value
    ) -> None:
        super().__init__(store, now=now, new_id=new_id)
        self._ephemeral, self._compaction = ephemeral, compaction

    def at(self, name: str) -> Sessions:
        """Where a session of this key or id is kept: here, or in the memory of this process if it is ephemeral."""
        if not is_ephemeral(name):
            return self
        if self._ephemeral is None:
            raise InvalidInput("no ephemeral sessions are kept here: open the store with ephemeral=True")
        return self._ephemeral


__all__ = [
    "Address", "Doomed", "Guard", "Imported", "OpenSession", "Policy", "ResetPolicy", "Sessions", "Taken",
    "address_of", "parse_resets",
]  # fmt: skip
