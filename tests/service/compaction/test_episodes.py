"""A session that starts anew remembers: its earlier episodes stay in the conversation, and their facts in memory."""

from __future__ import annotations

import pytest

from hitherto.errors import Busy, InvalidLimit
from hitherto.model import Entry, Principal, plain_text
from hitherto.ports import Writer
from hitherto.service import Sessions, parse_resets
from hitherto.service.compaction.episodes import end_episode
from hitherto.service.records import require_session
from hitherto.summariser import CompactionPolicy
from tests.service.channels.test_resets import DM, HOUR, chat
from tests.support.conversations import say, told
from tests.support.homes import Clock

KEY_FACT = "We decided that the staging database is called otter-7."


async def conversation(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    """What was said, and each heading as its reason in brackets."""
    page = await sessions.history(who, session_id, view="conversation")
    return [_told(entry) for entry in page.entries]


def _told(entry: Entry) -> str:
    return f"[{entry.meta['episode']}]" if "episode" in entry.meta else plain_text(entry)


async def test_a_reset_keeps_what_was_said_as_an_episode(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id = await chat(sessions, ann, DM, KEY_FACT, "Thank you")
    before = await sessions.get(ann, session_id)
    clock.advance(HOUR)
    after = await sessions.reset(ann, session_id)
    assert (after.message_count, after.token_count, after.revision) == (0, None, before.revision + 1)
    assert await told(reader, ann, session_id) == []
    assert await conversation(reader, ann, session_id) == [KEY_FACT, "Thank you", "[manual]"]
    clock.advance(HOUR)
    await sessions.append(ann, session_id, say("Good morning"))
    assert await told(reader, ann, session_id) == ["Good morning"]
    assert await conversation(reader, ann, session_id) == [KEY_FACT, "Thank you", "[manual]", "Good morning"]
    (page,) = (await reader.search(ann, "otter")).hits
    assert (page.session.id, page.branch) == (session_id, None)
    earlier, present = await reader.episodes.known(ann, session_id)
    (checkpoint,) = await reader.checkpoints(ann, session_id)
    assert (earlier.number, earlier.message_count, earlier.text) == (1, 2, KEY_FACT)
    assert (earlier.reason, earlier.checkpoint, earlier.ended_at) == (
        "manual",
        checkpoint.id,
        clock.now - HOUR,
    )
    assert (present.number, present.message_count, present.text) == (2, 1, "Good morning")
    assert (present.reason, present.checkpoint, present.ended_at) == (None, None, None)
    assert present.began_at == earlier.ended_at
    shown = await reader.history(ann, session_id, view="conversation", around=earlier.first)
    assert (shown.marks, shown.past) == ((2,), 3)


async def test_facts_are_taken_before_a_reset_of_each_kind(
    sessions: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    session_id = await chat(sessions, ann, DM, KEY_FACT)
    await chat(sessions, bob, DM, KEY_FACT.replace("otter-7", "heron-9"))
    clock.advance(25 * HOUR)
    for word, reset in (
        ("otter", lambda: sessions.reset(ann, session_id)),
        ("badger", lambda: sessions.resets.run(ann, parse_resets("idle@4h"))),
        ("marten", lambda: sessions.resets.run(ann, parse_resets("daily@04:00"))),
    ):
        if word != "otter":
            await sessions.append(ann, session_id, say(KEY_FACT.replace("otter", word)))
            clock.advance(25 * HOUR)
        await reset()
        assert word in (await sessions.memory.search(ann, f"staging {word}"))[0].text
    assert [each.reason for each in await sessions.episodes.known(ann, session_id)] == [
        "manual", "idle", "daily", None,
    ]  # fmt: skip
    assert await sessions.memory.facts(bob) == []


async def test_a_recap_opens_the_new_episode_and_goes_with_what_it_tells(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id = await chat(
        sessions, ann, DM, KEY_FACT, "My token is ghp_0123456789abcdefghijklmnopqrstuvwxyzABCD"
    )
    entry = (await sessions.history(ann, session_id)).entries[0]
    clock.advance(HOUR)
    after = await sessions.reset(ann, session_id, recap=True)
    assert after.message_count == 1
    (recap,) = await told(reader, ann, session_id)
    assert recap.startswith("[Recap of the conversation until ")
    assert "otter-7" in recap
    assert "ghp_" not in recap
    assert await sessions.resets.run(ann, parse_resets("idle@1m")) == []  # nobody has spoken since
    again = await sessions.reset(ann, session_id)  # nor is there an episode to end
    assert len(await sessions.episodes.known(ann, session_id)) == 2
    assert again.message_count == 1
    await sessions.append(ann, session_id, say("Good morning"))
    await sessions.erase(ann, session_id, entry.id)
    assert await told(reader, ann, session_id) == ["Good morning"]
    assert "otter" not in "".join(await conversation(reader, ann, session_id))
    assert [each.reason for each in await reader.episodes.known(ann, session_id)] == ["manual", None]
    assert (await sessions.core.store.check(repair=False)).problems == ()


async def test_facts_that_a_killed_process_has_left_are_taken_at_the_next_reset(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id = await chat(sessions, ann, DM, KEY_FACT)

    async def end(tx: Writer) -> None:
        record = await require_session(tx, ann, session_id)
        await end_episode(sessions.core, tx, record, "daily", None)

    await sessions.core.store.write(end)  # and no further
    assert await reader.memory.facts(ann) == []
    await reader.append(ann, session_id, say("Our deploy key is kept in vault-3."))
    await reader.reset(ann, session_id)
    assert {"otter-7", "vault-3"} <= {
        fact.text.rstrip(".").split()[-1] for fact in await reader.memory.facts(ann)
    }


async def test_the_setting_gives_every_reset_a_recap(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    policy = CompactionPolicy(recap_tokens=100)
    asked = Sessions(sessions.core.store, now=clock, compaction=policy)
    session_id = await chat(asked, ann, DM, KEY_FACT)
    clock.advance(2 * HOUR)
    await asked.resets.run(ann, parse_resets("idle@1h"))
    (recap,) = await told(asked, ann, session_id)
    assert "otter-7" in recap
    assert await told(asked, ann, (await asked.fork(ann, session_id)).id) == [recap]


async def test_erasing_in_an_earlier_episode_leaves_what_came_after_as_it_is(
    sessions: Sessions, ann: Principal
) -> None:
    session_id = await chat(sessions, ann, DM, KEY_FACT)
    entry = (await sessions.history(ann, session_id)).entries[0]
    await sessions.reset(ann, session_id)
    for number in range(5):
        await sessions.append(
            ann, session_id, [say(f"Question {number}?"), say("Answer " * 200, "assistant")]
        )
    shrunk = await sessions.compaction.shrink(ann, session_id)
    assert shrunk.compacted
    before = await told(sessions, ann, session_id)
    await sessions.erase(ann, session_id, entry.id)
    assert await told(sessions, ann, session_id) == before
    page = await sessions.history(ann, session_id, view="conversation")
    assert (len(page.entries), page.marks) == (13, (1, 12))


async def test_going_back_before_a_reset_gives_the_context_of_that_time(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id = await chat(sessions, ann, DM, "One", "Two")
    first = (await sessions.history(ann, session_id)).entries[0]
    await sessions.reset(ann, session_id)
    await sessions.append(ann, session_id, say("Three"))
    fork = await sessions.fork(ann, session_id, at=first.id)
    assert await told(reader, ann, fork.id) == ["One"]
    whole = await sessions.fork(ann, session_id)
    assert await conversation(reader, ann, whole.id) == ["One", "Two", "[manual]", "Three"]
    lines = [line async for line in sessions.export(ann, session_id)]
    copy = await sessions.import_(ann, lines, new_id=True, trusted=True)
    assert await conversation(reader, ann, copy.id) == ["One", "Two", "[manual]", "Three"]
    assert await told(reader, ann, copy.id) == ["Three"]
    await sessions.rewind(ann, session_id, first.id)
    assert await told(reader, ann, session_id) == ["One"]
    assert await conversation(reader, ann, session_id) == ["One"]


async def test_an_empty_session_has_one_episode_and_a_busy_one_is_not_reset(
    sessions: Sessions, ann: Principal
) -> None:
    session_id = await chat(sessions, ann, DM)
    await sessions.reset(ann, session_id)
    (only,) = await sessions.episodes.known(ann, session_id)
    assert (only.number, only.message_count, only.first, only.text) == (1, 0, None, "")
    assert await sessions.checkpoints(ann, session_id) == []
    with pytest.raises(InvalidLimit):
        await sessions.episodes.known(ann, session_id, limit=0)
    lease = await sessions.leases.acquire(ann, session_id, "a turn")
    with pytest.raises(Busy):
        await sessions.reset(ann, session_id)
    await sessions.append(ann, session_id, say("Hello"), fence=lease.fence)
    assert (await sessions.reset(ann, session_id, fence=lease.fence)).message_count == 0


async def test_many_episodes_are_listed_from_the_newest(sessions: Sessions, ann: Principal) -> None:
    session_id = await chat(sessions, ann, DM)
    for number in range(1, 6):
        await sessions.append(ann, session_id, say(f"Day {number}"))
        await sessions.reset(ann, session_id)
    found = await sessions.episodes.known(ann, session_id, limit=3)
    assert [(each.number, each.text) for each in found] == [(4, "Day 4"), (5, "Day 5"), (6, "")]
    assert [each.reason for each in found] == ["manual", "manual", None]
