"""What one program says in one session, without waiting, is stored in the order in which it said it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hitherto.model import Principal, Text
from hitherto.service import Sessions
from tests.support.conversations import say
from tests.support.waits import arrives

MANY = 30


async def done(calls: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    """What the calls give, which are begun in this order and run side by side."""
    tasks = [asyncio.create_task(call) for call in calls]
    return await arrives(asyncio.gather(*tasks), "the end of all calls")


async def texts(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    page = await sessions.history(who, session_id, limit=200)
    return [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]


async def test_messages_of_tasks_that_run_side_by_side_are_stored_as_the_tasks_were_begun(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    sent = [f"message {number}" for number in range(MANY)]
    stored = await done([sessions.append(ann, session.id, say(text)) for text in sent])
    assert [each.message_count for each in stored] == list(range(1, MANY + 1))
    assert await texts(sessions, ann, session.id) == sent


async def test_sessions_side_by_side_keep_an_order_each(sessions: Sessions, ann: Principal) -> None:
    made = [(await sessions.create(ann)).id for _ in range(3)]
    sent = [f"message {number}" for number in range(MANY)]
    await done([sessions.append(ann, each, say(text)) for text in sent for each in made])
    assert [await texts(sessions, ann, each) for each in made] == [sent] * 3


async def test_changes_of_every_kind_keep_their_order_with_each_other(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    calls: list[Coroutine[Any, Any, Any]] = []
    for number in range(MANY // 3):
        calls += [
            sessions.rename(ann, session.id, f"title {number}"),
            sessions.episodes.reset(ann, session.id),
            sessions.append(ann, session.id, say(f"message {number}")),
        ]
    await done([*calls, sessions.fork(ann, session.id)])
    last = MANY // 3 - 1
    assert await texts(sessions, ann, session.id) == [f"message {last}"]
    assert (await sessions.get(ann, session.id)).title == f"title {last}"


async def test_a_fork_has_what_was_said_before_it_and_nothing_of_what_was_said_after(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    sent = [f"message {number}" for number in range(MANY)]
    before = [sessions.append(ann, session.id, say(text)) for text in sent]
    after = [sessions.append(ann, session.id, say("later")) for _ in range(3)]
    results = await done([*before, sessions.fork(ann, session.id), *after])
    assert await texts(sessions, ann, results[MANY].id) == sent


async def test_one_that_is_cancelled_in_the_line_lets_the_others_pass(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    sent = [f"message {number}" for number in range(MANY)]
    tasks = [asyncio.create_task(sessions.append(ann, session.id, say(text))) for text in sent]
    await asyncio.sleep(0)
    for task in tasks[1::2]:
        task.cancel()
    await arrives(asyncio.gather(*tasks, return_exceptions=True), "the end of all calls")
    kept = await texts(sessions, ann, session.id)
    assert kept == [text for text in sent if text in kept]
    assert set(sent[::2]) <= set(kept)
