"""What is erased is gone from the summaries that were made of it, too."""

from __future__ import annotations

import pytest

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.support.conversations import exported, finds, say, started, talk, told
from tests.support.homes import Clock

FILLER = "and so on and so forth " * 30
VAULT = "The vault opens with the word Xylophagous."


async def shrunk(sessions: Sessions, who: Principal, *texts: str) -> tuple[str, list[str]]:
    """A session in which these were said, then much else, and which was made smaller."""
    session, ids = await started(sessions, who, *texts, *[FILLER] * 8, "The end")
    assert (await sessions.compaction.shrink(who, session.id)).compacted
    return session.id, ids


async def leaks(sessions: Sessions, who: Principal, session_id: str) -> bool:
    """Whether the word is left anywhere: in an export, in what is remembered, or for a search."""
    lines = b"\n".join(await exported(sessions, who, session_id))
    facts = [fact.text for fact in await sessions.memory.facts(who)]
    return (
        b"Xylophagous" in lines
        or "Xylophagous" in str(facts)
        or bool(await finds(sessions, who, "Xylophagous"))
    )


async def test_a_summary_of_what_was_erased_goes_and_the_context_is_what_it_stood_for(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id, ids = await shrunk(sessions, ann, "My name is Ada.", VAULT)
    clock.advance()
    await talk(sessions, ann, session_id, "Afterwards")
    assert await leaks(reader, ann, session_id)
    before = await reader.get(ann, session_id)
    await sessions.erase(ann, session_id, ids[1])
    assert not await leaks(reader, ann, session_id)
    everything = ["My name is Ada.", "", *[FILLER] * 8, "The end", "Afterwards"]
    assert await told(reader, ann, session_id) == everything
    assert await told(reader, ann, session_id, "conversation") == everything
    found = await reader.get(ann, session_id)
    assert (found.message_count, found.last_compaction) == (len(everything), None)
    assert (found.revision, found.updated_at) == (before.revision + 1, before.updated_at)
    done = await sessions.compaction.shrink(ann, session_id)
    assert done.compacted
    summary = (await told(reader, ann, session_id))[0]
    assert ("My name is Ada." in summary, "Xylophagous" in summary) == (True, False)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_summaries_of_summaries_go_too(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session_id, ids = await shrunk(sessions, ann, VAULT)
    for number in range(3):
        await talk(sessions, ann, session_id, *[FILLER] * 8, f"End {number}")
        assert (await sessions.compaction.shrink(ann, session_id)).compacted
    fork = await sessions.fork(ann, session_id)
    await talk(sessions, ann, fork.id, "In the fork")
    assert await leaks(reader, ann, fork.id)
    await sessions.erase(ann, session_id, ids[0])
    for each, last in ((session_id, "End 2"), (fork.id, "In the fork")):
        assert not await leaks(reader, ann, each)
        context = await told(reader, ann, each)
        assert (context[0], context[-1]) == ("", last)
        assert context == await told(reader, ann, each, "conversation")
        assert not any(text.startswith("[Compacted") for text in context)
        for checkpoint in await sessions.checkpoints(ann, each):
            branch = await sessions.branch(ann, each, checkpoint.id)
            assert not await leaks(reader, ann, branch.id)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_summary_that_never_saw_what_was_erased_stays(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, ids = await shrunk(sessions, ann, "My name is Ada.")
    (after,) = await talk(sessions, ann, session_id, VAULT)
    before = await told(reader, ann, session_id)
    for entry in (ids[-1], after):  # the one was kept beside the summary, the other said after it
        await sessions.erase(ann, session_id, entry)
    assert await told(reader, ann, session_id) == [*before[:-2], "", ""]
    assert not await leaks(reader, ann, session_id)
    assert (await reader.get(ann, session_id)).last_compaction is not None


async def test_only_the_summaries_that_saw_it_go(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, _ = await shrunk(sessions, ann, "My name is Ada.")
    (first, *_) = await told(reader, ann, session_id)
    (entry, *_) = await talk(sessions, ann, session_id, VAULT, *[FILLER] * 8, "The last end")
    assert (await sessions.compaction.shrink(ann, session_id)).compacted
    assert await leaks(reader, ann, session_id)
    await sessions.erase(ann, session_id, entry)
    assert not await leaks(reader, ann, session_id)
    assert await told(reader, ann, session_id) == [
        first, "The end", "", *[FILLER] * 8, "The last end",
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["anybody", "a model"])
async def test_a_summary_by_whomever_goes(
    sessions: Sessions, reader: Sessions, ann: Principal, by: str
) -> None:
    session, ids = await started(sessions, ann, VAULT, "and", "the end")
    model = "a:model" if by == "a model" else None
    await sessions.compact(ann, session.id, say("Xylophagous opens it.", "system", model=model), keep=1)
    await sessions.erase(ann, session.id, ids[0])
    assert not await leaks(reader, ann, session.id)
    assert await told(reader, ann, session.id) == ["", "and", "the end"]


async def test_a_session_is_restored_to_what_it_was_without_what_was_erased(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, ids = await shrunk(sessions, ann, "My name is Ada.", VAULT)
    (checkpoint,) = await sessions.checkpoints(ann, session_id)
    await sessions.erase(ann, session_id, ids[1])
    await sessions.restore(ann, session_id, checkpoint.id)
    assert await told(reader, ann, session_id) == ["My name is Ada.", "", *[FILLER] * 8, "The end"]
    assert not await leaks(reader, ann, session_id)
