"""The service: every rule of the product, and nothing else. One module for each family of use cases."""

from __future__ import annotations

from recollect.service.exporting import Exporting
from recollect.service.intake import Imported, Intake, Taken
from recollect.service.retention import Doomed, Policy, Retention
from recollect.service.searching import Searching
from recollect.service.turns import OpenSession, Turns
from recollect.service.upkeep import Upkeep


class Sessions(Turns, Searching, Retention, Exporting, Intake, Upkeep):
    """All that can be done with sessions. Every call takes the principal on whose behalf it is made."""


__all__ = ["Doomed", "Imported", "OpenSession", "Policy", "Sessions", "Taken"]
