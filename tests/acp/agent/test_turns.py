"""Prompts over the wire: what is streamed, what is asked, how a turn ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp.wire import EVERYTHING, Json, Refusal, is_update, kinds, scripted, texts

CALL = {
    "id": "t1",
    "name": "write_file",
    "kind": "edit",
    "title": "Write a.txt",
    "input": {"path": "/p/a.txt"},
    "locations": [{"path": "/p/a.txt", "line": 3}],
}
NO_PROMPTS: list[Any] = [
    [],
    [{"type": "audio", "data": "", "mimeType": "audio/wav"}],
    [{"type": "nonsense"}],
    [{"type": "text"}],
    [{"type": "resource", "resource": {"uri": "file:///a"}}],
    [{"type": "resource_link", "uri": "file:///a", "name": "a", "size": -1}],
    "hello",
    [5],
]
DIFF = {"diff": {"path": "/p/a.txt", "oldText": None, "newText": "new"}}


async def test_an_answer_is_streamed_and_then_the_prompt_is_answered(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        result = await agent.prompt(session, [{"thought": "Hm. "}, "Hello ", "there."])
        assert result["stopReason"] == "end_turn"
        assert result["usage"] == {"totalTokens": 110, "inputTokens": 100, "outputTokens": 10}
        found = agent.updates(session)
        assert texts(found) == "Hello there."
        assert texts(found, "agent_thought_chunk") == "Hm. "
        assert len({update["messageId"] for update in found if "messageId" in update}) == 1
        assert "user_message_chunk" not in kinds(found)


async def test_what_was_not_streamed_is_told_when_it_is_stored_and_nothing_is_told_twice(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, ["said ", {"unsaid": "and unsaid"}, {"thought": "t"}])
        assert texts(agent.updates(session)) == "said and unsaid"
        assert texts(agent.updates(session), "agent_thought_chunk") == "t"


async def test_a_tool_is_shown_asked_about_and_ended(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        script = [
            "I will.",
            {"call": CALL},
            {"permit": True},
            {"progress": "half"},
            {"result": "done", "output": DIFF},
            "Done.",
        ]
        await agent.prompt(session, script)
        order = [message.get("method") for message in agent.seen]
        asked = order.index("session/request_permission")
        (shown,) = [at for at, message in enumerate(agent.seen) if is_update(session, "tool_call")(message)]
        assert shown < asked
        question = agent.seen[asked]["params"]
        assert question["toolCall"]["toolCallId"] == "t1"
        assert question["toolCall"]["rawInput"] == {"path": "/p/a.txt"}
        assert [option["kind"] for option in question["options"]] == [
            "allow_once", "allow_always", "reject_once", "reject_always",
        ]  # fmt: skip
        call = agent.seen[shown]["params"]["update"]
        assert (call["title"], call["name"], call["kind"], call["status"]) == (
            "Write a.txt", "write_file", "edit", "pending",
        )  # fmt: skip
        assert call["locations"] == [{"path": "/p/a.txt", "line": 3}]
        assert question["toolCall"]["status"] == "pending"
        told = [update for update in agent.updates(session) if update["sessionUpdate"] == "tool_call_update"]
        assert [update["status"] for update in told] == ["in_progress", "completed"]
        last = told[-1]
        assert last["content"] == [{"type": "diff", "path": "/p/a.txt", "oldText": None, "newText": "new"}]


@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": {"outcome": "selected", "optionId": "reject_once"}},
        {"outcome": {"outcome": "selected", "optionId": "no such option"}},
        {"outcome": {"outcome": "cancelled"}},
        {"outcome": 5},
        {},
    ],
)
async def test_whatever_is_not_a_yes_is_a_no(tmp_path: Path, outcome: Json) -> None:
    async with scripted(tmp_path) as agent:
        agent.on["session/request_permission"] = lambda _: outcome
        session = await agent.new(tmp_path)
        await agent.prompt(session, [{"call": CALL}, {"permit": True}, "Then not."])
        (end,) = [each for each in agent.updates(session) if each["sessionUpdate"] == "tool_call_update"]
        assert end["status"] == "failed"
        assert texts(agent.updates(session)) == "Then not."


async def test_an_answer_for_always_is_not_asked_for_again(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        agent.on["session/request_permission"] = lambda _: {
            "outcome": {"outcome": "selected", "optionId": "allow_always"}
        }
        session = await agent.new(tmp_path)
        for _ in range(2):
            await agent.prompt(session, [{"call": CALL}, {"permit": True}, {"result": "ok"}])
        asked = [message for message in agent.seen if message["method"] == "session/request_permission"]
        assert len(asked) == 1


async def test_cancel_ends_the_prompt_with_cancelled_and_keeps_what_was_said(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, ["Half of ", {"hang": True}, "it"])
        await agent.until(is_update(session, "agent_message_chunk"))
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        replayed = await agent.load(session, tmp_path)
        assert texts(replayed) == "Half of "


async def test_a_prompt_cancelled_before_it_began_is_cancelled_too(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, [{"hang": True}])
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        assert (await agent.prompt(session, "again"))["stopReason"] == "end_turn"


async def test_cancelling_the_request_itself_answers_that_it_was_cancelled(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, ["Half", {"hang": True}])
        await agent.until(is_update(session, "agent_message_chunk"))
        await agent.send(method="$/cancel_request", params={"requestId": prompt})
        with pytest.raises(Refusal) as refused:
            await agent.answer(prompt)
        assert refused.value.code == -32800
        assert texts(await agent.load(session, tmp_path)) == "Half"


async def test_cancelling_while_a_permission_is_asked_for_withdraws_the_question(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        del agent.on["session/request_permission"]
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, [{"call": CALL}, {"permit": True}])
        question = await agent.until(lambda message: message.get("method") == "session/request_permission")
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        withdrawn = [message["params"] for message in agent.seen if message["method"] == "$/cancel_request"]
        assert withdrawn == [{"requestId": question["id"]}]
        # The answer that comes too late is ignored.
        await agent.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})
        assert (await agent.prompt(session, "again"))["stopReason"] == "end_turn"


async def test_a_second_prompt_while_one_runs_waits_and_is_taken_back_by_cancel(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        first = await agent.begin_prompt(session, ["x", {"hang": True}])
        await agent.until(is_update(session, "agent_message_chunk"))
        second = await agent.begin_prompt(session, "me too")
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(first))["stopReason"] == "cancelled"
        assert (await agent.answer(second))["stopReason"] == "cancelled"
        assert (await agent.prompt(session, "now"))["stopReason"] == "end_turn"


async def test_a_failure_of_the_model_is_an_error_after_what_was_said(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        with pytest.raises(Refusal) as refused:
            await agent.prompt(session, ["As far as ", {"fail": "no connection"}])
        assert refused.value.error == {
            "code": -32034,
            "message": "no connection",
            "data": {"code": "model_unreachable", "sessionId": session},
        }
        assert texts(agent.updates(session)) == "As far as "
        assert texts(await agent.load(session, tmp_path)) == "As far as "


@pytest.mark.parametrize("reason", ["max_tokens", "max_turn_requests", "refusal"])
async def test_the_reason_why_a_turn_stops_is_told(tmp_path: Path, reason: str) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        assert (await agent.prompt(session, ["x", {"store": True}, {"stop": reason}]))["stopReason"] == reason


async def test_usage_plan_title_and_notices_are_told(tmp_path: Path) -> None:
    async with scripted(tmp_path, EVERYTHING) as agent:
        session = await agent.new(tmp_path)
        steps = [{"content": "one", "priority": "high", "status": "in_progress"}, {"content": "two"}]
        script: list[Any] = ["x", {"plan": steps}, {"context": [120, 1000]}, {"notice": "Trying again"}]
        await agent.prompt(session, script)
        found = {update["sessionUpdate"]: update for update in agent.updates(session)}
        assert (found["usage_update"]["used"], found["usage_update"]["size"]) == (120, 1000)
        assert found["plan"]["entries"] == [
            {"content": "one", "priority": "high", "status": "in_progress"},
            {"content": "two", "priority": "medium", "status": "pending"},
        ]
        assert found["notice"] == {
            "sessionUpdate": "notice", "severity": "warning", "title": "Trying again",
        }  # fmt: skip
        told = [u for u in agent.updates(session) if u["sessionUpdate"] == "session_info_update"]
        assert [set(update) - {"sessionUpdate"} for update in told] == [{"title", "updatedAt"}, {"updatedAt"}]
        assert told[0]["updatedAt"] < told[1]["updatedAt"]


async def test_what_is_known_of_a_session_is_sent_when_it_is_opened_and_when_it_has_changed(
    tmp_path: Path,
) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Paint the barn")
        await agent.call("session/set_title", {"sessionId": session, "title": "Barn"})
        (row,) = (await agent.call("session/list"))["sessions"]
    for method in ("session/load", "session/resume"):
        async with scripted(tmp_path) as agent:
            params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
            await agent.call(method, params)
            info = (await agent.until(is_update(session, "session_info_update")))["params"]["update"]
            assert (info["title"], info["updatedAt"]) == ("Barn", row["updatedAt"])
            await agent.call("session/set_title", {"sessionId": session, "title": "Barn"})
            await agent.call("_hitherto/session/search", {"query": "barn"})
            told = [u for u in agent.updates(session) if u["sessionUpdate"] == "session_info_update"]
            assert told == [info]  # nothing has changed


async def test_a_client_that_did_not_ask_for_notices_gets_none(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, ["x", {"notice": "Trying again"}])
        assert "notice" not in kinds(agent.updates(session))


async def test_the_trace_of_a_request_reaches_the_engine_and_meta_overrides_nothing(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session, other = await agent.new(tmp_path), await agent.new(tmp_path)
        meta = {"traceparent": "00-1-2-01", "sessionId": other, "session_id": other, "mode": "plan"}
        meta["baggage"] = "x" * 200_000  # no provider takes that
        await agent.prompt(session, [{"choices": True}], _meta=meta)
        assert json.loads(texts(agent.updates(session))) == {
            "mode": "default", "trace": {"traceparent": "00-1-2-01"},
        }  # fmt: skip
        assert agent.updates(other) == []


async def test_what_the_user_chose_is_kept_with_the_session(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        answer = await agent.call(
            "session/set_config_option", {"sessionId": session, "configId": "mode", "value": "plan"}
        )
        assert [option["id"] for option in answer["configOptions"]] == ["model", "mode", "thinking"]
        assert "current_mode_update" in kinds(agent.updates(session))
        await agent.call("session/set_mode", {"sessionId": session, "modeId": "acceptEdits"})
        assert "config_option_update" in kinds(agent.updates(session))
    async with scripted(tmp_path) as agent:
        answer = await agent.call("session/resume", {"sessionId": session, "cwd": str(tmp_path)})
        assert answer["modes"]["currentModeId"] == "acceptEdits"
        assert agent.updates(session) == []
        await agent.prompt(session, [{"choices": True}])
        assert json.loads(texts(agent.updates(session)))["mode"] == "acceptEdits"


async def test_only_what_is_offered_can_be_chosen(tmp_path: Path) -> None:
    never: list[tuple[str, Any]] = [
        ("mode", "nonsense"), ("nonsense", "plan"), ("model", "never offered"), ("mode", True),
    ]  # fmt: skip
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        for option, value in never:
            params = {"sessionId": session, "configId": option, "value": value}
            with pytest.raises(Refusal) as refused:
                await agent.call("session/set_config_option", params)
            assert refused.value.code == -32602


async def test_a_prompt_that_is_none_is_refused(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        for prompt in NO_PROMPTS:
            with pytest.raises(Refusal) as refused:
                await agent.call("session/prompt", {"sessionId": session, "prompt": prompt})
            assert refused.value.code == -32602
        assert (await agent.prompt(session, "good"))["stopReason"] == "end_turn"
