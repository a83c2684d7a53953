"""The service: every rule of the product, and nothing else. One module for each family of use cases."""

from __future__ import annotations

from collections.abc import Callable

from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.ids import now_ms, uuid7
from recollect.ports import Store
from recollect.service.access import Access
from recollect.service.comparing import Comparing
from recollect.service.core import is_ephemeral
from recollect.service.guarding import Guard, Guarding
from recollect.service.importing import Importing
from recollect.service.intake import Imported, Intake, Taken
from recollect.service.looking import Looking
from recollect.service.overview import Overviews
from recollect.service.presence import Presence
from recollect.service.remembering import Memory
from recollect.service.resets import ResetPolicy, Resets, parse_resets
from recollect.service.retention import Doomed, Policy, Retention
from recollect.service.routing import Address, Routing, address_of
from recollect.service.searching import Searching
from recollect.service.turns import OpenSession, Turns
from recollect.service.upkeep import Upkeep
from recollect.service.visits import Visits
from recollect.summariser import CompactionPolicy


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
