"""Forks, rewinds, resets and checkpoints: nothing said is lost, nothing shared is taken away."""

from __future__ import annotations

import pytest

from hitherto.errors import CheckpointNotFound, EntryNotFound
from hitherto.model import Principal, Usage
from hitherto.service import Sessions
from tests.support.conversations import exported, said, say, started, talk, told
from tests.support.homes import Clock


async def healthy(sessions: Sessions) -> bool:
    return (await sessions.admin.check(repair=False)).problems == ()


async def test_a_fork_at_the_end_has_all_of_it_and_goes_its_own_way(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    source, ids = await started(
        sessions, ann, "One", "Two", cwd="/a", tags=["t"], key="k", agent_id="x", channel="irc", meta={"m": 1}
    )
    now = clock.advance()
    fork = await sessions.fork(ann, source.id)
    await talk(sessions, ann, source.id, "Source only")
    await talk(sessions, ann, fork.id, "Fork only")
    assert await told(reader, ann, fork.id) == ["One", "Two", "Fork only"]
    assert await told(reader, ann, source.id) == ["One", "Two", "Source only"]
    assert (fork.parent, fork.parent_entry, fork.revision) == (source.id, None, 1)
    assert (fork.created_at, fork.updated_at) == (now, now)
    assert (fork.cwd, fork.agent_id, fork.channel, fork.meta) == ("/a", "x", "irc", {"m": 1})
    assert (fork.key, fork.tags, fork.title) == (None, (), source.title)
    assert (fork.message_count, fork.bytes) == (source.message_count, source.bytes)
    assert [entry.id for entry in (await reader.history(ann, fork.id)).entries][:2] == ids


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
async def test_a_fork_at_an_entry_ends_with_it(
    sessions: Sessions, reader: Sessions, ann: Principal, cut: int
) -> None:
    source = await sessions.create(ann)
    drafts = [say(text, tokens=number, usage=Usage(cost=number)) for number, text in enumerate("abcd", 1)]
    ids = (await sessions.append(ann, source.id, drafts)).entries
    fork = await sessions.fork(ann, source.id, at=ids[cut], title="Cut", cwd="/else/")
    found = await reader.get(ann, fork.id)
    assert found == fork
    assert await told(reader, ann, fork.id) == list("abcd")[: cut + 1]
    assert (found.title, found.title_by, found.cwd, found.parent_entry) == ("Cut", "user", "/else", ids[cut])
    counted = sum(range(1, cut + 2))
    assert (found.message_count, found.token_count, found.cost) == (cut + 1, counted, counted)
    await talk(sessions, ann, fork.id, "e")
    assert await told(reader, ann, fork.id) == [*"abcd"[: cut + 1], "e"]
    assert await healthy(reader)


async def test_a_fork_of_a_fork_is_cut_in_either_s_part(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"ab")
    fork = await sessions.fork(ann, source.id)
    more = await talk(sessions, ann, fork.id, *"cd")
    early = await sessions.fork(ann, fork.id, at=ids[0])
    late = await sessions.fork(ann, fork.id, at=more[0])
    assert await told(reader, ann, early.id) == ["a"]
    assert await told(reader, ann, late.id) == ["a", "b", "c"]
    with pytest.raises(EntryNotFound):
        await sessions.fork(ann, source.id, at=more[0])


async def test_a_fork_of_an_empty_session_is_empty(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source = await sessions.create(ann)
    fork = await sessions.fork(ann, source.id)
    await talk(sessions, ann, source.id, "Later")
    assert await told(reader, ann, fork.id) == []


async def test_deleting_the_source_leaves_the_fork_whole(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcde")
    fork = await sessions.fork(ann, source.id, at=ids[2])
    before = await exported(reader, ann, fork.id)
    await sessions.delete(ann, source.id)
    assert await told(reader, ann, fork.id) == ["a", "b", "c"]
    assert (await exported(reader, ann, fork.id))[1:] == before[1:]
    left = await reader.get(ann, fork.id)
    assert (left.parent, left.parent_entry) == (None, None)
    assert [hit.session.id for hit in (await reader.search(ann, "b")).hits] == [fork.id]
    assert (await reader.search(ann, "d")).hits == ()
    assert await healthy(reader)


async def test_deleting_a_fork_leaves_the_source_whole(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, _ = await started(sessions, ann, *"abc")
    fork = await sessions.fork(ann, source.id)
    await talk(sessions, ann, fork.id, "d")
    before = await exported(reader, ann, source.id)
    await sessions.delete(ann, fork.id)
    assert await exported(reader, ann, source.id) == before
    assert (await reader.search(ann, "d")).hits == ()
    await sessions.delete(ann, source.id)
    assert (await reader.search(ann, "a")).hits == ()
    assert await healthy(reader)


async def test_counts_stay_right_where_entries_between_were_removed(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source = await sessions.create(ann)
    drafts = [say(text, tokens=2**number, usage=Usage(cost=1)) for number, text in enumerate("abcd")]
    ids = (await sessions.append(ann, source.id, drafts[:3])).entries
    await sessions.rewind(ann, source.id, ids[1])
    await sessions.append(ann, source.id, [drafts[3], say("e", tokens=16)])
    fork = await sessions.fork(ann, source.id)
    await sessions.delete(ann, source.id)
    last = (await reader.history(ann, fork.id, last=True, limit=2)).entries[0]
    await sessions.rewind(ann, fork.id, last.id)
    found = await reader.get(ann, fork.id)
    assert await told(reader, ann, fork.id) == ["a", "b", "d"]
    assert (found.message_count, found.token_count, found.cost) == (3, 1 + 2 + 8, 3)
    assert found.bytes == sum(map(len, (await reader.history(ann, fork.id)).raw))
    assert await healthy(reader)


async def test_a_rewind_makes_an_entry_the_newest_and_keeps_the_rest_as_a_checkpoint(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session, ids = await started(sessions, ann, *"abcd")
    now = clock.advance()
    done = await sessions.rewind(ann, session.id, ids[1])
    assert (done.message_count, done.revision, done.updated_at) == (2, session.revision + 1, now)
    await talk(sessions, ann, session.id, "e")
    assert await told(reader, ann, session.id) == ["a", "b", "e"]
    assert await told(reader, ann, session.id, "conversation") == ["a", "b", "e"]
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    assert (checkpoint.reason, checkpoint.message_count, checkpoint.at) == ("rewind", 4, now)
    with pytest.raises(EntryNotFound):
        await sessions.rewind(ann, session.id, ids[2])


async def test_a_reset_starts_anew_and_keeps_what_was_as_a_checkpoint(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"ab", title="Mine")
    done = await sessions.reset(ann, session.id)
    assert (done.message_count, done.bytes, done.title) == (0, 0, "Mine")
    assert done.revision == session.revision + 1
    await talk(sessions, ann, session.id, "c")
    assert await told(reader, ann, session.id) == ["c"]
    assert [known.reason for known in await reader.checkpoints(ann, session.id)] == ["reset"]


async def test_resetting_an_empty_session_leaves_no_checkpoint(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.reset(ann, session.id)
    assert await reader.checkpoints(ann, session.id) == []


async def test_checkpoints_are_listed_in_the_order_they_were_made(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abc")
    await sessions.rewind(ann, session.id, ids[1])
    await sessions.reset(ann, session.id)
    await talk(sessions, ann, session.id, "d")
    await sessions.compact(ann, session.id, say("S"))
    found = await reader.checkpoints(ann, session.id)
    assert [known.reason for known in found] == ["rewind", "reset", "compaction"]
    assert [known.message_count for known in found] == [3, 2, 1]


async def test_a_restore_is_exact(sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock) -> None:
    session, ids = await started(sessions, ann, *"abcd")
    await sessions.rewind(ann, session.id, ids[0])
    await talk(sessions, ann, session.id, "e")
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    clock.advance()
    done = await sessions.restore(ann, session.id, checkpoint.id)
    assert await told(reader, ann, session.id) == ["a", "b", "c", "d"]
    assert (done.message_count, done.bytes) == (4, session.bytes)
    reasons = [known.reason for known in await reader.checkpoints(ann, session.id)]
    assert reasons == ["rewind", "restore"]
    await talk(sessions, ann, session.id, "f")
    assert await told(reader, ann, session.id) == ["a", "b", "c", "d", "f"]
    assert await healthy(reader)


async def test_a_restore_can_be_undone_by_another(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abc")
    await sessions.rewind(ann, session.id, ids[0])
    await talk(sessions, ann, session.id, "d")
    first, *_ = await reader.checkpoints(ann, session.id)
    await sessions.restore(ann, session.id, first.id)
    *_, second = await reader.checkpoints(ann, session.id)
    await sessions.restore(ann, session.id, second.id)
    assert await told(reader, ann, session.id) == ["a", "d"]


async def test_a_restore_with_since_goes_on_with_what_was_said_after(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"abc")
    done = await sessions.compact(ann, session.id, say("S", "system"), keep=1)
    await talk(sessions, ann, session.id, *"de")
    await sessions.restore(ann, session.id, done.checkpoint, since=True)
    assert await told(reader, ann, session.id) == ["a", "b", "c", "d", "e"]
    assert await healthy(reader)


async def test_a_restore_after_two_compactions_drops_nothing_that_was_said(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"abc")
    first = await sessions.compact(ann, session.id, say("S1", "system"), keep=1)
    await talk(sessions, ann, session.id, *"de")
    second = await sessions.compact(ann, session.id, say("S2", "system"), keep=1)
    await talk(sessions, ann, session.id, "f")
    await sessions.restore(ann, session.id, first.checkpoint, since=True)
    assert await told(reader, ann, session.id) == ["a", "b", "c", "d", "e", "f"]
    *_, present = await reader.checkpoints(ann, session.id)
    await sessions.restore(ann, session.id, present.id)
    assert await told(reader, ann, session.id) == ["S2", "e", "f"]
    assert await told(reader, ann, session.id, "conversation") == ["a", "b", "c", "S1", "d", "e", "S2", "f"]
    await sessions.restore(ann, session.id, second.checkpoint, since=True)
    assert await told(reader, ann, session.id) == ["S1", "c", "d", "e", "f"]
    assert await told(reader, ann, session.id, "conversation") == ["a", "b", "c", "S1", "d", "e", "f"]
    assert await healthy(reader)


async def test_a_branch_starts_from_a_checkpoint_and_leaves_the_session_alone(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abc")
    await sessions.rewind(ann, session.id, ids[0])
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    before = await exported(reader, ann, session.id)
    branch = await sessions.branch(ann, session.id, checkpoint.id, title="Again", cwd="/b")
    await talk(sessions, ann, branch.id, "d")
    assert await told(reader, ann, branch.id) == ["a", "b", "c", "d"]
    assert (branch.parent, branch.title, branch.cwd, branch.message_count) == (session.id, "Again", "/b", 3)
    assert await exported(reader, ann, session.id) == before
    await sessions.delete(ann, session.id)
    assert await told(reader, ann, branch.id) == ["a", "b", "c", "d"]


async def test_a_branch_from_a_compacted_checkpoint_keeps_the_whole_conversation(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"ab")
    await sessions.compact(ann, session.id, say("S1", "system"))
    await talk(sessions, ann, session.id, "c")
    second = await sessions.compact(ann, session.id, say("S2", "system"))
    branch = await sessions.branch(ann, session.id, second.checkpoint)
    await sessions.delete(ann, session.id)
    assert await told(reader, ann, branch.id) == ["S1", "c"]
    assert await told(reader, ann, branch.id, "conversation") == ["a", "b", "S1", "c"]
    assert await healthy(reader)


async def test_a_checkpoint_of_another_session_is_not_found(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    apart, _ = await started(sessions, ann, "b")
    foreign, _ = await started(sessions, bob, "c")
    await sessions.reset(ann, apart.id)
    await sessions.reset(bob, foreign.id)
    known = [*await sessions.checkpoints(ann, apart.id), *await sessions.checkpoints(bob, foreign.id)]
    for checkpoint in (*(each.id for each in known), "", "no such", "\0", "\ud800"):
        for call in (
            sessions.restore(ann, session.id, checkpoint),
            sessions.restore(ann, session.id, checkpoint, since=True),
            sessions.branch(ann, session.id, checkpoint),
        ):
            with pytest.raises(CheckpointNotFound):
                await call


async def test_checkpoints_stay_reachable_when_the_fork_s_source_is_gone(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abc")
    await sessions.compact(ann, source.id, say("S", "system"), keep=1)
    fork = await sessions.fork(ann, source.id)
    early = await sessions.fork(ann, source.id, at=ids[1])
    await sessions.delete(ann, source.id)
    assert await told(reader, ann, fork.id) == ["S", "c"]
    assert await told(reader, ann, fork.id, "conversation") == ["a", "b", "c", "S"]
    assert await told(reader, ann, early.id) == ["a", "b"]
    assert early.last_compaction is None
    (checkpoint,) = await reader.checkpoints(ann, fork.id)
    await sessions.restore(ann, fork.id, checkpoint.id)
    assert said(await reader.history(ann, fork.id)) == ["a", "b", "c"]
    assert await healthy(reader)


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
async def test_going_back_before_an_entry_leaves_it_out(
    sessions: Sessions, reader: Sessions, ann: Principal, cut: int
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    fork = await sessions.fork(ann, source.id, at=ids[cut], before=True)
    assert await told(reader, ann, fork.id) == list("abcd")[:cut]
    done = await sessions.rewind(ann, source.id, ids[cut], before=True)
    assert (await told(reader, ann, source.id), done.message_count) == (list("abcd")[:cut], cut)
    (checkpoint,) = await reader.checkpoints(ann, source.id)
    assert said(await reader.history(ann, source.id, checkpoint=checkpoint.id)) == list("abcd")
    assert await healthy(reader)


async def test_before_what_was_said_after_a_compaction_stands_its_summary(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abc")
    await sessions.compact(ann, source.id, say("short", "system"), keep=1)
    (after,) = await talk(sessions, ann, source.id, "d")
    fork = await sessions.fork(ann, source.id, at=after, before=True)
    assert await told(reader, ann, fork.id) == ["short", "c"]
    earlier = await sessions.fork(ann, source.id, at=ids[2], before=True)
    assert await told(reader, ann, earlier.id) == ["a", "b"]


async def test_a_checkpoint_is_read_in_pages_and_its_messages_one_by_one(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcd")
    await sessions.rewind(ann, session.id, ids[0])
    await talk(sessions, ann, session.id, "other")
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    page = await reader.history(
        ann, session.id, view="conversation", checkpoint=checkpoint.id, last=True, limit=2
    )
    assert (said(page), page.total, page.previous) == (["c", "d"], 4, ids[2])
    page = await reader.history(ann, session.id, checkpoint=checkpoint.id, before=ids[2], limit=5)
    assert (said(page), page.previous) == (["a", "b"], None)
    assert said([await reader.entry(ann, session.id, ids[3])]) == ["d"]
    with pytest.raises(EntryNotFound):
        await reader.history(ann, session.id, around=ids[3])
    with pytest.raises(CheckpointNotFound):
        await reader.history(ann, session.id, checkpoint="c")
