"""What the agent said comes back as it was said: every field, its own ids, in order; to whoever knows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import LOCAL, Json
from tests.acp.proxy.in_process import Lenient, editor, heard, kept, line_agent, streams
from tests.acp.wire import Refusal, is_update, texts, url_of

DEEP = {"claudeCode": {"parentToolUseId": "p1", "deep": [1, {"x": None}]}}
ALL: Json = {"session": {"compaction": {}, "notices": {}}, "plan": {}, "subagents": {}}


def says(text: str, message: str | None = None, **fields: Any) -> Json:
    content = {"type": "text", "text": text, **fields.pop("block", {})}
    found = {"sessionUpdate": fields.pop("kind", "agent_message_chunk"), "content": content, **fields}
    return {"update": found if message is None else {**found, "messageId": message}}


def call(update: str = "tool_call_update", **fields: Any) -> Json:
    return {"update": {"sessionUpdate": update, "toolCallId": "t1", **fields}}


RICH: list[Json] = [
    says("Hm. ", "m1", kind="agent_thought_chunk", _meta=DEEP),
    says("So. ", "m1", kind="agent_thought_chunk", _meta=DEEP),
    says("Plain, ", "m1"),
    says("noted, ", "m1", block={"annotations": {"priority": 1.0}}),
    says("noted, ", "m1", block={"annotations": {"priority": 1.0}}),
    says("plain.", "m1"),
    {"update": {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "_meta": {"n": 1}, "x": None,
                "content": {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"of": "it"}}}},
    {"update": {"sessionUpdate": "plan", "_meta": {"p": 1},
                "entries": [{"content": "Rest", "priority": "low", "status": "pending", "_meta": {"e": 1}}]}},
    {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "of": ["x"]}}},
    call("tool_call", title="Read", kind="read", status="pending", _meta=DEEP),
    call(status="in_progress", rawInput={"path": "/p/x"}, locations=[{"path": "/p/x", "_meta": {"l": 1}}]),
    call(title="Read x", locations=[{"path": "/p/x", "line": 3}], _meta={"claudeCode": {"late": True}}),
    call(status="completed", rawOutput={"n": 1}, _meta={"end": 1}, content=[
        {"type": "content", "content": {"type": "text", "text": "ok", "annotations": {"audience": ["user"]}}},
        {"type": "diff", "path": "/p/x", "oldText": None, "newText": "b", "_meta": {"d": 1}},
    ]),
    call(_meta={"claudeCode": {"toolResponse": {"after": "the end"}}}),
    says("Done.", "m2"),
    {"update": {"sessionUpdate": "_odd", "x": [1, {"y": None}]}},
]  # fmt: skip


def joined(updates: list[Json]) -> list[Json]:
    """Updates as they may be replayed: neighbouring chunks of one message that differ in nothing but their text as one, and a
    tool call as its last state with everything that was in any of its updates."""
    found: list[Json] = []
    calls: dict[str, Json] = {}
    for update in updates:
        if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
            known = calls.get(update["toolCallId"])
            if known is None:
                known = calls[update["toolCallId"]] = {}
                found.append(known)
            _merge(known, {**update, "sessionUpdate": "tool_call"})
        elif found and (both := _as_one(found[-1], update)) is not None:
            found[-1] = both
        else:
            found.append(update)
    return found


def _as_one(first: Json, second: Json) -> Json | None:
    if "text" not in first.get("content", {}) or "text" not in second.get("content", {}):
        return None
    text = first["content"]["text"] + second["content"]["text"]
    both = [{**each, "content": {**each["content"], "text": text}} for each in (first, second)]
    return both[0] if both[0] == both[1] else None


def _merge(known: Json, more: Json) -> None:
    for name, value in more.items():
        if name == "_meta" or (isinstance(known.get(name), dict) and name in ("claudeCode",)):
            _merge(known.setdefault(name, {}), value)
        else:
            known[name] = value


def as_said(updates: list[Json]) -> list[Json]:
    """Updates of a replay without what the proxy adds: the time, and an id where the agent gave none."""
    found = []
    for update in updates:
        if update["sessionUpdate"] in ("user_message_chunk", "session_info_update", "usage_update"):
            continue
        meta = {name: value for name, value in update.get("_meta", {}).items() if name != "hitherto/at"}
        rest = {name: value for name, value in update.items() if name != "_meta"}
        if "-" in rest.get("messageId", ""):
            del rest["messageId"]
        found.append({**rest, "_meta": meta} if meta else rest)
    return joined(found)


async def test_every_field_of_every_update_is_replayed_in_order(tmp_path: Path) -> None:
    beside = json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "$S", "_meta": {"trace": 1}, **says("Aside.", "m3")}}
    )  # fmt: skip
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        await talk.prompt(session, [*RICH, {"raw": beside}])
        live = [update for update in talk.updates(session) if update["sessionUpdate"] != "available_commands_update"]  # fmt: skip
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        replay = await talk.load(session, tmp_path)
        (aside,) = [m["params"] for m in talk.seen if "trace" in m.get("params", {}).get("_meta", {})]
    assert as_said(replay) == joined([u for u in live if u["sessionUpdate"] != "session_info_update"])
    assert aside["update"]["content"]["text"] == "Aside."
    (shown,) = [update for update in as_said(replay) if update["sessionUpdate"] == "tool_call"]
    assert "name" not in shown
    assert shown["_meta"]["claudeCode"].keys() == {"parentToolUseId", "deep", "late", "toolResponse"}
    first = next(update for update in replay if update["sessionUpdate"] == "agent_thought_chunk")
    assert (first["messageId"], first["content"]["text"]) == ("m1", "Hm. So. ")
    said = [part for role, part in await kept(tmp_path, session) if role == "assistant"]
    assert {"type": "text", "text": "Plain, noted, noted, plain."} in said  # one text, as it reads


async def test_what_was_erased_does_not_come_back(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        await talk.prompt(session, [says("secret", "m1", _meta={"also": "secret"}), says("open", "m2")])
        async with hitherto.open(url_of(tmp_path)) as sessions:
            entries = (await sessions.history(LOCAL, session)).entries
            await sessions.erase(LOCAL, session, entries[1].id)
        assert "secret" not in json.dumps([u for u in await talk.load(session, tmp_path) if u["sessionUpdate"] != "user_message_chunk"])  # fmt: skip


GATED_UPDATES: list[Json] = [
    {"update": {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}},
    {"update": {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": {"type": "text", "text": "s"}}},
    {"update": {"sessionUpdate": "plan_removed", "planId": "p"}},
    {"update": {"sessionUpdate": "subagent_update", "sessionId": "child"}},
]  # fmt: skip


async def test_only_clients_that_know_a_kind_of_update_get_it_replayed(tmp_path: Path) -> None:
    async def replayed(capabilities: Json, script: list[Json] | None, session: str) -> tuple[str, set[str]]:
        async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
            talk = Lenient(writer, reader)
            await talk.initialize(capabilities)
            if script is not None:
                session = await talk.new(tmp_path)
                await talk.prompt(session, script)
            return session, {update["sessionUpdate"] for update in await talk.load(session, tmp_path)}

    kinds = {each["update"]["sessionUpdate"] for each in GATED_UPDATES}
    session, known = await replayed(ALL, [*GATED_UPDATES, says("Done")], "")
    assert known >= kinds
    assert not (await replayed({}, None, session))[1] & kinds


async def test_a_fork_is_made_at_every_id_that_the_client_saw(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        script = [
            {"update": {"sessionUpdate": "user_message_chunk", "messageId": "u1", "content": {"type": "text", "text": "$"}}},
            says("One", "m1"), call("tool_call", title="Do"), call(status="completed", rawOutput=7), says("Two", "m1"),
            says("Three", "m2"),
        ]  # fmt: skip
        await talk.prompt(session, script)
        reached = {}
        for at in ("m1", "t1", "m2"):
            forked = await talk.call(
                "session/fork",
                {"sessionId": session, "cwd": str(tmp_path), "mcpServers": [], "_meta": {"hitherto/messageId": at}},
            )  # fmt: skip
            replay = await talk.load(forked["sessionId"], tmp_path)
            reached[at] = texts([u for u in replay if "text" in u.get("content", {})])
        assert reached == {"m1": "OneTwo", "t1": "One", "m2": "OneTwoThree"}
        with pytest.raises(Refusal):
            await talk.call(
                "session/fork",
                {"sessionId": session, "cwd": str(tmp_path), "mcpServers": [], "_meta": {"hitherto/messageId": "m9"}},
            )  # fmt: skip


async def test_an_echo_of_the_prompt_is_not_another_message_and_can_be_forked_at(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path, _echo=True)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        await talk.prompt(session, "One")
        await talk.prompt(session, "Two")
        meta = {"hitherto/messageId": "u2"}
        fork = await talk.call(
            "session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": [], "_meta": meta}
        )
        said = [part["text"] for _, part in await kept(tmp_path, fork["sessionId"])]
    assert [part["text"] for _, part in await kept(tmp_path, session)] == ["One", "You said: One", "Two", "You said: Two"]  # fmt: skip
    assert said == ["One", "You said: One", "Two"]


async def test_prompts_that_the_agent_queues_are_passed_on_and_kept_in_order(tmp_path: Path) -> None:
    able = {"_meta": {"theirs": {"promptQueueing": True}}}
    async with editor(tmp_path, line_agent(tmp_path, **able)) as talk:
        session = await talk.new(tmp_path)
        first = await talk.begin_prompt(session, [{"say": "Begun. "}, {"queue": True}, {"say": "Ended."}])
        await talk.until(is_update(session, "agent_message_chunk"))
        second = await talk.begin_prompt(session, "And this")
        assert (await talk.answer(first))["stopReason"] == "end_turn"
        assert (await talk.answer(second))["stopReason"] == "end_turn"
        assert (await talk.prompt(session, "Later"))["stopReason"] == "end_turn"
    said = [(role, part["text"]) for role, part in await kept(tmp_path, session)][1:]
    assert said == [
        ("assistant", "Begun. Ended."),
        ("user", "And this"),
        ("assistant", "You said: And this"),
        ("user", "Later"),
        ("assistant", "You said: Later"),
    ]
    assert [len(each["prompt"]) for each in heard(tmp_path, "session/prompt")] == [1, 1, 1]


async def test_an_agent_that_does_not_queue_gets_one_prompt_at_a_time(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        first = await talk.begin_prompt(session, [{"say": "Begun"}, {"wait": True}])
        await talk.until(is_update(session, "agent_message_chunk"))
        with pytest.raises(Refusal) as refused:
            await talk.prompt(session, "And this")
        assert refused.value.code == -32011
        await talk.send(method="session/cancel", params={"sessionId": session})
        await talk.answer(first)
    assert len(heard(tmp_path, "session/prompt")) == 1


async def test_a_queued_prompt_of_an_editor_that_leaves_is_kept(tmp_path: Path) -> None:
    able = {"_meta": {"promptQueueing": True}}
    async with editor(tmp_path, line_agent(tmp_path, **able)) as talk:
        session = await talk.new(tmp_path)
        await talk.begin_prompt(session, [{"say": "Begun"}, {"queue": True}, {"say": "."}, {"wait": True}])
        await talk.until(is_update(session, "agent_message_chunk"))
        await talk.begin_prompt(session, "And this")
        await talk.until(lambda m: "." in json.dumps(m["params"].get("update", {}).get("content", "")))
    said = [(role, part["text"]) for role, part in await kept(tmp_path, session)][1:]
    assert said[:2] == [("assistant", "Begun."), ("user", "And this")]  # the agent may answer it yet


async def test_words_that_steer_a_turn_are_kept_where_they_were_said(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        number = await talk.begin_prompt(session, [{"say": "Left. "}, {"steered": True}, {"say": "Right."}])
        await talk.until(is_update(session, "agent_message_chunk"))
        blocks = [{"type": "text", "text": "The other way"}]
        await talk.call("_session/steering", {"sessionId": session, "prompt": blocks})
        assert (await talk.answer(number))["stopReason"] == "end_turn"
        await talk.prompt(session, "On")
    said = [(role, part["text"]) for role, part in await kept(tmp_path, session)][1:4]
    assert said == [("assistant", "Left. "), ("user", "The other way"), ("assistant", "Right.")]
    assert [len(each["prompt"]) for each in heard(tmp_path, "session/prompt")] == [1, 1]


@pytest.mark.parametrize(
    "wrong", [{"fail": {"code": -32603, "message": "aborted"}}, {"result": {"stopReason": "end_turn"}}]
)
async def test_a_cancel_that_the_agent_answers_wrongly_is_answered_rightly(
    tmp_path: Path, wrong: Json
) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        number = await talk.begin_prompt(session, [{"say": "Half"}, {"wait": True}, wrong])
        await talk.until(is_update(session, "agent_message_chunk"))
        await talk.send(method="session/cancel", params={"sessionId": session})
        assert (await talk.answer(number))["stopReason"] == "cancelled"
        assert (await talk.prompt(session, "Again"))["stopReason"] == "end_turn"
    assert [part["text"] for _, part in await kept(tmp_path, session)][1] == "Half"


async def test_loading_what_is_open_here_goes_on_in_the_same_session_of_the_agent(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "One")
        await talk.load(session, tmp_path)
        await talk.call("session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await talk.prompt(session, "Two")
    assert len(heard(tmp_path, "session/new")) == 1
    assert [len(each["prompt"]) for each in heard(tmp_path, "session/prompt")] == [1, 1]


async def test_mode_and_options_are_as_they_were_when_a_session_is_opened_again(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path, _options=True)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        await talk.call("session/set_mode", {"sessionId": session, "modeId": "wild"})
        await talk.call(
            "session/set_config_option", {"sessionId": session, "configId": "model", "value": "large"}
        )
        usage = {"sessionUpdate": "usage_update", "used": 5, "size": 10}
        await talk.prompt(session, [{"say": "Hello"}, {"update": usage}])
        opened = await talk.call(
            "session/resume", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        )
        assert (opened["modes"]["currentModeId"], opened["configOptions"][0]["currentValue"]) == ("wild", "large")  # fmt: skip
    async with streams(tmp_path, line_agent(tmp_path, _options=True)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        opened = await talk.call("session/load", params)
        assert (opened["modes"]["currentModeId"], opened["configOptions"][0]["currentValue"]) == ("wild", "large")  # fmt: skip
        assert (await talk.until(is_update(session, "usage_update")))["params"]["update"] == usage
        fork = await talk.call("session/fork", params)
        assert (fork["modes"]["currentModeId"], fork["configOptions"][0]["currentValue"]) == ("wild", "large")
    chosen = [each["modeId"] for each in heard(tmp_path, "session/set_mode")]
    assert chosen == ["wild"] * 3
