"""Turns over the gateway: answered, called off from here and from another process, and never run twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Delta, Elicitation, Event, Message, Reply, Turn, answering
from hitherto.errors import ModelRefused
from hitherto.gateway.dispatch.connection import Turns
from hitherto.model import Principal, Text, Usage
from hitherto.service import Sessions
from hitherto.service.turns import runner
from hitherto.updates import Elicitor, Said, Update
from hitherto.values.positions import BEGINNING
from tests.gateway.methods.asker import KEY, Asker
from tests.support.scripted_engine import Permits, Scripted, call, says
from tests.support.waits import LIMIT, arrives, within


class Endless:
    """A script that begins to speak and never ends by itself."""

    def __init__(self) -> None:
        self.speaking = asyncio.Event()

    async def __call__(self, turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG002 - the engine's
        yield Delta(text="I was about to")
        self.speaking.set()
        await asyncio.Event().wait()


async def test_a_prompt_is_answered_stored_and_told(sessions: Sessions) -> None:
    heard: list[tuple[str, Update]] = []
    usage = Usage(input=7, output=2, cost=0.25)
    engine = Scripted(says("Yes", ", indeed", usage=usage, model="m"))
    asker = Asker(sessions, engine=engine, emit=lambda name, update: heard.append((name, update)))
    made = await asker.say("one")
    sent = await asker.ask("session.send", session_key=KEY, content="Is it?")
    assert (sent["stop_reason"], sent["message"]["content"], sent["message"]["role"]) == (
        "end_turn",
        "Yes, indeed",
        "assistant",
    )
    assert (sent["usage"]["input_tokens"], sent["usage"]["cost_usd"]) == (7, 0.25)
    assert await asker.said() == ["one", "Is it?", "Yes, indeed"]
    history = await asker.ask("session.history", session_key=KEY, limit=1)
    assert history["messages"][0] == sent["message"]
    assert {name for name, _ in heard} == {made["session_id"]}
    assert "".join(update.text for _, update in heard if isinstance(update, Said)) == "Yes, indeed"


async def test_who_does_not_wait_is_answered_when_the_prompt_is_kept_and_the_turn_goes_on(
    sessions: Sessions,
) -> None:
    script = Endless()
    asker = Asker(sessions, engine=Scripted(script, says("Yes")))
    made = await asker.say("one")
    going = {"session_key": KEY, "content": "Go", "wait": False}
    sent = await asker.ask("session.send", **going, idempotency_key="k")
    assert (sent["message"], sent["stop_reason"], sent["usage"]) == (None, None, None)
    assert (await asker.ask("session.history", session_key=KEY))["messages"][-1]["message_id"] == sent[
        "prompt_id"
    ]
    await arrives(script.speaking.wait(), "the first words")
    assert (await asker.ask("session.cancel", session_key=KEY))["cancelled"] is True
    await sessions.turns.end(Principal(owner="ann"), made["session_id"], seconds=LIMIT)
    again = await asker.ask("session.send", **going, idempotency_key="k")
    assert (again["prompt_id"], again["stop_reason"]) == (sent["prompt_id"], "cancelled")
    assert await asker.said() == ["one", "Go", "I was about to"]


async def test_a_prompt_may_be_blocks_and_is_answered_by_the_session_s_model(sessions: Sessions) -> None:
    engine = Scripted(says("Yes"), says("Yes"))
    asker = Asker(sessions, engine=engine)
    await asker.say("one")
    await asker.ask("session.send", session_key=KEY, content=[{"type": "text", "text": "Is it?"}])
    await asker.ask("sessions.patch", session_key=KEY, model="a:model")
    await asker.ask("session.send", session_key=KEY, content="Is it?")
    first, second = engine.turns
    assert first.history[-1].parts == second.history[-1].parts == (Text(text="Is it?"),)
    assert (first.choices.model, second.choices.model) == (None, "a:model")


async def test_a_server_without_an_engine_and_an_empty_prompt_are_told_apart(sessions: Sessions) -> None:
    asker = Asker(sessions)
    await asker.say("one")
    refused = await asker.refused("session.send", session_key=KEY, content="Hi")
    assert (refused["code"], refused["data"]["code"]) == (-32031, "model_missing")
    for content in ("", list[str]()):
        code = await asker.with_(engine=Scripted()).code("session.send", session_key=KEY, content=content)
        assert code == "invalid_input"
    assert await asker.said() == ["one"]


async def test_a_provider_that_fails_is_told_by_its_code(sessions: Sessions) -> None:
    async def to_failure(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(Text(text="So"),))
        raise ModelRefused("the key is wrong")

    asker = Asker(sessions, engine=Scripted(to_failure))
    await asker.say("one")
    refused = await asker.refused("session.send", session_key=KEY, content="Hi")
    assert refused == {"code": -32032, "message": "the key is wrong", "data": {"code": "model_refused"}}
    assert (await asker.ask("session.get", session_key=KEY))["status"] == "error"
    assert await asker.said() == ["one", "Hi", "So"]


async def test_a_turn_is_cancelled_in_this_process(sessions: Sessions) -> None:
    script = Endless()
    asker = Asker(sessions, engine=Scripted(script))
    await asker.say("one")
    turn = asyncio.create_task(asker.ask("session.send", session_key=KEY, content="Go"))
    await arrives(script.speaking.wait(), "the first words")
    assert (await asker.ask("session.get", session_key=KEY))["status"] == "running"
    for method in ("sessions.reset", "sessions.new", "session.compact"):
        refused = await asker.refused(method, session_key=KEY)
        assert (refused["data"]["code"], set(refused["data"])) == ("busy", {"code", "age_ms"})
        assert "hitherto:" not in refused["message"]
    assert await asker.ask("session.cancel", session_key=KEY) == {"session_key": KEY, "cancelled": True}
    sent = await arrives(turn, "the end of the turn")
    assert sent["stop_reason"] == "cancelled"
    assert await asker.said() == ["one", "Go", "I was about to"]
    assert (await asker.ask("session.cancel", session_key=KEY))["cancelled"] is False


async def test_who_cancels_a_turn_twice_with_one_key_does_not_end_the_next_one(sessions: Sessions) -> None:
    first, second = Endless(), Endless()
    asker = Asker(sessions, engine=Scripted(first, second))
    await asker.say("one")
    for script in (first, second):
        turn = asyncio.create_task(asker.ask("session.send", session_key=KEY, content="Go"))
        await arrives(script.speaking.wait(), "the first words")
        told = await asker.ask("session.cancel", session_key=KEY, idempotency_key="once")
        assert told == {"session_key": KEY, "cancelled": True}
        if script is first:
            await arrives(turn, "the end of the turn")
    assert (await asker.ask("session.get", session_key=KEY))["status"] == "running"
    assert (await asker.ask("session.cancel", session_key=KEY))["cancelled"] is True
    await arrives(turn, "the end of the turn")


async def test_only_models_that_the_server_offers_can_be_chosen(sessions: Sessions) -> None:
    engine = Scripted(says("Yes"), says("Yes"))
    asker = Asker(sessions, engine=engine, models=("a:model",))
    await asker.say("one")
    assert await asker.code("sessions.patch", session_key=KEY, model="b:dear") == "invalid_input"
    await asker.with_(models=None).ask("sessions.patch", session_key=KEY, model="b:dear")  # by another server
    await asker.ask("session.send", session_key=KEY, content="Is it?")
    await asker.ask("sessions.patch", session_key=KEY, model="a:model")
    await asker.ask("session.send", session_key=KEY, content="Is it?")
    assert [turn.choices.model for turn in engine.turns] == [None, "a:model"]
    await asker.ask("sessions.patch", session_key=KEY, model=None)


async def test_a_turn_is_cancelled_from_another_process(
    sessions: Sessions, other: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)
    script = Endless()
    here, there = Asker(sessions, engine=Scripted(script)), Asker(other, turns=Turns())
    await here.say("one")
    turn = asyncio.create_task(here.ask("session.send", session_key=KEY, content="Go"))
    await arrives(script.speaking.wait(), "the first words")
    assert (await there.ask("session.cancel", session_key=KEY))["cancelled"] is True
    sent = await arrives(turn, "the end of the turn")
    assert (sent["stop_reason"], sent["message"]["content"]) == ("cancelled", "I was about to")
    assert await there.said() == ["one", "Go", "I was about to"]
    # What was asked of that turn is not asked of the next.
    engine = Scripted(says("Gladly"))
    sent = await here.with_(engine=engine).ask("session.send", session_key=KEY, content="Again")
    assert sent["stop_reason"] == "end_turn"


async def test_a_tool_waits_for_an_answer_over_the_gateway(sessions: Sessions, other: Sessions) -> None:
    asks = Permits(call("run_command", "execute", id="c1", command="ls"), call("fetch", "fetch", id="c2"))
    here, there = Asker(sessions, engine=Scripted(asks)), Asker(other)
    made = await here.say("one")
    turn = asyncio.create_task(here.ask("session.send", session_key=KEY, content="Go", ask=True))
    named, choices = {"session_key": KEY}, {"run_command": "allow_once", "fetch": "reject_once"}
    async with within("both questions"):
        async for _ in other.watch(Principal("ann"), session_id=made["session_id"], after=BEGINNING):
            asked = (await there.ask("session.question", **named))["question"]
            if asked is None:
                continue
            given = {"tool_call_id": asked["tool_call_id"], "choice": choices.pop(asked["name"])}
            assert await there.ask("session.answer", **named, **given) == {**named, "answered": True}
            assert await there.ask("session.answer", **named, **given) == {**named, "answered": False}
            if not choices:
                break
    assert asked == {"tool_call_id": "c2", "name": "fetch", "kind": "fetch", "title": None, "input": {}}
    await arrives(turn, "the end of the turn")
    assert [verdict.allowed for verdict in asks.verdicts] == [True, False]
    assert await there.ask("session.question", **named) == {**named, "question": None, "elicitation": None}


async def test_what_a_server_asks_is_replied_to_over_the_gateway(sessions: Sessions, other: Sessions) -> None:
    asked = Elicitation(id="e1", server="desk", message="Your name?", schema={"type": "object"}, call="c1")
    replies: list[Reply] = []

    async def ask(turn: Turn) -> AsyncIterator[Event]:
        replies.append(await turn.elicit(asked))
        yield Message(parts=(Text(text="Thanks."),))

    async def never(_: Elicitation) -> Reply:
        nothing: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        return await nothing

    there = Asker(other)
    made = await there.say("one")
    ann, named = Principal("ann"), {"session_key": KEY}
    elicitor = Elicitor(frozenset({"form"}), never)
    async with sessions.opened(ann, made["session_id"], answering(ask), elicitor=elicitor) as opened:
        turn = asyncio.create_task(opened.prompt((Text(text="Go"),)))
        async with within("the question"):
            async for _ in other.watch(ann, session_id=made["session_id"], after=BEGINNING):
                found = await there.ask("session.question", **named)
                if found["elicitation"] is not None:
                    break
        assert found["question"] is None
        assert found["elicitation"] == {
            "elicitation_id": "e1",
            "server": "desk",
            "message": "Your name?",
            "schema": {"type": "object"},
            "url": None,
            "tool_call_id": "c1",
        }
        given = {**named, "elicitation_id": "e1", "action": "accept", "content": {"name": "Ada"}}
        assert await there.ask("session.reply", **given) == {**named, "answered": True}
        assert await there.ask("session.reply", **given) == {**named, "answered": False}
        await arrives(turn, "the end of the turn")
    assert replies == [Reply(action="accept", content={"name": "Ada"})]


async def test_nobody_cancels_somebody_else_s_turn(sessions: Sessions) -> None:
    script, turns = Endless(), Turns()
    ann, bob = Asker(sessions, engine=Scripted(script), turns=turns), Asker(sessions, "bob", turns=turns)
    await ann.say("one")
    await bob.say("one")
    turn = asyncio.create_task(ann.ask("session.send", session_key=KEY, content="Go"))
    await arrives(script.speaking.wait(), "the first words")
    assert (await bob.ask("session.cancel", session_key=KEY))["cancelled"] is False
    assert not turn.done()
    assert (await ann.ask("session.cancel", session_key=KEY))["cancelled"] is True
    await arrives(turn, "the end of the turn")


async def test_a_caller_who_leaves_takes_the_turn_along_and_what_was_said_stays(sessions: Sessions) -> None:
    script = Endless()
    asker = Asker(sessions, engine=Scripted(script))
    await asker.say("one")
    turn = asyncio.create_task(asker.ask("session.send", session_key=KEY, content="Go", idempotency_key="k"))
    await arrives(script.speaking.wait(), "the first words")
    turn.cancel()
    await arrives(asyncio.wait([turn]), "the end of the turn")
    assert await asker.said() == ["one", "Go", "I was about to"]
    again = await asker.ask("session.send", session_key=KEY, content="Go", idempotency_key="k")
    assert again["stop_reason"] == "cancelled"
