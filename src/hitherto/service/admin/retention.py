"""Retention: archiving or deleting old sessions by a policy. The default policy keeps everything."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Archived, Filter, Principal, Session, Value
from hitherto.ports import Writer
from hitherto.service.catalog.deletion import collect
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, clean_afterwards
from hitherto.service.records import change_session
from hitherto.service.turns.leases import Leases
from hitherto.service.validation import checked_owner
from hitherto.values.days import DAY_MS


class Policy(Value, frozen=True):
    """What to keep. A session goes when any given bound says so; None says nothing.

    `agent_id` confines the policy to one agent's sessions. `spare_read_ms` spares what was read so recently.
    """

    older_than_ms: int | None = None
    keep_newest: int | None = None
    keep_bytes: int | None = None
    agent_id: str | None = None
    spare_read_ms: int = 7 * DAY_MS
    delete: bool = False


class PrunedSession(Value, frozen=True):
    """A session that a policy archives or deletes, and why: age, count or bytes."""

    session: Session
    reason: str


class Retention:
    """Keeping a store small."""

    def __init__(self, core: Core, catalog: Catalog, leases: Leases) -> None:
        self._store, self._now = core.store, core.now
        self._catalog, self._leases = catalog, leases

    async def prune(
        self, who: Principal, policy: Policy, *, dry_run: bool = True, now: int | None = None
    ) -> list[PrunedSession]:
        """See `Admin.prune`."""
        _check(policy)
        now = self._now() if now is None else now
        doomed = [found async for found in self._beyond_limits(who, policy, now)]
        if dry_run:
            return doomed
        pruned = [found for found in doomed if await self._prune_session(who, found.session, policy, now)]
        if policy.delete and pruned:
            await clean_afterwards(collect(self._store))
        return pruned

    async def _beyond_limits(self, who: Principal, policy: Policy, now: int) -> AsyncIterator[PrunedSession]:
        """Sessions beyond the policy's bounds, newest first; already archived ones only when it deletes."""
        count, size = 0, 0
        archived: Archived = "include" if policy.delete else "exclude"
        seen: set[str] = set()
        given = Filter(agent_id=policy.agent_id, archived=archived, updated_before=_due_before(policy, now))
        async for session in self._catalog.every(who, given):
            if session.id in seen:
                continue
            seen.add(session.id)
            count, size = count + 1, size + session.bytes
            reason = _reason(policy, now - session.updated_at, count, size)
            if reason is not None and not await self._spared(who, session, policy, now):
                yield PrunedSession(session=session, reason=reason)

    async def _spared(self, who: Principal, session: Session, policy: Policy, now: int) -> bool:
        try:
            return _is_spared(session, policy, now) or await self._leases.current(who, session.id) is not None
        except SessionNotFound:  # deleted since it was listed
            return True

    async def _prune_session(self, who: Principal, session: Session, policy: Policy, now: int) -> bool:
        """Archive or delete the session, unless it changed or must be spared now; checked in the same transaction."""

        async def work(tx: Writer) -> bool:
            record = await tx.session(checked_owner(who), session.id)
            if record is None or record.session.revision != session.revision:
                return False
            leased = record.lease is not None and record.lease.expires_at > await tx.now()
            if leased or _is_spared(record.session, policy, now):
                return False
            if policy.delete:
                await tx.bury(record, self._now())
            else:
                await change_session(tx, record, "archive", archived=True)
            return True

        return await self._store.write(work)


def _due_before(policy: Policy, now: int) -> int | None:
    """By age alone, only what has been inactive since then is looked at. A number, or bytes, to keep are added up from the newest."""
    if policy.older_than_ms is None or (policy.keep_newest, policy.keep_bytes) != (None, None):
        return None
    return max(now - policy.older_than_ms, 0)


def _is_spared(session: Session, policy: Policy, now: int) -> bool:
    recently = session.read_at is not None and now - session.read_at < policy.spare_read_ms
    return session.pinned or recently


def _reason(policy: Policy, age: int, count: int, size: int) -> str | None:
    bounds = (
        ("age", policy.older_than_ms, age),
        ("count", policy.keep_newest, count),
        ("bytes", policy.keep_bytes, size),
    )
    return next((name for name, most, actual in bounds if most is not None and actual > most), None)


def _check(policy: Policy) -> None:
    bounds = (policy.older_than_ms, policy.keep_newest, policy.keep_bytes)
    if all(bound is None for bound in bounds):
        raise InvalidInput(
            "a retention policy needs at least one limit: an age, a number of sessions or a number of bytes"
        )
    if any(bound is not None and bound < 0 for bound in (*bounds, policy.spare_read_ms)):
        raise InvalidInput("a limit of a retention policy cannot be negative")
