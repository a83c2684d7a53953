"""Leases: the right to write to a session for a while, with a fencing number that a late holder cannot forge."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.errors import Busy, InvalidInput, LeaseLost
from hitherto.model import Lease, Principal
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room
from hitherto.service.history.inbox import place_unanswered
from hitherto.service.notes import END_REQUESTS, Note
from hitherto.service.records import active_lease, require_session
from hitherto.service.validation import checked_required
from hitherto.values.days import DAY_MS

LONGEST_LEASE_MS = DAY_MS


class Leases(Room):
    """One writer at a time."""

    async def acquire(self, who: Principal, session_id: str, holder: str, *, ttl_ms: int = 30_000) -> Lease:
        """Take the session's lease, or raise `Busy` while another has it. Appends then pass its `fence`."""

        async def work(tx: Writer) -> Lease:
            record = await require_session(tx, who, session_id)
            checked_required(holder, "a holder")
            _checked_ttl(ttl_ms)
            return await take_lease(tx, record, holder, ttl_ms)

        return await self._store.write(work, session_id)

    async def renew(self, who: Principal, session_id: str, fence: int, *, ttl_ms: int = 30_000) -> Lease:
        """Hold the lease for longer; `LeaseLost` if it has expired or passed on."""
        return await self._extend(who, session_id, fence, _checked_ttl(ttl_ms))

    async def release(self, who: Principal, session_id: str, fence: int) -> None:
        """Give the lease back, and place what has waited for that; `LeaseLost` if it has expired or passed on."""
        await self._extend(who, session_id, fence, 0)

    async def current(self, who: Principal, session_id: str) -> Lease | None:
        """The lease that holds now."""

        async def work(tx: Reader) -> Lease | None:
            return active_lease((await require_session(tx, who, session_id)).lease, await tx.now())

        return await self._store.read(work)

    async def request_end(self, who: Principal, session_id: str) -> bool:
        """Ask for the end of the turn that runs, in whichever process; False if none does."""

        async def work(tx: Writer) -> bool:
            record = await require_session(tx, who, session_id)
            fence = await _fence(tx, record)
            if fence is not None:
                await END_REQUESTS.put(tx, record.owner, session_id, Note(fence, self._now()))
            return fence is not None

        return await self._store.write(work)

    async def end_requested(self, who: Principal, session_id: str) -> bool:
        """Whether the end of the turn that runs now was asked for."""

        async def work(tx: Reader) -> bool:
            record = await require_session(tx, who, session_id)
            asked = await END_REQUESTS.get(tx, record.owner, session_id)
            return asked is not None and asked.value == await _fence(tx, record)

        return await self._store.read(work)

    async def _extend(self, who: Principal, session_id: str, fence: int, ttl_ms: int) -> Lease:
        async def work(tx: Writer) -> Lease:
            record = await require_session(tx, who, session_id)
            now = await tx.now()
            held = active_lease(record.lease, now)
            if held is None or held.fence != fence:
                raise LeaseLost
            lease = Lease(
                holder=held.holder, fence=fence, acquired_at=held.acquired_at, expires_at=now + ttl_ms
            )
            await tx.put_lease(record, lease)
            if not ttl_ms:
                free = replace(record, lease=lease)
                await place_unanswered(tx, free, self._now(), self._store.secret)
            return lease

        return await self._store.write(work, session_id)


async def take_lease(tx: Writer, record: Record, holder: str, ttl_ms: int) -> Lease:
    """A new lease of the session, or `Busy`."""
    now = await tx.now()
    held = active_lease(record.lease, now)
    if held is not None:
        raise Busy(held.holder, now - held.acquired_at)
    fence = 1 if record.lease is None else record.lease.fence + 1
    lease = Lease(holder=holder, fence=fence, acquired_at=now, expires_at=now + ttl_ms)
    await tx.put_lease(record, lease)
    return lease


async def _fence(tx: Reader, record: Record) -> int | None:
    """What distinguishes the running turn from every other of the session."""
    held = active_lease(record.lease, await tx.now())
    return None if held is None else held.fence


def _checked_ttl(ttl_ms: int) -> int:
    if not 1 <= ttl_ms <= LONGEST_LEASE_MS:
        raise InvalidInput(f"a lease lasts 1 to {LONGEST_LEASE_MS} ms, not {ttl_ms}")
    return ttl_ms
