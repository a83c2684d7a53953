"""What the server does now and then: chats start anew when their time has come."""

from __future__ import annotations

import asyncio

from recollect.gateway.schedule import reset_chats
from recollect.model import Principal
from recollect.service import ResetPolicy, Sessions, parse_resets
from tests.contract.talk import told
from tests.gateway.asking import KEY, Asker
from tests.homes import Clock


async def test_chats_of_all_owners_start_anew_while_the_server_runs(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    made = {who: (await Asker(sessions, who.owner).say("one"))["session_id"] for who in (ann, bob)}
    clock.advance(3_600_001)
    policy = parse_resets("idle@1h")
    running = [asyncio.create_task(reset_chats(policy, each, 0.01)) for each in (sessions, other)]
    try:
        for who, session_id in made.items():
            async with asyncio.timeout(30):
                async for _ in other.watch(who, session_id=session_id, after=0):
                    if await told(other, who, session_id) == []:
                        break
            assert len(await other.checkpoints(who, session_id)) == 1
        asker = Asker(sessions, ann.owner)
        await asker.say("two")
        assert (await asker.ask("session.get", session_key=KEY))["session_id"] == made[ann]
        assert not any(task.done() for task in running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    assert await told(other, ann, made[ann]) == ["two"]


async def test_without_a_policy_there_is_nothing_to_do(sessions: Sessions) -> None:
    await asyncio.wait_for(reset_chats(ResetPolicy(), sessions), 30)
