"""Leases: one writer at a time, and a late one cannot write."""

from __future__ import annotations

import pytest

from hitherto.errors import Busy, InvalidInput, LeaseLost
from hitherto.model import Principal
from hitherto.service import Sessions
from tests.support.conversations import everything, say, started, talk, told
from tests.support.homes import Clock


async def test_a_lease_is_held_by_one_at_a_time(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    lease = await sessions.leases.acquire(ann, session.id, "first", ttl_ms=1_000)
    assert (lease.holder, lease.acquired_at, lease.expires_at) == ("first", clock.now, clock.now + 1_000)
    assert await other.leases.current(ann, session.id) == lease
    clock.advance(400)
    with pytest.raises(Busy) as caught:
        await other.leases.acquire(ann, session.id, "second")
    assert (caught.value.holder, caught.value.age_ms) == ("first", 400)


async def test_while_a_lease_is_held_others_cannot_write(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "a", "b")
    await sessions.reset(ann, session.id)
    await talk(sessions, ann, session.id, "c")
    (checkpoint,) = await sessions.checkpoints(ann, session.id)
    await sessions.leases.acquire(ann, session.id, "first")
    before = await everything(other, ann)
    for call in (
        other.append(
            ann, session.id, say("No"), expected_revision=(await other.get(ann, session.id)).revision
        ),
        other.rewind(ann, session.id, ids[0]),
        other.reset(ann, session.id),
        other.compact(ann, session.id, say("No")),
        other.restore(ann, session.id, checkpoint.id),
        other.changes.put_live(ann, session.id, b"No"),
    ):
        with pytest.raises((Busy,)):
            await call
    assert await everything(other, ann) == before


async def test_the_holder_writes_with_its_fence(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    lease = await sessions.leases.acquire(ann, session.id, "first")
    fence = lease.fence
    done = await sessions.append(ann, session.id, say("Yes"), fence=fence)
    await sessions.changes.put_live(ann, session.id, b"partial", fence=fence)
    made = await sessions.compact(ann, session.id, say("S"), fence=fence)
    await sessions.rewind(ann, session.id, done.entries[0], fence=fence)
    await sessions.restore(ann, session.id, made.checkpoint, fence=fence)
    assert await told(reader, ann, session.id) == ["Yes"]
    await sessions.reset(ann, session.id, fence=fence)
    assert await told(reader, ann, session.id) == []


async def test_a_holder_that_slept_past_its_lease_cannot_write(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    late = await sessions.leases.acquire(ann, session.id, "late", ttl_ms=1_000)
    clock.advance(1_000)
    assert await other.leases.current(ann, session.id) is None
    with pytest.raises(LeaseLost):
        await sessions.append(ann, session.id, say("Expired"), fence=late.fence)
    await talk(other, ann, session.id, "Free for all")
    quick = await other.leases.acquire(ann, session.id, "quick")
    assert quick.fence == late.fence + 1
    for call in (
        sessions.append(ann, session.id, say("Late"), fence=late.fence),
        sessions.reset(ann, session.id, fence=late.fence),
        sessions.compact(ann, session.id, say("Late"), fence=late.fence),
        sessions.changes.put_live(ann, session.id, b"Late", fence=late.fence),
        sessions.leases.renew(ann, session.id, late.fence),
        sessions.leases.release(ann, session.id, late.fence),
    ):
        with pytest.raises(LeaseLost):
            await call
    await other.append(ann, session.id, say("Quick"), fence=quick.fence)
    assert await told(sessions, ann, session.id) == ["Free for all", "Quick"]


async def test_a_fence_without_a_lease_is_lost(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    for fence in (0, 1, -1, 2**80):
        with pytest.raises(LeaseLost):
            await sessions.append(ann, session.id, say("No"), fence=fence)
        with pytest.raises(LeaseLost):
            await sessions.leases.renew(ann, session.id, fence)
    assert (await sessions.get(ann, session.id)).message_count == 0


async def test_a_renewed_lease_holds_longer(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    lease = await sessions.leases.acquire(ann, session.id, "first", ttl_ms=1_000)
    clock.advance(900)
    renewed = await sessions.leases.renew(ann, session.id, lease.fence, ttl_ms=1_000)
    assert (renewed.fence, renewed.acquired_at) == (lease.fence, lease.acquired_at)
    assert renewed.expires_at == clock.now + 1_000
    clock.advance(900)
    with pytest.raises(Busy):
        await other.leases.acquire(ann, session.id, "second")
    await sessions.append(ann, session.id, say("Still mine"), fence=lease.fence)


async def test_a_released_lease_can_be_taken_with_a_higher_fence(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    first = await sessions.leases.acquire(ann, session.id, "first")
    await sessions.leases.release(ann, session.id, first.fence)
    assert await other.leases.current(ann, session.id) is None
    await talk(other, ann, session.id, "Free")
    second = await other.leases.acquire(ann, session.id, "second")
    assert second.fence > first.fence
    with pytest.raises(LeaseLost):
        await sessions.leases.release(ann, session.id, first.fence)


async def test_a_lease_is_no_change_of_the_session(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    before = await reader.changes.newest(ann)
    lease = await sessions.leases.acquire(ann, session.id, "h")
    await sessions.leases.renew(ann, session.id, lease.fence)
    assert await reader.get(ann, session.id) == session
    assert await reader.changes.newest(ann) == before
    await sessions.rename(ann, session.id, "Edits do not take the lease away")
    assert (await reader.leases.current(ann, session.id)) is not None


@pytest.mark.parametrize("ttl_ms", [0, -1, 24 * 3_600_000 + 1, 2**70])
async def test_a_lease_lasts_at_least_a_moment_and_at_most_a_day(
    sessions: Sessions, ann: Principal, ttl_ms: int
) -> None:
    session = await sessions.create(ann)
    with pytest.raises(InvalidInput):
        await sessions.leases.acquire(ann, session.id, "h", ttl_ms=ttl_ms)
    assert await sessions.leases.current(ann, session.id) is None
    lease = await sessions.leases.acquire(ann, session.id, "h")
    with pytest.raises(InvalidInput):
        await sessions.leases.renew(ann, session.id, lease.fence, ttl_ms=ttl_ms)
    assert await sessions.leases.current(ann, session.id) == lease


async def test_a_deleted_session_s_lease_does_not_hold_its_namesake(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    await sessions.create(ann, session_id="one")
    await sessions.leases.acquire(ann, "one", "h")
    await sessions.delete(ann, "one")
    await other.create(ann, session_id="one")
    assert await sessions.leases.current(ann, "one") is None
    await talk(other, ann, "one", "Free")
