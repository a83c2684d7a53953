"""The service: every rule of the product, and nothing else. One room for each family of use cases."""

from __future__ import annotations

from hitherto.model import Address
from hitherto.service.admin.retention import Policy, PrunedSession
from hitherto.service.channels.addresses import address_of
from hitherto.service.channels.resets import ResetPolicy, parse_resets
from hitherto.service.idempotency import Guard
from hitherto.service.sessions import ROOMS, Sessions
from hitherto.service.transfer.synced import Imported, SyncResult
from hitherto.service.turns.open_session import OpenSession
from hitherto.service.turns.turns import Runner

__all__ = [
    "ROOMS", "Address", "PrunedSession", "Guard", "Imported", "OpenSession", "Policy", "ResetPolicy", "Runner", "Sessions", "SyncResult",
    "address_of", "parse_resets",
]  # fmt: skip
