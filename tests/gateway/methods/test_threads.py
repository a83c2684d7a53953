"""Accounts and threads: each has a session of its own, and a thread may begin with what its group has said."""

from __future__ import annotations

from hitherto.service import Sessions
from tests.gateway.methods.asker import Asker

WHERE = {"agent_id": "main", "channel": "telegram", "peer_id": "u"}


async def test_a_thread_and_an_account_are_found_again_by_their_keys(sessions: Sessions) -> None:
    asker = Asker(sessions)
    places = [
        {},
        {"thread_id": "1"},
        {"account_id": "bot2"},
        {"account_id": "bot2", "thread_id": "1"},
        {"group_id": "g"},
        {"group_id": "g", "thread_id": "1"},
        {"group_id": "g", "account_id": "bot2"},
    ]
    keys = [(await asker.ask("route.resolve", **WHERE, **place))["session_key"] for place in places]
    for key in keys:
        await asker.say(f"said in {key}", session_key=key)
    assert [await asker.said(key) for key in keys] == [[f"said in {key}"] for key in keys]
    shown = [await asker.ask("session.get", session_key=key) for key in keys]
    assert [each["queue_mode"] for each in shown] == ["steer"] * 4 + ["collect"] * 3
    people = [each["identity"]["identity_id"] for each in shown]
    assert people == [
        *["telegram:u"] * 2,
        *["telegram:account:bot2:u"] * 2,
        *["telegram:group:g"] * 2,
        "telegram:account:bot2:group:g",
    ]
    assert await asker.code("session.create", session_key="agent:main:main:thread:1") == "invalid_key"


async def test_a_thread_may_begin_with_what_its_group_has_said(sessions: Sessions) -> None:
    asker = Asker(sessions)
    group, thread = "agent:main:telegram:group:g", "agent:main:telegram:group:g:thread:1"
    await asker.say("in the group", session_key=group)
    await asker.ask("session.fork", session_key=group, new_session_key=thread)
    await asker.say("in the thread", session_key=thread)
    await asker.say("later", session_key=group)
    assert await asker.said(thread) == ["in the group", "in the thread"]
    assert await asker.said(group) == ["in the group", "later"]
