"""Sessions that are reached by key; and calls that are guarded, repeated and put together."""

from __future__ import annotations

import pytest

from hitherto.errors import (
    AlreadyExists,
    Busy,
    IdempotencyConflict,
    InvalidInput,
    ReadOnly,
    RevisionConflict,
    SessionNotFound,
)
from hitherto.model import Principal, Session
from hitherto.service import Address, Guard, Imported, Sessions, address_of
from hitherto.values.keys import parse_key
from tests.support.conversations import everything, exported, listed, say, started, told
from tests.support.homes import Clock

KEY = "agent:main:telegram:dm:u"


def at(key: str) -> Address:
    return address_of(parse_key(key), "owner")


async def test_a_session_is_found_by_its_key_and_by_its_id(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    made = await sessions.channels.begin(ann, at(KEY), title="T", cwd="/w")
    assert await reader.channels.resolve(ann, KEY) == await reader.channels.resolve(ann, made.id) == made
    assert (made.key, made.agent_id, made.channel, made.title, made.cwd) == (
        KEY,
        "main",
        "telegram",
        "T",
        "/w",
    )
    for name in ("nobody", "", "\0", "x" * 1_000, KEY + "x"):
        with pytest.raises(SessionNotFound):
            await reader.channels.resolve(ann, name)


async def test_a_key_goes_before_an_id_of_the_same_spelling(sessions: Sessions, ann: Principal) -> None:
    await sessions.create(ann, session_id=KEY)
    keyed = await sessions.channels.begin(ann, at(KEY))
    assert await sessions.channels.resolve(ann, KEY) == keyed
    assert (await sessions.get(ann, KEY)).key is None


async def test_an_address_says_who_speaks() -> None:
    person = at("agent:a:matrix:dm:%40al%3Ax").identity
    group = at("agent:a:matrix:group:%40al%3Ax").identity
    assert person is not None
    assert group is not None
    assert (person.role, person.identity_id, person.source_channel) == ("guest", "matrix:%40al%3Ax", "matrix")
    assert (group.role, group.identity_id) == ("guest", "matrix:group:%40al%3Ax")
    bare = address_of(None, "service", channel="irc")
    assert bare.identity is not None
    assert (bare.key, bare.agent_id, bare.channel) == (None, "main", "irc")
    assert (bare.identity.role, bare.identity.identity_id, bare.identity.source_channel) == (
        "service",
        "service",
        "irc",
    )


async def test_a_session_started_anew_is_fresh_under_the_old_key(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old, _ = await started(sessions, ann, "one", key=KEY, agent_id="main", channel="telegram", cwd="/w")
    clock.advance()
    before, fresh = await sessions.channels.start_anew(ann, old.id, title="Fresh")
    assert (before.id, before.key, before.revision) == (old.id, None, old.revision + 1)
    assert (fresh.key, fresh.cwd, fresh.channel, fresh.title) == (KEY, "/w", "telegram", "Fresh")
    assert fresh.meta == {"previous": old.id}
    assert await reader.channels.resolve(ann, KEY) == fresh
    assert await told(reader, ann, old.id) == ["one"]
    assert {change.session: change.kind for change in await reader.changes.since(ann)} == {
        old.id: "route",
        fresh.id: "create",
    }


async def test_a_session_in_use_or_read_from_another_agent_is_not_started_anew(
    sessions: Sessions, ann: Principal
) -> None:
    made = await sessions.channels.begin(ann, at(KEY))
    await sessions.leases.acquire(ann, made.id, "me")
    imported = Imported(id="claude:x", source="claude", created_at=1, updated_at=1)
    await sessions.transfer.sync(ann, imported, [])
    state = await everything(sessions, ann)
    with pytest.raises(Busy):
        await sessions.channels.start_anew(ann, made.id)
    with pytest.raises(ReadOnly):
        await sessions.channels.start_anew(ann, "claude:x")
    assert await everything(sessions, ann) == state


async def test_a_fork_stands_where_it_is_told_to_or_is_not_made(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, (first, _) = await started(sessions, ann, "one", "two", key="agent:main:main")
    made = await sessions.channels.fork_to(ann, source.id, at(KEY), at=first, title="T")
    assert (made.key, made.channel, made.parent, made.title) == (KEY, "telegram", source.id, "T")
    assert await told(reader, ann, made.id) == ["one"]
    state = [await exported(sessions, ann, each) for each in await listed(sessions, ann)]
    for taken in (KEY, "agent:main:main"):
        with pytest.raises(AlreadyExists):
            await sessions.channels.fork_to(ann, source.id, at(taken))
        with pytest.raises(AlreadyExists):
            await sessions.channels.readdress(
                ann, (await sessions.channels.fork_to(ann, source.id, None)).id, at(taken)
            )
    forks = [session for session in (await sessions.find(ann)).sessions if session.key is None]
    for fork in forks:
        await sessions.delete(ann, fork.id)
    assert [await exported(sessions, ann, each) for each in await listed(sessions, ann)] == state
    await sessions.reset(ann, source.id)
    (checkpoint,) = await sessions.checkpoints(ann, source.id)
    branch = await sessions.channels.fork_to(ann, source.id, None, checkpoint=checkpoint.id)
    assert await told(reader, ann, branch.id) == ["one", "two"]


async def test_a_turn_is_called_off_only_while_it_runs(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    made = await sessions.channels.begin(ann, at(KEY))
    assert not await other.leases.request_end(ann, made.id)
    lease = await sessions.leases.acquire(ann, made.id, "me", ttl_ms=1_000)
    assert not await sessions.leases.end_requested(ann, made.id)
    assert await other.leases.request_end(ann, made.id)
    assert await sessions.leases.end_requested(ann, made.id)
    await sessions.leases.release(ann, made.id, lease.fence)
    assert not await sessions.leases.end_requested(ann, made.id)
    await sessions.leases.acquire(ann, made.id, "me", ttl_ms=1_000)
    assert not await sessions.leases.end_requested(ann, made.id)
    clock.advance()
    assert not await other.leases.request_end(ann, made.id)


async def test_what_is_amended_is_amended_together(sessions: Sessions, ann: Principal) -> None:
    made = await sessions.create(ann, title="T", tags=["a", "b"], meta={"x": 1})
    done = await sessions.channels.amend(
        ann, made.id, title=None, tags=["b", "c"], archived=True, pinned=True, meta={"x": None, "y": 2}
    )
    assert (done.title, done.tags, done.archived, done.pinned) == (None, ("b", "c"), True, True)
    assert done.meta == {"y": 2}
    assert await sessions.channels.amend(ann, made.id) == done
    with pytest.raises(InvalidInput):
        await sessions.channels.amend(ann, made.id, title="New", meta={"x": object()})
    assert await sessions.get(ann, made.id) == done


# Guards


async def test_a_guarded_call_is_done_once_and_answered_alike(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    source, _ = await started(sessions, ann, "one")
    guard = Guard(method="m", asked=["fork", source.id], key="k")

    async def once(service: Sessions, guard: Guard = guard) -> object:
        return await service.idempotency.guarded(
            ann, guard, lambda inner: inner.fork(ann, source.id), lambda made: {"id": made.id}
        )

    assert await sessions.idempotency.answered_before(ann, guard) is None
    first = await once(sessions)
    state = await everything(sessions, ann)
    clock.advance()
    assert (
        await once(other)
        == await once(sessions)
        == await other.idempotency.answered_before(ann, guard)
        == first
    )
    with pytest.raises(IdempotencyConflict):
        await once(other, Guard(method="m", asked="something else", key="k"))
    with pytest.raises(InvalidInput):
        await once(other, Guard(method="m", asked=1, key=""))
    assert await everything(sessions, ann) == state
    assert await sessions.idempotency.answered_before(Principal(owner="bob"), guard) is None


async def test_a_guarded_call_whose_answer_cannot_be_made_changes_nothing(
    sessions: Sessions, ann: Principal
) -> None:
    source, _ = await started(sessions, ann, "one")
    state = await everything(sessions, ann)
    guard = Guard(method="m", asked=1, key="k")

    def answer(_: Session) -> None:
        raise InvalidInput("no")

    with pytest.raises(InvalidInput):
        await sessions.idempotency.guarded(ann, guard, lambda inner: inner.fork(ann, source.id), answer)
    assert await everything(sessions, ann) == state
    assert await sessions.idempotency.answered_before(ann, guard) is None


async def test_a_guarded_call_sees_the_revision_that_its_caller_has_seen(
    sessions: Sessions, ann: Principal
) -> None:
    made, _ = await started(sessions, ann, "one")
    guard = Guard(method="m", asked=1, session_id=made.id, expected_revision=made.revision)

    async def rename(guard: Guard, title: str) -> object:
        return await sessions.idempotency.guarded(
            ann, guard, lambda inner: inner.rename(ann, made.id, title), lambda session: session.title
        )

    assert await rename(guard, "T") == "T"
    with pytest.raises(RevisionConflict):
        await rename(guard, "U")
    assert (await sessions.get(ann, made.id)).title == "T"


async def test_a_deletion_is_guarded_and_what_nothing_reaches_is_collected(
    sessions: Sessions, ann: Principal
) -> None:
    made, _ = await started(sessions, ann, "one", "two")
    guard = Guard(method="m", asked=1, key="k", session_id=made.id, expected_revision=made.revision)
    removed = await sessions.idempotency.guarded(
        ann, guard, lambda inner: inner.delete(ann, made.id), lambda messages: messages
    )
    assert removed == await sessions.idempotency.answered_before(ann, guard) == 2
    assert await sessions.admin.collect() == 0


async def test_somebody_else_s_sessions_are_not_reached(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    theirs = await sessions.channels.begin(bob, at(KEY))
    await sessions.append(bob, theirs.id, say("theirs"))
    state = await everything(sessions, bob)
    with pytest.raises(SessionNotFound):
        await sessions.channels.begin(ann, at("subagent:agent:main:s"), parent=KEY)
    mine = await sessions.channels.begin(ann, at(KEY))
    assert (await sessions.channels.resolve(ann, KEY)).id == mine.id != theirs.id
    assert await everything(sessions, bob) == state
