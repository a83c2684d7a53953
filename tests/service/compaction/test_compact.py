"""Compaction: a summary stands in for the model, the conversation keeps everything."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidInput
from hitherto.model import Draft, Principal, Usage
from hitherto.service import Sessions
from tests.support.conversations import everything, exported, say, started, talk, told
from tests.support.homes import Clock


@pytest.mark.parametrize("keep", [0, 1, 3, 99])
async def test_a_summary_and_what_is_kept_take_the_place_of_the_context(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, keep: int
) -> None:
    session = await sessions.create(ann)
    texts = list("abcde")
    await sessions.append(ann, session.id, [say(text, tokens=10, usage=Usage(cost=1)) for text in texts])
    now = clock.advance()
    done = await sessions.compact(ann, session.id, say("S", "system", tokens=3), keep=keep)
    kept = texts[-keep:] if keep else []
    assert await told(reader, ann, session.id) == ["S", *kept]
    assert await told(reader, ann, session.id, "conversation") == [*texts, "S"]
    found = await reader.get(ann, session.id)
    assert (done.messages_before, done.messages_after) == (5, 1 + len(kept))
    assert (done.tokens_before, done.tokens_after) == (50, 3 + 10 * len(kept))
    assert (found.message_count, found.token_count) == (1 + len(kept), 3 + 10 * len(kept))
    assert (found.last_compaction, found.revision) == (now, 3)
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    assert (checkpoint.id, checkpoint.message_count, checkpoint.token_count) == (done.checkpoint, 5, 50)
    summary = await reader.entry(ann, session.id, done.summary)
    assert (summary.role, summary.meta) == ("system", {"compaction": done.checkpoint})
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_the_conversation_survives_many_compactions(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "m0")
    expected = ["m0"]
    for number in range(1, 8):
        await sessions.compact(ann, session.id, say(f"S{number}", "system"), keep=number % 3)
        await talk(sessions, ann, session.id, f"m{number}", f"n{number}")
        expected += [f"S{number}", f"m{number}", f"n{number}"]
    assert await told(reader, ann, session.id, "conversation") == expected
    page = await reader.history(ann, session.id, view="conversation")
    assert [expected[mark] for mark in page.marks] == [f"S{number}" for number in range(1, 8)]
    found = await reader.get(ann, session.id)
    assert found.message_count == len(await told(reader, ann, session.id))


async def test_whoever_goes_back_before_a_compaction_gets_the_context_of_that_time(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcd")
    first = await sessions.compact(ann, session.id, say("S1", "system"), keep=1)
    (e,) = await talk(sessions, ann, session.id, "e")
    await sessions.compact(ann, session.id, say("S2", "system"))
    await talk(sessions, ann, session.id, "f")
    retired = await sessions.fork(ann, session.id, at=ids[1])
    kept = await sessions.fork(ann, session.id, at=ids[3])
    at_summary = await sessions.fork(ann, session.id, at=first.summary)
    between = await sessions.fork(ann, session.id, at=e)
    assert await told(reader, ann, retired.id) == ["a", "b"]
    assert await told(reader, ann, kept.id) == ["a", "b", "c", "d"]
    assert await told(reader, ann, at_summary.id) == ["S1", "d"]
    assert await told(reader, ann, between.id) == ["S1", "d", "e"]
    await sessions.rewind(ann, session.id, ids[2])
    assert await told(reader, ann, session.id) == ["a", "b", "c"]


async def test_an_empty_session_cannot_be_compacted(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.create(ann, session_id="empty")
    session, _ = await started(sessions, ann, "a")
    before = await everything(reader, ann)
    with pytest.raises(InvalidInput):
        await sessions.compact(ann, "empty", say("S"))
    with pytest.raises(InvalidInput):
        await sessions.compact(ann, session.id, say("S"), keep=-1)
    with pytest.raises(InvalidInput):
        await sessions.compact(ann, session.id, Draft(role="robot"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        await sessions.compact(ann, session.id, say("S", tokens=-1))
    assert await everything(reader, ann) == before


async def test_a_summary_does_not_become_the_title(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say("Only a machine spoke", "assistant"))
    await sessions.compact(ann, session.id, say("A summary"))
    assert (await reader.get(ann, session.id)).title is None


async def test_a_compacted_session_is_exported_whole(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"abc")
    await sessions.compact(ann, session.id, say("S", "system"), keep=1)
    lines = await exported(reader, ann, session.id)
    copy = await sessions.import_(ann, lines, new_id=True)
    assert await told(reader, ann, copy.id) == ["S", "c"]
    assert await told(reader, ann, copy.id, "conversation") == ["a", "b", "c", "S"]
