"""Sessions that begin with the same history: found by what they share, and told apart where they part."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Draft, Principal, ToolResult, Usage
from hitherto.service import Sessions
from tests.support.conversations import said, say, started, talk


async def test_two_forks_part_after_the_last_message_that_both_have(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    fork = await sessions.fork(ann, source.id, at=ids[1])
    await sessions.append(
        ann,
        fork.id,
        [
            say("x", tokens=5, usage=Usage(cost=0.25)),
            Draft(role="tool", parts=(ToolResult(id="1", is_error=True),)),
        ],
    )
    found = await reader.comparison.compare(ann, fork.id, source.id)
    assert (found.shared, found.ancestor) == (2, ids[1])
    one, other = found.sides
    assert (one.session.id, one.messages, one.tokens, one.failures, one.cost) == (fork.id, 2, 5, 1, 0.25)
    assert (other.session.id, other.messages, other.tokens, other.cost) == (source.id, 2, None, None)
    after = await reader.history(ann, source.id, view="conversation", after=found.ancestor)
    assert said(after) == ["c", "d"]


async def test_what_a_compaction_left_out_is_shared_all_the_same(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    fork = await sessions.fork(ann, source.id, at=ids[2])
    await sessions.compact(ann, source.id, say("short", "system"), keep=1)
    found = await reader.comparison.compare(ann, source.id, fork.id)
    assert (found.shared, found.ancestor) == (3, ids[2])
    assert [side.messages for side in found.sides] == [2, 0]
    twin = await sessions.fork(ann, source.id)
    await talk(sessions, ann, twin.id, "e")
    again = await reader.comparison.compare(ann, source.id, twin.id)
    assert (again.shared, [side.messages for side in again.sides]) == (5, [0, 1])


async def test_what_was_said_in_one_log_after_a_rewind_is_not_what_was_there_before(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abcd")
    fork = await sessions.fork(ann, source.id)
    await sessions.rewind(ann, source.id, ids[1])
    await talk(sessions, ann, source.id, "x")
    found = await reader.comparison.compare(ann, source.id, fork.id)
    assert (found.shared, found.ancestor, [side.messages for side in found.sides]) == (2, ids[1], [1, 2])


async def test_sessions_without_a_common_beginning_share_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    (one, _), (other, _) = await started(sessions, ann, "a"), await started(sessions, ann, "a", "b")
    found = await reader.comparison.compare(ann, one.id, other.id)
    assert (found.shared, found.ancestor, [side.messages for side in found.sides]) == (0, None, [1, 2])
    with pytest.raises(InvalidInput):
        await reader.comparison.compare(ann, one.id, one.id)


async def test_relatives_are_all_that_begin_alike_newest_first(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    source, ids = await started(sessions, ann, *"abc")
    await started(sessions, ann, "a")
    await started(sessions, bob, "a")
    child = await sessions.fork(ann, source.id, at=ids[1])
    grandchild = await sessions.fork(ann, child.id, at=ids[0])
    empty = await sessions.fork(ann, source.id, at=ids[0], before=True)
    found = await reader.comparison.relatives(ann, child.id)
    assert [(each.session.id, each.shared) for each in found] == [(grandchild.id, 1), (source.id, 2)]
    assert await reader.comparison.relatives(ann, empty.id) == []
    await sessions.delete(ann, source.id)
    assert [each.session.id for each in await reader.comparison.relatives(ann, child.id)] == [grandchild.id]


async def test_nobody_compares_with_what_is_not_theirs(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    (mine, _), (theirs, _) = await started(sessions, ann, "a"), await started(sessions, bob, "a")
    for pair in ((mine.id, theirs.id), (theirs.id, mine.id)):
        with pytest.raises(SessionNotFound):
            await reader.comparison.compare(ann, *pair)
