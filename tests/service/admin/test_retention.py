"""Retention: policies put old sessions away, and never what is still wanted."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Filter, Lease, Principal
from hitherto.service import Policy, Sessions
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.turns.leases import Leases
from hitherto.values.days import DAY_MS
from tests.support.conversations import everything, listed, say, started
from tests.support.homes import Clock


async def aged(sessions: Sessions, who: Principal, clock: Clock, count: int) -> list[str]:
    """Sessions, one a day, oldest first; a day has passed since the last."""
    ids = []
    for number in range(count):
        ids.append((await started(sessions, who, f"Message {number}", agent_id="xy"[number % 2]))[0].id)
        clock.advance(DAY_MS)
    return ids


async def doomed(
    sessions: Sessions, who: Principal, policy: Policy, *, dry_run: bool = True
) -> dict[str, str]:
    found = await sessions.admin.prune(who, policy, dry_run=dry_run)
    return {each.session.id: each.reason for each in found}


async def test_a_dry_run_tells_and_does_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 5)
    before = await everything(reader, ann)
    found = await doomed(sessions, ann, Policy(older_than_ms=3 * DAY_MS))
    assert found == {ids[0]: "age", ids[1]: "age"}
    assert await everything(reader, ann) == before


class Deleting(Leases):
    """Somebody deletes a session between being listed and being looked at."""

    async def current(self, who: Principal, session_id: str) -> Lease | None:
        await Catalog(self._core).delete(who, session_id)
        return await super().current(who, session_id)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_session_that_is_deleted_meanwhile_is_passed_over(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, dry_run: bool
) -> None:
    await aged(sessions, ann, clock, 3)
    sessions.leases = Deleting(sessions.core)
    assert await doomed(sessions, ann, Policy(older_than_ms=2 * DAY_MS), dry_run=dry_run) == {}
    assert len(await listed(reader, ann)) == 2


async def test_what_is_too_old_is_archived(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 5)
    found = await doomed(sessions, ann, Policy(older_than_ms=3 * DAY_MS), dry_run=False)
    assert sorted(found) == sorted(ids[:2])
    assert await listed(reader, ann) == ids[:1:-1]
    assert sorted(await listed(reader, ann, Filter(archived="only"))) == sorted(ids[:2])
    assert await doomed(sessions, ann, Policy(older_than_ms=3 * DAY_MS)) == {}


async def test_what_is_beyond_a_number_is_archived(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 5)
    found = await doomed(sessions, ann, Policy(keep_newest=2), dry_run=False)
    assert found == dict.fromkeys(ids[:3], "count")
    assert await listed(reader, ann) == [ids[4], ids[3]]


async def test_what_is_beyond_a_number_of_bytes_is_archived(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 4)
    newest = (await reader.get(ann, ids[3])).bytes + (await reader.get(ann, ids[2])).bytes
    found = await doomed(sessions, ann, Policy(keep_bytes=newest), dry_run=False)
    assert found == dict.fromkeys(ids[:2], "bytes")
    assert await listed(reader, ann) == [ids[3], ids[2]]


async def test_a_policy_that_deletes_reaches_archived_sessions_too(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 4)
    await sessions.archive(ann, ids[0])
    found = await doomed(sessions, ann, Policy(keep_newest=2, delete=True), dry_run=False)
    assert sorted(found) == sorted(ids[:2])
    assert await listed(reader, ann, Filter(archived="include")) == [ids[3], ids[2]]
    with pytest.raises(SessionNotFound):
        await reader.get(ann, ids[0])


async def test_a_policy_can_be_confined_to_one_agent_and_never_leaves_its_owner(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 4)
    foreign = await aged(sessions, bob, clock, 4)
    found = await doomed(sessions, ann, Policy(keep_newest=1, agent_id="x"), dry_run=False)
    assert list(found) == [ids[0]]
    assert await listed(reader, bob) == foreign[::-1]


async def test_pinned_leased_and_recently_read_sessions_are_spared(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 5)
    await sessions.pin(ann, ids[0])
    await sessions.leases.acquire(ann, ids[1], "someone", ttl_ms=3_600_000)
    await reader.history(ann, ids[2])
    for delete in (False, True):
        policy = Policy(keep_newest=0, delete=delete, spare_read_ms=DAY_MS)
        assert sorted(await doomed(sessions, ann, policy)) == sorted(ids[3:])
    found = await doomed(sessions, ann, Policy(keep_newest=0, spare_read_ms=DAY_MS), dry_run=False)
    assert sorted(found) == sorted(ids[3:])
    assert sorted(await listed(reader, ann)) == sorted(ids[:3])
    clock.advance(DAY_MS)
    found = await doomed(sessions, ann, Policy(keep_newest=0, spare_read_ms=DAY_MS))
    assert sorted(found) == sorted(ids[1:3])


async def test_spared_sessions_count_toward_a_number(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = await aged(sessions, ann, clock, 3)
    await sessions.pin(ann, ids[2])
    assert list(await doomed(sessions, ann, Policy(keep_newest=1))) == [ids[1], ids[0]]


@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy(agent_id="x"), Policy(keep_newest=-1), Policy(older_than_ms=-1), Policy(keep_bytes=-1)],
)
async def test_a_policy_without_a_bound_or_with_a_negative_one_is_refused(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, policy: Policy
) -> None:
    await aged(sessions, ann, clock, 2)
    before = await everything(reader, ann)
    with pytest.raises(InvalidInput):
        await sessions.admin.prune(ann, policy, dry_run=False)
    assert await everything(reader, ann) == before


@pytest.mark.parametrize("delete", [False, True])
async def test_what_changes_between_looking_and_doing_is_spared(
    sessions: Sessions, other: Sessions, clock: Clock, ann: Principal, delete: bool
) -> None:
    session, _ = await started(sessions, ann, "old")
    clock.now += 100 * DAY_MS

    class Looked(Leases):
        async def current(self, who: Principal, session_id: str) -> Lease | None:
            await other.append(who, session_id, say("just now"))
            return await super().current(who, session_id)

    sessions.leases = Looked(sessions.core)
    policy = Policy(older_than_ms=DAY_MS, delete=delete)
    assert await sessions.admin.prune(ann, policy, dry_run=False) == []
    kept = await other.get(ann, session.id)
    assert (kept.message_count, kept.archived) == (2, False)
