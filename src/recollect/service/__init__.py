"""The service: every rule of the product, and nothing else. One module for each family of use cases."""

from __future__ import annotations

from recollect.service.compaction import Compaction
from recollect.service.exporting import Exporting
from recollect.service.intake import Imported, Intake, Taken
from recollect.service.retention import Doomed, Policy, Retention
from recollect.service.searching import Searching
from recollect.service.upkeep import Upkeep
from recollect.service.watching import Watching


class Sessions(Compaction, Searching, Retention, Exporting, Intake, Upkeep, Watching):
    """All that can be done with sessions. Every call takes the principal on whose behalf it is made."""


__all__ = ["Doomed", "Imported", "Policy", "Sessions", "Taken"]
