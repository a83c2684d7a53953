"""A session that is exported from one gateway and imported into another is the same one there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto.model import Draft, Entry, Fact, Pending, Text, Unknown
from hitherto.service import Sessions
from hitherto.service.records import require_session
from hitherto.stores import connector
from tests.gateway.methods.asker import Asker
from tests.support.conversations import say
from tests.support.homes import Clock

ADA = {"id": "u1", "name": "Ada"}
GROUP = "agent:main:telegram:group:g"
SESSION = (
    "title",
    "tags",
    "pinned",
    "message_count",
    "token_count",
    "created_at",
    "updated_at",
    "cost_usd",
    "metadata",
)


@pytest.fixture
def ann_asks(sessions: Sessions) -> Asker:
    return Asker(sessions)


async def lived_in(ann_asks: Asker, sessions: Sessions, clock: Clock) -> str:
    """A group that has one of everything; the id of its session."""
    prompt = {"role": "user", "content": "We ship on Friday", "sender": ADA, "metadata": {"n": 1}}
    answer = {"role": "assistant", "content": "Noted", "model": "m", "usage": {"cost_usd": 0.5}}
    messages = [
        {"role": "system", "content": "Be brief"},
        prompt,
        answer,
        {"role": "user", "content": "erased"},
    ]
    made = await ann_asks.ask("session.append", session_key=GROUP, messages=messages, create=True)
    session_id: str = made["session_id"]
    clock.advance()
    await ann_asks.ask("sessions.reset", session_key=GROUP, recap=True)
    await ann_asks.say(*(f"line {number} of many words" for number in range(12)), session_key=GROUP)
    clock.advance()
    who = ann_asks.context.who
    await sessions.compact(who, session_id, say("[Compacted summary]", "system"), keep=2)
    reply = {"role": "user", "content": "Yes", "sender": ADA, "reply_to": made["message_ids"][1]}
    await ann_asks.ask("session.append", session_key=GROUP, messages=[reply])
    await ann_asks.ask("session.erase", session_key=GROUP, message_id=made["message_ids"][3])
    await ann_asks.ask(
        "sessions.patch",
        session_key=GROUP,
        label="Ship",
        tags=["x", "y"],
        pinned=True,
        metadata={"team": "red"},
    )
    return session_id


async def view(asker: Asker, key: str) -> dict[str, Any]:
    """All that the gateway tells of a session, without its names and without when it was compared."""
    found = await asker.ask("session.get", session_key=key)
    told: dict[str, Any] = {name: found.get(name) for name in SESSION}
    for each in ("context", "conversation"):
        told[each] = (await asker.ask("session.history", session_key=key, view=each, limit=100))["messages"]
    told["episodes"] = (await asker.ask("session.episodes", session_key=key))["episodes"]
    told["checkpoints"] = (await asker.ask("sessions.compaction.list", session_key=key))["checkpoints"]
    facts = (await asker.ask("memory.list", session_key=key))["facts"]
    told["facts"] = sorted((fact["content"], fact["kind"], fact["created_at"]) for fact in facts)
    return told


async def test_an_export_becomes_an_equal_session_elsewhere(
    ann_asks: Asker, sessions: Sessions, clock: Clock
) -> None:
    session_id = await lived_in(ann_asks, sessions, clock)
    fork = await ann_asks.ask("session.fork", session_key=GROUP, title="Aside")
    before = await view(ann_asks, GROUP)
    assert before["facts"]
    assert before["conversation"][0]["role"] == "system"
    data = (await ann_asks.ask("session.export", session_key=GROUP))["data"]
    aside = (await ann_asks.ask("session.export", session_key=fork["session_id"], format="jsonl"))["data"]
    async with connector("memory:")("memory:", clock) as store:
        there = Asker(Sessions(store, now=clock))
        made = await there.ask("session.import", data=data, new_session_key=GROUP)
        assert made["session_id"] == session_id
        assert made["left_out"] == ["identity", "key"]
        assert await view(there, GROUP) == before
        again = await there.ask("session.import", data=data, new_session_key=GROUP)
        assert again["session_id"] == session_id
        forked = await there.ask("session.import", data=aside)
        found = await there.ask("session.get", session_key=forked["session_id"])
        assert (found["parent"], found["title"]) == (session_id, "Aside")
        restored = before["checkpoints"][-1]["checkpoint_id"]
        for asker in (ann_asks, there):
            await asker.ask("sessions.compaction.restore", session_key=GROUP, checkpoint_id=restored)
        assert await ann_asks.said(GROUP) == await there.said(GROUP)
        assert (await there.context.sessions.admin.check(repair=False)).problems == ()


async def test_what_a_file_may_not_set_is_named_and_left_out(
    ann_asks: Asker, sessions: Sessions, clock: Clock
) -> None:
    who = ann_asks.context.who
    made = await sessions.create(who, cwd="/srv", meta={"kept": 1})
    await sessions.append(who, made.id, [say("hello"), say("odd", meta={"replay": {"raw": 1}})])
    await sessions.catalog.set_own_meta(who, made.id, {"recollect/permissions": ["*"]})
    await sessions.append(who, made.id, [Draft(role="assistant", parts=(Unknown(raw={"a": 1}),))])
    await sessions.memory.add(
        who, [Fact(id="f", at=1, text="Bob likes tea", session=made.id, identity_id="bob")]
    )
    data = (await ann_asks.ask("session.export", session_key=made.id, raw=True))["data"]
    data["hitherto"]["lines"][0]["session"] |= {"parent": "nobody", "status": "running"}
    async with connector("memory:")("memory:", clock) as store:
        there = Asker(Sessions(store, now=clock))
        brought = await there.ask("session.import", data=data)
        assert brought["left_out"] == [
            "facts_about_others",
            "folders",
            "notes_of_programs",
            "parent",
            "unknown_parts",
        ]
        found = await there.context.sessions.get(there.context.who, made.id)
        assert (found.cwd, found.parent, found.status) == (None, None, "idle")
        assert not any("permissions" in name for name in found.meta)
        assert found.meta["kept"] == 1
        assert await there.context.sessions.memory.facts(there.context.who) == []


async def test_what_was_erased_does_not_return_and_what_waits_is_taken_along(
    ann_asks: Asker, sessions: Sessions, clock: Clock
) -> None:
    told = await ann_asks.say("the secret word", "stays")
    who, session_id = ann_asks.context.who, told["session_id"]

    async def wait(tx: Any) -> None:
        record = await require_session(tx, who, session_id)
        entry = Entry(id="w1", at=clock(), role="user", parts=(Text(text="said meanwhile"),))
        await tx.add_pending(record, Pending(id="w1", at=clock(), entries=(entry,)))

    await sessions.core.store.write(wait)
    data = (await ann_asks.ask("session.export", session_key=session_id))["data"]
    assert json.dumps(data).count("the secret word") >= 2
    await ann_asks.ask("session.erase", session_key=session_id, message_id=told["message_ids"][0])
    copy = await ann_asks.ask("session.import", data=data)
    assert copy["session_id"] != session_id
    assert "id" in copy["left_out"]
    assert await ann_asks.said(copy["session_key"]) == ["", "stays", "said meanwhile"]
    again = await ann_asks.ask("session.import", data=data)
    assert again["session_id"] == copy["session_id"]


async def test_a_system_prompt_of_another_program_stays_one(ann_asks: Asker) -> None:
    messages = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]
    made = await ann_asks.ask("session.import", data={"messages": messages})
    found = await ann_asks.ask("session.history", session_key=made["session_key"])
    assert [message["role"] for message in found["messages"]] == ["system", "user"]
