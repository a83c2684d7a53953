"""What is done now and then while the server runs: old sessions are put away, if somebody has asked for it."""

from __future__ import annotations

import asyncio
import logging

from recollect.errors import RecollectError
from recollect.model import Principal
from recollect.service import Policy, Sessions

EVERY_SECONDS = 3_600.0

log = logging.getLogger(__name__)


async def keep_to(policy: Policy, sessions: Sessions, every: float = EVERY_SECONDS) -> None:
    """Apply the policy to every owner's sessions, at once and then again and again. Several servers may do so."""
    while True:
        try:
            for owner in await sessions._store.owners():
                gone = await sessions.prune(Principal(owner=owner), policy, dry_run=False)
                if gone:
                    log.warning(
                        "%d old sessions were %s", len(gone), "deleted" if policy.delete else "archived"
                    )
        except RecollectError as error:
            log.warning("old sessions cannot be put away now: %s", error.message)
        await asyncio.sleep(every)
