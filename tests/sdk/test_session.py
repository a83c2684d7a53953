"""A session to talk in: prompts, what is sent, what is told, interrupts, and nothing left when it is closed."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto import LOCAL
from hitherto.engine import Delta, Event, Message, Notice, Stopped, ToolEnded, Turn
from hitherto.errors import Busy, InvalidInput, ModelMissing, ModelRefused, SessionNotFound
from hitherto.model import Entry, Image, Text, Thought, ToolCall, ToolResult, Usage, plain_text
from tests.support.scripted_engine import Scripted, says
from tests.support.waits import arrives

PIXEL = "iVBORw0KGgo="


class Gate:
    """A script that begins to speak, then waits until it is let go on."""

    def __init__(self) -> None:
        self.speaking, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: Turn) -> AsyncIterator[Event]:
        yield Delta(text="Well")
        self.speaking.set()
        await arrives(self.go.wait(), "leave to go on")
        yield Message(parts=(Text(text="Well."),))


async def spoken(gate: Gate) -> None:
    await arrives(gate.speaking.wait(), "the first words")


async def stored(store: str, session_id: str) -> tuple[Entry, ...]:
    async with hitherto.open(store) as sessions:
        return (await sessions.history(LOCAL, session_id)).entries


async def heard(session: hitherto.SDKSession) -> list[Any]:
    return [message async for message in session.stream()]


async def test_a_session_keeps_its_conversation_from_prompt_to_prompt(store: str) -> None:
    engine = Scripted(says("One."), says("Two."))
    session = hitherto.create_session(engine=engine, store=store, cwd="/a", title="Counting")
    known = session.session_id
    async with session:
        assert (await session.prompt("First?")).result == "One."
        result = await session.prompt("Second?")
    assert (result.type, result.subtype, result.is_error, result.session_id) == (
        "result",
        "success",
        False,
        known,
    )
    assert (result.result, result.stop_reason, result.num_turns, result.errors) == ("Two.", "end_turn", 1, ())
    assert [plain_text(entry) for entry in engine.turns[-1].history] == ["First?", "One.", "Second?"]
    async with hitherto.open(store) as sessions:
        kept = await sessions.get(LOCAL, known)
    assert (kept.cwd, kept.title, kept.message_count) == ("/a", "Counting", 4)


async def test_nothing_is_opened_before_the_first_use(store: str, tmp_path: Path) -> None:
    engine = Scripted()
    session = hitherto.create_session(engine=engine, store=store)
    assert session.session_id
    await session.close()
    assert (engine.setups, os.listdir(tmp_path)) == ([], [])


async def test_the_working_directory_is_this_programs_unless_given(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = Scripted()
    async with hitherto.create_session(engine=engine, store=store, additional_directories=["more"]):
        assert engine.setups[0].roots == (str(tmp_path), str(tmp_path / "more"))


async def test_a_closed_session_takes_no_prompts_and_can_be_closed_again(store: str) -> None:
    engine = Scripted()
    session = hitherto.create_session(engine=engine, store=store)
    await session.prompt("Hello")
    assert engine.open_now == 1
    await session.close()
    await session.close()
    assert engine.open_now == 0
    for again in (session.prompt, session.send):
        with pytest.raises(InvalidInput, match="closed"):
            await again("Hello?")
    assert await heard(session) == []
    with pytest.raises(InvalidInput, match="closed"):
        await session.__aenter__()


async def test_a_session_opened_in_one_task_is_closed_by_another(store: str) -> None:
    session = hitherto.create_session(engine=Scripted(), store=store)
    await asyncio.create_task(session.prompt("Hello"))
    await asyncio.create_task(session.close())


def test_a_program_that_does_not_close_its_session_leaves_nothing_open(store: str) -> None:
    engine = Scripted()

    async def main() -> None:
        assert (await hitherto.create_session(engine=engine, store=store).prompt("Hello")).result == "Noted."

    asyncio.run(main())
    assert engine.open_now == 0


def test_a_session_that_nobody_holds_is_closed_in_order_when_the_program_ends(
    store: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Scripted()

    async def main() -> None:
        await hitherto.create_session(engine=engine, store=store).prompt("Hello")
        gc.collect()

    asyncio.run(main())
    assert (engine.open_now, caplog.messages) == (0, [])


async def test_a_session_is_stored_message_by_message_for_the_owner_of_this_machine(store: str) -> None:
    async with hitherto.create_session(engine=Scripted(says("Yes.")), store=store) as session:
        await session.prompt([Text(text="See:"), Image(mime_type="image/png", data=PIXEL), "and tell"])
    first, answer = await stored(store, session.session_id)
    assert first.parts == (Text(text="See:"), Image(mime_type="image/png", data=PIXEL), Text(text="and tell"))
    assert plain_text(answer) == "Yes."


async def test_a_prompt_may_have_blocks_of_the_messages_api(store: str) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    async with hitherto.create_session(engine=Scripted(), store=store) as session:
        await session.prompt([{"type": "text", "text": "See:"}, {"type": "image", "source": source}])
    first, _ = await stored(store, session.session_id)
    assert first.parts == (Text(text="See:"), Image(mime_type="image/png", data=PIXEL))


@pytest.mark.parametrize(
    "message",
    ["", "  ", [], [""], 3, None, b"x", [3], [ToolCall(id="c", name="n")], [{"type": "tool_use"}], [{"type": "new"}],
     [{"type": "text", "text": object()}]],
)  # fmt: skip
async def test_what_cannot_be_said_is_refused_and_nothing_is_stored(store: str, message: Any) -> None:
    async with hitherto.create_session(engine=Scripted(), store=store) as session:
        for say in (session.prompt, session.send):
            with pytest.raises(InvalidInput, match="prompt"):
                await say(message)
        assert not await session.interrupt()
    assert await stored(store, session.session_id) == ()


# What is told


async def test_a_stream_begins_with_what_the_turn_is_run_with_and_ends_with_the_result(store: str) -> None:
    call = ToolCall(id="c1", name="read_file", kind="read", input={"path": "/a/b"})
    done = ToolResult(id="c1", content=(Text(text="b's text"),))
    used = Usage(input=100, output=7, cache_read=60, cache_write=20, cost=0.25)

    async def script(_: Turn) -> AsyncIterator[Event]:
        yield Delta(text="Hm. ", thought=True)
        yield Delta(text="I look. ")
        yield Notice(text="Tried again.", severity="warning")
        thought = Thought(text="Hm. ", signature="s")
        yield Message(parts=(thought, Text(text="I look. "), call), model="m-1", usage=used)
        yield ToolEnded(result=done)
        yield Delta(text="It is ")
        yield Delta(text="b.")
        yield Message(parts=(Text(text="It is b."),), model="m-1", usage=used)

    servers = {"files": {"command": "serve"}}
    session = hitherto.create_session(
        engine=Scripted(script), store=store, cwd="/a", mcp_servers=servers, permission_mode="plan", model="m"
    )
    async with session:
        await session.send("Look")
        init, notice, first, result, second, last = await heard(session)
    assert {message.session_id for message in (init, notice, first, result, second, last)} == {
        session.session_id
    }
    assert (init.type, init.subtype, init.model, init.cwd, init.permission_mode) == (
        "system", "init", "m", "/a", "plan",
    )  # fmt: skip
    assert (init.mcp_servers, init.forked_from) == (({"name": "files", "type": "stdio"},), None)
    assert (notice.subtype, notice.text, notice.severity) == ("notice", "Tried again.", "warning")
    assert first.type == "assistant"
    assert (first.message["role"], first.message["model"]) == ("assistant", "m-1")
    assert first.message["content"] == [
        {"type": "thinking", "thinking": "Hm. ", "signature": "s"},
        {"type": "text", "text": "I look. "},
        {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "/a/b"}},
    ]
    assert first.message["usage"]["input_tokens"] == 20
    text = {"type": "text", "text": "b's text"}
    assert (result.type, result.message) == (
        "user",
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [text], "is_error": False}],
        },
    )
    assert second.message["content"] == [{"type": "text", "text": "It is b."}]
    assert (last.result, last.num_turns, last.total_cost_usd) == ("It is b.", 2, 0.5)
    assert last.usage == {
        "input_tokens": 40, "output_tokens": 14, "cache_read_input_tokens": 120, "cache_creation_input_tokens": 40,
    }  # fmt: skip
    ids = [entry.id for entry in await stored(store, session.session_id)]
    assert [first.uuid, result.uuid, second.uuid] == ids[1:]


async def test_partial_messages_are_told_only_to_those_who_ask_for_them(store: str) -> None:
    async def script(_: Turn) -> AsyncIterator[Event]:
        yield Delta(text="Hm", thought=True)
        yield Delta(text="Ye")
        yield Delta(text="s")
        yield Message(parts=(Thought(text="Hm"), Text(text="Yes")))
        yield Delta(text="!")
        yield Message(parts=(Text(text="!"),))

    engine = Scripted(script)
    async with hitherto.create_session(engine=engine, store=store, include_partial_messages=True) as session:
        await session.send("Well?")
        messages = await heard(session)
    partial = [message for message in messages if message.type == "stream_event"]
    assert [(each.event["index"], each.event["delta"]) for each in partial] == [
        (0, {"type": "thinking_delta", "thinking": "Hm"}),
        (1, {"type": "text_delta", "text": "Ye"}),
        (1, {"type": "text_delta", "text": "s"}),
        (0, {"type": "text_delta", "text": "!"}),
    ]
    whole = [message.uuid for message in messages if message.type == "assistant"]
    assert [each.uuid for each in partial] == [whole[0], whole[0], whole[0], whole[1]]


async def test_fields_of_a_message_are_also_found_by_their_names() -> None:
    messages: list[Any] = [
        each async for each in hitherto.query("Hello.", engine=Scripted(), store="memory:")
    ]
    init, result = messages[0], messages[-1]
    assert "session_id" in init
    assert init["session_id"] == init.session_id == result["session_id"]
    assert "nonsense" not in result
    assert result.get("result") == "Noted."
    assert result.get("nonsense") is None
    with pytest.raises(KeyError):
        result["nonsense"]
    with pytest.raises(AttributeError):
        result.result = "other"


async def test_what_is_not_known_is_none(store: str) -> None:
    result = await hitherto.prompt("Hello", engine=Scripted(), store=store)
    assert set(result.usage.values()) == {None}
    assert result.total_cost_usd is None


async def test_what_a_server_reports_before_the_first_turn_is_told_in_it(store: str) -> None:
    engine = Scripted()
    async with hitherto.create_session(engine=engine, store=store) as session:
        engine.setups[0].report(Notice(text="The server is gone.", severity="error"))
        for expected in (["init", "notice", None, "success"], ["init", None, "success"]):
            await session.send("Hello")
            assert [message.get("subtype") for message in await heard(session)] == expected


def failing(text: str) -> Any:
    """A script in which a server fails."""

    async def script(_: Turn) -> AsyncIterator[Event]:
        engine.setups[-1].report(Notice(text=text, severity="error"))
        yield Message(parts=(Text(text="Without it, then."),))

    engine = Scripted(script)
    return engine


async def test_what_a_server_reports_while_a_turn_runs_is_told_in_that_turn(store: str) -> None:
    told = hitherto.query("Hello", engine=failing("The server 'a' failed."), store=store)
    messages: list[Any] = [message async for message in told]
    assert [message.get("subtype") or message.type for message in messages] == [
        "init", "notice", "assistant", "success",
    ]  # fmt: skip
    assert messages[1].text == "The server 'a' failed."


async def test_a_result_says_what_went_wrong_beside_the_answer(store: str) -> None:
    result = await hitherto.prompt("Hello", engine=failing("The server 'a' failed."), store=store)
    assert (result.subtype, result.notices) == ("success", ("The server 'a' failed.",))
    assert (await hitherto.prompt("Hello", engine=Scripted(), store=store)).notices == ()


async def test_a_query_tells_everything_and_leaves_nothing_open_when_left_early(store: str) -> None:
    engine = Scripted(says("Well", "."))
    told = hitherto.query({"prompt": "Hello.", "options": {"engine": engine, "store": store}})
    assert [message.type async for message in told] == ["system", "assistant", "result"]
    gate = Gate()
    engine = Scripted(gate)
    async with aclosing(hitherto.query("Hello.", engine=engine, store=store)) as messages:
        async for message in messages:
            assert message.type == "system"
            break
    assert engine.open_now == 0


# One after the other


async def test_a_second_prompt_at_once_is_refused_and_the_first_goes_on(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate), store=store) as session:
        first = asyncio.create_task(session.prompt("First"))
        await spoken(gate)
        with pytest.raises(Busy):
            await session.prompt("Second")
        gate.go.set()
        assert (await arrives(first, "the end of the turn")).result == "Well."
        assert (await session.prompt("Third")).result == "Noted."
    assert [plain_text(entry) for entry in await stored(store, session.session_id)] == [
        "First", "Well.", "Third", "Noted.",
    ]  # fmt: skip


async def test_a_prompt_elsewhere_makes_a_session_busy_and_what_is_sent_waits_for_it(store: str) -> None:
    gate = Gate()
    async with (
        hitherto.create_session(engine=Scripted(gate), store=store) as one,
        hitherto.resume_session(one.session_id, engine=Scripted(), store=store) as other,
    ):
        first = asyncio.create_task(one.prompt("First"))
        await spoken(gate)
        with pytest.raises(Busy):
            await other.prompt("Second")
        await other.send("Second")
        gate.go.set()
        assert (await arrives(first, "the end of the turn")).result == "Well."
        assert (await heard(other))[-1].result == "Noted."


async def test_what_is_sent_is_answered_in_order_and_each_stream_ends_with_one_result(store: str) -> None:
    gate = Gate()
    engine = Scripted(gate, says("Two."), says("Three."))
    async with hitherto.create_session(engine=engine, store=store) as session:
        for text in ("First", "Second", "Third"):
            await session.send(text)
        with pytest.raises(Busy):
            await session.prompt("Fourth")
        gate.go.set()
        results = [(await heard(session))[-1].result for _ in range(3)]
    assert results == ["Well.", "Two.", "Three."]


async def test_a_stream_left_early_goes_on_with_the_next_call(store: str) -> None:
    async with hitherto.create_session(engine=Scripted(), store=store) as session:
        await session.send("Hello")
        async with aclosing(session.stream()) as stream:
            assert (await anext(stream)).type == "system"
        assert [message.type for message in await heard(session)] == ["assistant", "result"]


async def test_a_stream_waits_for_something_to_be_sent_and_ends_when_the_session_is_closed(
    store: str,
) -> None:
    session = hitherto.create_session(engine=Scripted(), store=store)
    listening = asyncio.create_task(heard(session))
    await session.send("Hello")
    assert (await arrives(listening, "the end of the stream"))[-1].result == "Noted."
    listening = asyncio.create_task(heard(session))
    await session.close()
    assert await arrives(listening, "the end of the stream") == []


# Ends


async def test_an_interrupt_ends_the_turn_and_keeps_what_was_said(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate), store=store) as session:
        running = asyncio.create_task(session.prompt("Speak"))
        await spoken(gate)
        assert await session.interrupt()
        result = await arrives(running, "the end of the turn")
        assert (result.subtype, result.is_error, result.stop_reason) == (
            "error_during_execution",
            True,
            "cancelled",
        )
        assert (result.result, result.errors) == ("Well", ("the turn was interrupted",))
        assert not await session.interrupt()
        assert (await session.prompt("Go on")).result == "Noted."
    assert [plain_text(entry) for entry in await stored(store, session.session_id)][:2] == ["Speak", "Well"]


async def test_a_prompt_that_is_interrupted_before_it_has_begun_never_does(store: str) -> None:
    engine = Scripted()
    session = hitherto.create_session(engine=engine, store=store)
    running = asyncio.create_task(session.prompt("Speak"))
    await asyncio.sleep(0)
    assert await session.interrupt()
    assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
    assert engine.turns == []
    assert (await session.prompt("Go on")).result == "Noted."
    await session.close()
    assert [plain_text(entry) for entry in await stored(store, session.session_id)] == ["Go on", "Noted."]


async def test_an_interrupt_ends_what_was_sent_and_waits_for_a_turn_elsewhere(store: str) -> None:
    gate = Gate()
    async with (
        hitherto.create_session(engine=Scripted(gate), store=store) as one,
        hitherto.resume_session(one.session_id, engine=Scripted(), store=store) as other,
    ):
        first = asyncio.create_task(one.prompt("First"))
        await spoken(gate)
        await other.send("Second")
        await other.send("Third")
        listening = other.stream()
        assert (await anext(listening)).type == "system"
        assert await other.interrupt()
        result = await arrives(anext(listening), "the result")
        assert isinstance(result, hitherto.SDKResultMessage)
        assert (result.stop_reason, result.is_error) == ("cancelled", True)
        gate.go.set()
        assert (await arrives(first, "the end of the turn")).result == "Well."
        assert (await heard(other))[-1].result == "Noted."
    assert [plain_text(entry) for entry in await stored(store, one.session_id)] == [
        "First", "Well.", "Third", "Noted.",
    ]  # fmt: skip


async def test_an_interrupt_of_a_prompt_leaves_what_was_sent_meanwhile(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate), store=store) as session:
        running = asyncio.create_task(session.prompt("First"))
        await spoken(gate)
        await session.send("Second")
        for _ in range(50):  # so that it would be on its way, were it not to wait
            await asyncio.sleep(0)
        assert await session.interrupt()
        assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
        assert (await heard(session))[-1].result == "Noted."


async def test_an_interrupt_ends_what_runs_and_not_what_was_sent_after_it(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate, says("Two.")), store=store) as session:
        await session.send("First")
        await session.send("Second")
        await spoken(gate)
        assert await session.interrupt()
        results = [(await heard(session))[-1] for _ in range(2)]
    assert [(each.stop_reason, each.result) for each in results] == [
        ("cancelled", "Well"),
        ("end_turn", "Two."),
    ]


async def test_closing_ends_what_runs(store: str) -> None:
    gate = Gate()
    session = hitherto.create_session(engine=Scripted(gate), store=store)
    running = asyncio.create_task(session.prompt("Speak"))
    await spoken(gate)
    await session.close()
    assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
    gate = Gate()
    session = hitherto.create_session(engine=Scripted(gate), store=store)
    await session.send("Speak")
    await spoken(gate)
    await session.close()
    assert [plain_text(entry) for entry in await stored(store, session.session_id)] == ["Speak", "Well"]


async def test_each_prompt_that_was_sent_has_a_result_also_when_the_session_is_closed(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate), store=store) as session:
        for text in ("First", "Second", "Third"):
            await session.send(text)
        await spoken(gate)
    for said in ("Well", "", ""):
        result = (await heard(session))[-1]
        assert (result.type, result.stop_reason, result.result) == ("result", "cancelled", said)
    assert await heard(session) == []
    assert [plain_text(entry) for entry in await stored(store, session.session_id)] == ["First", "Well"]


async def test_what_is_said_while_the_session_is_closed_is_refused(store: str) -> None:
    session = hitherto.create_session(engine=Scripted(), store=store)
    saying = [asyncio.create_task(say("Hello")) for say in (session.prompt, session.send)]
    await asyncio.sleep(0)
    await session.close()
    for outcome in await asyncio.gather(*saying, return_exceptions=True):
        assert isinstance(outcome, InvalidInput)
    assert await heard(session) == []


async def test_a_caller_that_is_cancelled_ends_the_turn(store: str) -> None:
    gate = Gate()
    async with hitherto.create_session(engine=Scripted(gate), store=store) as session:
        running = asyncio.create_task(session.prompt("Speak"))
        await spoken(gate)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await session.prompt("Go on")).subtype == "success"


async def test_too_many_requests_and_other_ends_are_results(store: str) -> None:
    def stops(reason: Any) -> Any:
        async def script(_: Turn) -> AsyncIterator[Event]:
            yield Message(parts=(Text(text="So far."),))
            yield Stopped(reason=reason)

        return script

    engine = Scripted(stops("max_turn_requests"), stops("max_tokens"), stops("refusal"))
    async with hitherto.create_session(engine=engine, store=store, max_turns=1) as session:
        limited, cut, refused = [await session.prompt("Go") for _ in range(3)]
    assert engine.turns[0].choices.max_requests == 1
    assert (limited.subtype, limited.is_error, limited.result) == ("error_max_turns", True, "So far.")
    assert "max_turns" in limited.errors[0]
    assert (cut.subtype, cut.stop_reason, cut.is_error) == ("success", "max_tokens", False)
    assert (refused.subtype, refused.stop_reason) == ("success", "refusal")


async def test_a_failure_is_a_result_that_says_what_went_wrong(store: str) -> None:
    async def script(_: Turn) -> AsyncIterator[Event]:
        yield Delta(text="Half an ans")
        raise ModelRefused("the key was refused: set another")

    async with hitherto.create_session(engine=Scripted(script), store=store) as session:
        await session.send("Hello")
        _, partial, result = await heard(session)
        assert (await session.prompt("Again")).result == "Noted."
    assert partial.message["content"] == [{"type": "text", "text": "Half an ans"}]
    assert (result.subtype, result.is_error, result.stop_reason) == ("error_during_execution", True, None)
    assert (result.result, result.errors) == (
        "the key was refused: set another", ("the key was refused: set another",),
    )  # fmt: skip
    assert result.error_code == "model_refused"


async def test_without_anything_that_could_answer_the_prompt_raises(store: str) -> None:
    class Nobody(Scripted):
        async def window(self, choices: Any) -> int | None:  # noqa: ARG002 - as the port has it
            raise ModelMissing("set HITHERTO_MODEL")

    async with hitherto.create_session(engine=Nobody(), store=store) as session:
        with pytest.raises(ModelMissing, match="HITHERTO_MODEL"):
            await session.prompt("Hello")
        await session.send("Hello")
        with pytest.raises(ModelMissing, match="HITHERTO_MODEL"):
            await heard(session)
    assert await stored(store, session.session_id) == ()


async def test_time_is_taken_from_a_clock_that_only_goes_forward(store: str) -> None:
    from hitherto.sdk.options import Options
    from hitherto.sdk.resume import StartedSession, create
    from hitherto.sdk.session import SDKSession
    from hitherto.service import Sessions

    options, ticks = Options(engine=Scripted(), store=store), iter((0.0, 1.0, 1.25))

    async def begin(sessions: Sessions) -> StartedSession:
        return await create(sessions, "s-1", options)

    async with SDKSession("s-1", begin, options, clock=lambda: next(ticks)) as session:
        assert (await session.prompt("Hello")).duration_ms == 250


async def test_an_unknown_session_is_not_found_at_its_first_use_and_at_each_later_one(store: str) -> None:
    session = hitherto.resume_session("nobody", engine=Scripted(), store=store)
    for use in (session.prompt("Hello"), session.send("Hello"), session.__aenter__()):
        with pytest.raises(SessionNotFound, match="nobody"):
            await use
    await session.close()
