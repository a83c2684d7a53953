"""Several processes on one store: each sees what the others do."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest

import hitherto
from hitherto.acp.protocol.options import META_KEY
from hitherto.model import LOCAL
from tests.acp.wire import Agent, Json, is_update, kinds, separate, texts, url_of
from tests.support.waits import until

CALL = {"id": "t1", "name": "run", "kind": "execute", "input": {"command": "ls"}}


def is_question(message: Json) -> bool:
    return message.get("method") == "session/request_permission"


async def test_each_lists_the_others_sessions_at_once(tmp_path: Path) -> None:
    async with separate(tmp_path) as one, separate(tmp_path) as two:
        first, second = await one.new(tmp_path), await two.new(tmp_path)
        for agent, session in ((one, first), (two, second)):
            await agent.call("session/set_title", {"sessionId": session, "title": "Mine"})
        for agent in (one, two):
            rows = (await agent.call("session/list"))["sessions"]
            assert {row["sessionId"] for row in rows} == {first, second}


async def test_a_running_session_is_open_and_a_prompt_of_the_other_waits(tmp_path: Path) -> None:
    async with separate(tmp_path) as one, separate(tmp_path) as two:
        session = await one.new(tmp_path)
        prompt = await one.begin_prompt(session, ["x", {"hang": True}])
        await one.until(is_update(session, "agent_message_chunk"))
        assert await two.call("session/status", {"sessionId": session}) == {"status": "open"}
        withdrawn = await two.begin_prompt(session, "not any more")
        await two.send(method="session/cancel", params={"sessionId": session})
        assert (await two.answer(withdrawn))["stopReason"] == "cancelled"
        waiting = await two.begin_prompt(session, "me too")
        await one.send(method="session/cancel", params={"sessionId": session})
        await one.answer(prompt)
        assert (await two.answer(waiting))["stopReason"] == "end_turn"
        echoed = [each for each in two.updates(session) if each["sessionUpdate"] == "user_message_chunk"]
        assert "me too" not in str(echoed)


async def status_is(agent: Agent, session_id: str, status: str) -> None:
    """It becomes that: what others do is told as soon as they have done it."""

    async def is_so() -> bool:
        return bool((await agent.call("session/status", {"sessionId": session_id}))["status"] == status)

    await until(is_so, f"the session to be {status}")


@pytest.mark.parametrize("end", ["close", "leave", "die"])
async def test_a_session_is_open_as_long_as_any_process_has_it_open(tmp_path: Path, end: str) -> None:
    async with separate(tmp_path) as two:
        with suppress(AssertionError):  # one that was killed does not end well
            async with separate(tmp_path) as one:
                session, kept = await one.new(tmp_path), await one.new(tmp_path)
                await status_is(two, session, "open")
                if end == "close":
                    await one.call("session/close", {"sessionId": session})
                    await status_is(two, session, "saved")
                    await status_is(two, kept, "open")
                if end == "die":
                    one.process.kill()
        await status_is(two, session, "saved")
        await status_is(two, kept, "saved")


async def test_a_load_during_a_turn_replays_what_is_stored_and_then_follows(tmp_path: Path) -> None:
    async with separate(tmp_path) as one, separate(tmp_path) as two:
        del one.on["session/request_permission"]
        session = await one.new(tmp_path)
        script = ["I will ", "look.", {"call": CALL}, {"permit": True}, {"result": "a.txt"}, "One ", "file."]
        prompt = await one.begin_prompt(session, script)
        question = await one.until(is_question)
        replayed = await two.load(session, tmp_path)
        assert kinds(replayed) == ["user_message_chunk", "agent_message_chunk", "tool_call"]
        await one.send(
            id=question["id"], result={"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        )
        await one.answer(prompt)
        await two.until(lambda _: texts(two.updates(session)) == "I will look.One file.")
        (end,) = [each for each in two.updates(session) if each["sessionUpdate"] == "tool_call_update"]
        assert (end["toolCallId"], end["status"]) == ("t1", "completed")
        assert await two.load(session, tmp_path) == await one.load(session, tmp_path)


async def test_words_of_another_process_arrive_before_they_are_stored(tmp_path: Path) -> None:
    async with separate(tmp_path) as one, separate(tmp_path) as two:
        session = await one.new(tmp_path)
        await two.load(session, tmp_path)
        prompt = await one.begin_prompt(session, [{"thought": "hm"}, "Being said", {"hang": True}])
        await two.until(lambda _: texts(two.updates(session)) == "Being said")
        assert "user_message_chunk" in kinds(two.updates(session))
        await one.send(method="session/cancel", params={"sessionId": session})
        await one.answer(prompt)
        await two.until(lambda _: texts(two.updates(session), "agent_thought_chunk") == "hm")
        assert texts(two.updates(session)) == "Being said"
        assert (await two.prompt(session, "and me"))["stopReason"] == "end_turn"
        assert texts(two.updates(session)) == "Being saidYou said: and me"


async def test_a_rename_elsewhere_reaches_the_client_and_clearing_it_sends_null(tmp_path: Path) -> None:
    async with separate(tmp_path) as agent, hitherto.open(url_of(tmp_path)) as sessions:
        session, closed = await agent.new(tmp_path), await agent.new(tmp_path)
        await agent.call("session/close", {"sessionId": closed})
        await sessions.rename(LOCAL, closed, "Not open here")
        await sessions.rename(LOCAL, session, "From elsewhere")
        await agent.until(is_update(session, "session_info_update"))
        await sessions.rename(LOCAL, session, None)
        await sessions.tag(LOCAL, session, add=("t",))
        await agent.until(lambda _: agent.updates(session)[-1].get("_meta") == {"tags": ["t"]})
        told = agent.updates(session)
        assert told[0]["title"] == "From elsewhere"
        assert [update["title"] for update in told if "title" in update][-1] is None
        assert agent.updates(closed) == []


async def test_what_is_chosen_elsewhere_reaches_the_client_and_holds_for_its_turns(tmp_path: Path) -> None:
    async with separate(tmp_path) as one, separate(tmp_path) as two:
        session = await one.new(tmp_path)
        await two.load(session, tmp_path)
        for option, value in (("thinking", "high"), ("mode", "plan")):
            asked = {"sessionId": session, "configId": option, "value": value}
            await two.call("session/set_config_option", asked)
        chosen = {"model": "default", "mode": "plan", "thinking": "high"}
        await one.until(lambda _: told_options(one.updates(session)) == chosen)
        told = one.updates(session)
        assert [update["currentModeId"] for update in told if "currentModeId" in update] == ["plan"]
        assert kinds(two.updates(session)) == ["session_info_update", "current_mode_update"], (
            "whoever has chosen is told nothing anew"
        )
        await one.prompt(session, [{"choices": True}])
        assert '"mode": "plan"' in texts(one.updates(session))
        # One chooses without having heard of what the other has chosen meanwhile: both hold.
        asked = {"sessionId": session, "configId": "thinking", "value": "low"}
        async with hitherto.open(url_of(tmp_path)) as sessions:
            await sessions.catalog.set_own_meta(LOCAL, session, {META_KEY: {"mode": "dontAsk"}})
            answer = await one.call("session/set_config_option", asked)
        assert current(answer["configOptions"]) == {"model": "default", "mode": "dontAsk", "thinking": "low"}


def told_options(found: list[Json]) -> Json | None:
    """The options as they were told last."""
    told = [update["configOptions"] for update in found if "configOptions" in update]
    return current(told[-1]) if told else None


def current(options: list[Json]) -> Json:
    return {option["id"]: option["currentValue"] for option in options}


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
async def test_whichever_way_it_ends_what_was_said_is_stored_and_the_session_is_free(
    tmp_path: Path, how: str
) -> None:
    async with separate(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.begin_prompt(session, ["Half of it", {"hang": True}])
        await agent.until(is_update(session, "agent_message_chunk"))
        if how != "end of input":
            agent.process.send_signal(getattr(signal, how))
        assert await agent.leave() == 0
    async with separate(tmp_path) as agent:
        assert await agent.call("session/status", {"sessionId": session}) == {"status": "saved"}
        assert texts(await agent.load(session, tmp_path)) == "Half of it"
        assert (await agent.prompt(session, "Go on"))["stopReason"] == "end_turn"


async def test_a_load_during_the_clients_own_turn_tells_everything_and_goes_on(tmp_path: Path) -> None:
    async with separate(tmp_path) as agent:
        del agent.on["session/request_permission"]
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, ["Before.", {"call": CALL}, {"permit": True}, "After."])
        question = await agent.until(is_question)
        before = len(agent.seen)
        replayed = await agent.load(session, tmp_path)
        assert texts(replayed) == "Before."
        await agent.send(id=question["id"], error={"code": -32603, "message": "the window was closed"})
        await agent.answer(prompt)
        since = [message for message in agent.seen[before:] if message["method"] == "session/update"]
        assert texts([message["params"]["update"] for message in since]) == "Before.After."
