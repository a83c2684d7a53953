"""Memory over the gateway: facts are added, corrected and told with where they come from."""

from __future__ import annotations

import pytest

from hitherto.service import Sessions
from tests.gateway.methods.asker import KEY, Asker
from tests.support.homes import Clock

DM = "agent:main:telegram:dm:7"


@pytest.fixture
def ann_asks(sessions: Sessions) -> Asker:
    return Asker(sessions)


async def test_a_fact_is_added_found_corrected_and_told_with_all_that_is_known_of_it(
    ann_asks: Asker, clock: Clock
) -> None:
    said = await ann_asks.say("The deploy day is Friday", session_key=DM)
    message = said["message_ids"][0]
    made = await ann_asks.ask(
        "memory.add",
        session_key=DM,
        content="The deploy day is Friday",
        subject="deploy day",
        message_id=message,
    )
    assert (made["session_key"], made["replaced"]) == (DM, [])
    (fact,) = (await ann_asks.ask("memory.search", query="deploy", identity_id="telegram:7"))["facts"]
    assert fact == {
        "id": made["id"],
        "content": "The deploy day is Friday",
        "kind": "fact",
        "confidence": None,
        "session_key": DM,
        "created_at": made["created_at"],
        "agent_id": "main",
        "identity_id": "telegram:7",
        "subject": "deploy day",
        "message_ids": [message],
        "superseded_by": None,
    }
    clock.advance()
    update = {"id": made["id"], "content": "The deploy day is Monday", "idempotency_key": "k"}
    changed = await ann_asks.ask("memory.update", **update)
    assert await ann_asks.ask("memory.update", **update) == changed
    assert changed["replaced"] == [made["id"]]
    clock.advance()
    told = await ann_asks.ask(
        "memory.add", session_key=DM, content="Deploys are on Tuesday", subject="deploy day"
    )
    assert told["replaced"] == [changed["id"]]
    known = (await ann_asks.ask("memory.list", session_key=DM, superseded=True))["facts"]
    assert [(each["content"], each["superseded_by"]) for each in known] == [
        ("Deploys are on Tuesday", None),
        ("The deploy day is Monday", told["id"]),
        ("The deploy day is Friday", changed["id"]),
    ]
    assert len((await ann_asks.ask("memory.list", identity_id="telegram:7"))["facts"]) == 1


async def test_facts_without_a_session_say_whom_they_are_about_and_secrets_are_not_kept(
    ann_asks: Asker,
) -> None:
    secret = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH" * 2
    await ann_asks.ask("memory.add", content=f"The key is {secret}", agent_id="main", identity_id="*")
    (fact,) = (await ann_asks.ask("memory.list", identity_id="*"))["facts"]
    assert fact["content"] == "The key is [redacted: anthropic key]"
    assert await ann_asks.code("memory.add", content=" ") == "invalid_input"
    await ann_asks.say("Hi")
    assert await ann_asks.code("memory.add", content="x", session_key=KEY, identity_id="y") == "invalid_input"
    assert await ann_asks.code("memory.add", content="x", message_id="m") == "invalid_input"
    assert await ann_asks.code("memory.update", id="nobody", content="x") == "not_found"
