"""Facts, raw copies, numbers, the doctor and backups."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import pytest

from hitherto.errors import SessionNotFound, StoreError
from hitherto.model import Fact, Filter, Principal, Usage
from hitherto.ports import RawCopy, Store
from hitherto.service import Sessions
from hitherto.stores import connector
from hitherto.values.days import DAY_MS
from tests.support.conversations import everything, exported, listed, say, started, told
from tests.support.homes import Clock, Home


async def test_facts_are_kept_newest_first(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    one, ids = await started(sessions, ann, "a")
    two, _ = await started(sessions, ann, "b")
    old = Fact(id="f1", at=1, text="Old \0\ud800", session=one.id, entries=tuple(ids))
    new = Fact(id="f2", at=2, text="New", kind="preference", session=one.id)
    apart = Fact(id="f3", at=3, text="Elsewhere", session=two.id)
    free = Fact(id="f4", at=0, text="Of nobody's session")
    await sessions.memory.add(ann, [old, new])
    await sessions.memory.add(ann, [apart, free])
    await sessions.memory.add(bob, [Fact(id="f1", at=9, text="Bob's")])
    assert await reader.memory.facts(ann) == [apart, new, old, free]
    assert await reader.memory.facts(ann, one.id) == [new, old]
    assert await reader.memory.facts(bob) == [Fact(id="f1", at=9, text="Bob's")]
    with pytest.raises(SessionNotFound):
        await reader.memory.facts(bob, one.id)


async def test_facts_of_no_session_of_the_caller_are_refused(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    foreign = await sessions.create(bob)
    mine = await sessions.create(ann)
    for session_id in (foreign.id, "nowhere"):
        facts = [
            Fact(id="a", at=1, text="x", session=mine.id),
            Fact(id="b", at=1, text="y", session=session_id),
        ]
        with pytest.raises(SessionNotFound) as caught:
            await sessions.memory.add(ann, facts)
        assert caught.value.message == f"no session {session_id!r}"
    assert await reader.memory.facts(ann) == []


async def test_a_deleted_session_takes_its_facts_along(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.memory.add(
        ann, [Fact(id="f1", at=1, text="Gone", session=session.id), Fact(id="f2", at=1, text="Stays")]
    )
    await sessions.delete(ann, session.id)
    assert [fact.id for fact in await reader.memory.facts(ann)] == ["f2"]


async def test_an_erased_entry_takes_facts_that_no_other_message_says(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, (one, two) = await started(sessions, ann, "a", "This is from both of us")
    facts = [
        Fact(id="f1", at=1, text="From one", session=session.id, entries=(one,)),
        Fact(id="f2", at=1, text="From both", session=session.id, entries=(one, two)),
        Fact(id="f3", at=1, text="From two", session=session.id, entries=(two,)),
        Fact(id="f4", at=1, text="From none", session=session.id),
        Fact(
            id="f5", at=1, text="Said by the first, or meant by both", session=session.id, entries=(one, two)
        ),
    ]
    await sessions.memory.add(ann, facts)
    await sessions.erase(ann, session.id, one)
    assert sorted(fact.id for fact in await reader.memory.facts(ann)) == ["f2", "f3", "f4"]


async def test_raw_copies_above_a_budget_go_with_the_oldest_activity_first(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal, bob: Principal
) -> None:
    made = []
    for number in range(3):
        session, _ = await started(sessions, ann, f"said {number}")
        noise = b"".join(hashlib.sha256(b"%d %d" % (number, at)).digest() for at in range(200))
        await sessions.transfer.keep_raw(ann, session.id, "000000000000000", noise[:3_200])
        await sessions.transfer.keep_raw(ann, session.id, "000000000003200", noise[3_200:])
        made.append(session.id)
        clock.advance(DAY_MS)
    theirs, _ = await started(sessions, bob, "bob's")
    await sessions.transfer.keep_raw(bob, theirs.id, "n", b"x" * 10_000)
    assert await sessions.transfer.trim_raw(ann, 1_000_000) == 0
    assert await sessions.transfer.trim_raw(ann, 15_000) == 1
    kept = [len(await reader.transfer.raw(ann, id_)) for id_ in made]
    assert (kept, await reader.transfer.raw(bob, theirs.id)) == ([0, 2, 2], [RawCopy("n", b"x" * 10_000)])
    await sessions.append(ann, made[1], say("newest"))
    assert await sessions.transfer.trim_raw(ann, 10_000) == 1
    assert [len(await reader.transfer.raw(ann, id_)) for id_ in made] == [0, 2, 0]
    assert await sessions.transfer.trim_raw(ann, 0) == 1
    assert await told(reader, ann, made[0]) == ["said 0"]
    assert await sessions.transfer.trim_raw(ann, 0) == 0


async def test_raw_copies_are_kept_byte_for_byte_by_name(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    assert await reader.transfer.raw(ann, session.id) == []
    await sessions.transfer.keep_raw(ann, session.id, "b.jsonl", b"\0\xff\xfe old")
    await sessions.transfer.keep_raw(ann, session.id, "a.jsonl", b"")
    await sessions.transfer.keep_raw(ann, session.id, "b.jsonl", bytes(range(256)) * 4)
    found = await reader.transfer.raw(ann, session.id)
    assert found == [RawCopy("a.jsonl", b""), RawCopy("b.jsonl", bytes(range(256)) * 4)]


async def test_the_numbers_are_those_of_the_caller_s_sessions(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    empty = await reader.statistics.stats(ann)
    assert (empty["sessions"], empty["messages"], empty["tokens"], empty["cost"]) == (0, 0, None, None)
    one, _ = await started(sessions, ann, "a", agent_id="x")
    await sessions.append(ann, one.id, say("b", tokens=5, usage=Usage(cost=0.5)))
    two, _ = await started(sessions, ann, "c", agent_id="x")
    await sessions.archive(ann, two.id)
    await sessions.pin(ann, one.id)
    clock.advance()
    three, _ = await started(sessions, ann, "d", agent_id="y")
    await started(sessions, bob, "e", agent_id="y")
    found = await reader.statistics.stats(ann)
    sizes = sum([(await reader.get(ann, each.id)).bytes for each in (one, two, three)])
    assert (found["sessions"], found["archived"], found["pinned"]) == (3, 1, 1)
    assert (found["messages"], found["tokens"], found["cost"], found["bytes"]) == (4, 5, 0.5, sizes)
    assert (found["by_agent"], found["by_source"]) == ({"x": 2, "y": 1}, {})
    assert (found["oldest"], found["newest"]) == (one.created_at, clock.now)


async def test_a_healthy_store_has_nothing_to_repair(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    fork = await sessions.fork(ann, source.id, at=ids[1])
    await sessions.compact(ann, source.id, say("S", "system"), keep=1)
    await sessions.erase(ann, source.id, ids[0])
    await sessions.delete(ann, source.id)
    await started(sessions, bob, "e")
    before = await everything(reader, ann, bob)
    looked = await reader.admin.check(repair=False)
    assert looked.checked
    assert (looked.problems, looked.repaired) == ((), ())
    mended = await reader.admin.check(repair=True)
    assert (mended.problems, mended.repaired) == ((), ())
    assert await everything(reader, ann, bob) == before
    assert await told(reader, ann, fork.id) == ["", "b"]


async def test_the_doctor_forgets_old_idempotency_keys(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old = await sessions.create(ann, idempotency_key="old")
    clock.advance(6 * DAY_MS)
    recent = await sessions.create(ann, idempotency_key="recent")
    clock.advance(2 * DAY_MS)
    health = await reader.admin.check(repair=True)
    assert any("idempotency" in told for told in health.repaired)
    assert (await sessions.create(ann, idempotency_key="recent")).id == recent.id
    assert (await sessions.create(ann, idempotency_key="old")).id != old.id


async def test_a_key_that_is_kept_is_answered_whatever_the_clock_says(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    first = await sessions.create(ann, idempotency_key="pay")
    paid = await sessions.append(ann, first.id, say("pay"), idempotency_key="pay")
    for days in (8, -20, 20_000):
        clock.advance(days * DAY_MS)
        assert (await reader.create(ann, idempotency_key="pay")).id == first.id
        assert await reader.append(ann, first.id, say("pay"), idempotency_key="pay") == paid
    assert await told(reader, ann, first.id) == ["pay"]


async def test_a_store_says_what_it_is(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    await started(sessions, ann, "a")
    about = await reader.admin.about()
    assert isinstance(about["kind"], str)


async def test_a_store_knows_who_has_sessions(store: Store, sessions: Sessions) -> None:
    assert await store.owners() == []
    for owner in ("zoe", "ann", "ann"):
        await sessions.create(Principal(owner=owner))
    gone = await sessions.create(Principal(owner="max"))
    await sessions.delete(Principal(owner="max"), gone.id)
    assert sorted(await store.owners()) == ["ann", "zoe"]


async def test_a_backup_is_a_whole_copy_or_is_refused(
    sessions: Sessions, home: Home, ann: Principal, clock: Clock, tmp_path: Path
) -> None:
    session, _ = await started(sessions, ann, "Kept twice")
    lines = await exported(sessions, ann, session.id)
    target = tmp_path / "copy.db"
    with contextlib.suppress(StoreError):
        await sessions.admin.backup(str(target))
    if not target.exists():
        with pytest.raises(StoreError, match=r"export|dump"):
            await sessions.admin.backup(str(target))
        return
    await sessions.delete(ann, session.id)
    scheme = home.url.partition(":")[0]
    url = f"{scheme}:///{target}"
    async with connector(url)(url, clock) as copy:
        there = Sessions(copy, now=clock)
        assert await listed(there, ann, Filter(archived="include")) == [session.id]
        assert await exported(there, ann, session.id) == lines
        assert (await there.admin.check(repair=False)).problems == ()
        assert len((await there.search(ann, "twice")).hits) == 1


async def test_data_outlives_the_connection_that_wrote_it(
    home: Home, sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    async with connector(home.url)(home.url, clock) as passing:
        session, _ = await started(Sessions(passing, now=clock), ann, "Written and gone")
        lines = await exported(Sessions(passing, now=clock), ann, session.id)
    assert await exported(sessions, ann, session.id) == lines
    assert [hit.session.id for hit in (await sessions.search(ann, "written")).hits] == [session.id]
