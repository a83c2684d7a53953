"""The service: every rule of the product, and nothing else. One room for each family of use cases."""

from __future__ import annotations

from hitherto.service.admin.retention import Doomed, Policy
from hitherto.service.channels.resets import ResetPolicy, parse_resets
from hitherto.service.channels.routing import Address, address_of
from hitherto.service.idempotency import Guard
from hitherto.service.sessions import ROOMS, Sessions
from hitherto.service.transfer.synced import Imported, Taken
from hitherto.service.turns.open_session import OpenSession

__all__ = [
    "ROOMS", "Address", "Doomed", "Guard", "Imported", "OpenSession", "Policy", "ResetPolicy", "Sessions", "Taken",
    "address_of", "parse_resets",
]  # fmt: skip
