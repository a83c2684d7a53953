"""Turns with a model, over both wires."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from hitherto.engine import Choices, Context, Delta, Message, ToolEnded, ToolProgress
from hitherto.engines.tool_calls import Show, ToolOutput
from hitherto.errors import InvalidInput, LeaseLost
from hitherto.model import Entry, Image, Json, Plan, Text, Thought, ToolCall
from hitherto.permissions import Verdict
from tests.engines.model.conversation import (
    ANTHROPIC,
    OPENAI,
    PIXEL,
    Talk,
    both_wires,
    echo,
    only,
    result_text,
    results,
    stop_reason,
    tool,
)
from tests.engines.provider import PAUSE, Provider, Stop, Thinking, ToolUse, Used
from tests.support.waits import arrives, is_set


def nested(depth: int) -> str:
    """An object with lists in it, so many one in the other."""
    return '{"a": ' + "[" * depth + "1" + "]" * depth + "}"


def shapes(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


@both_wires
async def test_what_a_model_says_comes_as_it_says_it_and_then_whole(provider: Provider, name: str) -> None:
    provider.script([Thinking("Hm. ", "sig"), "Hello ", "there", "."])
    events = await Talk(name).prompt("Hi")
    assert only(Delta, events) == [
        Delta(text="Hm. ", thought=True),
        Delta(text="Hello "),
        Delta(text="there"),
        Delta(text="."),
    ]
    assert shapes(events) == ["Delta"] * 4 + ["Message", "Context", "Stopped"]
    thought, text = only(Message, events)[0].parts
    assert isinstance(thought, Thought)
    assert (thought.text, text) == ("Hm. ", Text(text="Hello there."))
    assert stop_reason(events) == "end_turn"


@both_wires
async def test_the_message_is_told_before_its_tools_run(provider: Provider, name: str) -> None:
    provider.script(["Looking.", ToolUse("look", {"at": "it"}, "t1")])
    talk = Talk(name)
    seen: list[int] = []

    async def look(_: Json, __: Show) -> ToolOutput:
        seen.append(len(only(Message, talk.events)))
        return ToolOutput(
            content=(Text(text="a cat"),), output={"cats": 1}, extra=(Plan(steps=({"content": "pet"},)),)
        )

    talk.tools = [
        tool(
            "look", look, title=lambda given: f"Look at {given['at']}", locations=lambda _: ({"path": "/it"},)
        )
    ]
    events = await talk.prompt("What is there?")
    assert seen == [1]
    assert shapes(events) == [
        "Delta", "Message", "Context", "ToolEnded", "Delta", "Message", "Context", "Stopped",
    ]  # fmt: skip
    call = only(Message, events)[0].parts[1]
    assert call == ToolCall(
        id="t1",
        name="look",
        input={"at": "it"},
        kind="other",
        title="Look at it",
        locations=({"path": "/it"},),
    )
    (ended,) = only(ToolEnded, events)
    assert (ended.result.output, ended.extra) == ({"cats": 1}, (Plan(steps=({"content": "pet"},)),))
    assert "a cat" in str(provider.requests[1]["messages"][-1])
    assert stop_reason(events) == "end_turn"


@both_wires
async def test_tools_of_one_answer_run_side_by_side_and_end_in_any_order(
    provider: Provider, name: str
) -> None:
    provider.script([ToolUse("wait", {"for": "b"}, "a"), ToolUse("wait", {"for": None}, "b")])
    gates = {"b": asyncio.Event()}

    async def wait(given: Json, _: Show) -> ToolOutput:
        if given["for"]:
            await arrives(gates["b"].wait(), "the other tool")
            return ToolOutput(content=(Text(text="second"),))
        gates["b"].set()
        return ToolOutput(content=(Text(text="first"),))

    talk = Talk(name, [tool("wait", wait)])
    events = await talk.prompt("Go")
    assert [(result.id, result_text(result)) for result in results(events)] == [
        ("b", "first"),
        ("a", "second"),
    ]
    sent = str(provider.requests[1]["messages"])
    assert sent.index("second") < sent.index("first"), "results go to the model in the order of its calls"


async def test_progress_of_a_tool_is_told_with_its_newest_text(provider: Provider) -> None:
    provider.script([ToolUse("build", {}, "t")])

    async def build(_: Json, show: Show) -> ToolOutput:
        show("1")
        show("1 2")
        await asyncio.sleep(0)
        return ToolOutput(content=())

    events = await Talk(ANTHROPIC, [tool("build", build)]).prompt("Go")
    assert only(ToolProgress, events) == [ToolProgress(id="t", content=(Text(text="1 2"),))]


@both_wires
async def test_images_are_seen_in_prompts_and_in_results(provider: Provider, name: str) -> None:
    provider.script([ToolUse("draw", {}, "t")])
    image = Image(mime_type="image/png", data=PIXEL)

    async def draw(_: Json, __: Show) -> ToolOutput:
        return ToolOutput(content=(Text(text="drawn"), image))

    await Talk(name, [tool("draw", draw)]).prompt("Like this:", image)
    assert PIXEL in str(provider.requests[0]["messages"])
    assert str(provider.requests[1]["messages"]).count(PIXEL) == 2


@both_wires
async def test_a_tool_that_is_refused_says_why(provider: Provider, name: str) -> None:
    provider.script([ToolUse("echo", {"a": 1}, "t")])
    talk = Talk(name, [echo()])
    talk.verdict = Verdict(allowed=False, reason="not on a Sunday")
    events = await talk.prompt("Go")
    (result,) = results(events)
    assert (result.is_error, result_text(result)) == (True, "not on a Sunday")
    assert talk.stream_request == [
        part for part in only(Message, events)[0].parts if isinstance(part, ToolCall)
    ]
    assert "not on a Sunday" in str(provider.requests[1]["messages"][-1])


async def test_whoever_permits_a_tool_may_change_what_it_is_given(provider: Provider) -> None:
    provider.script([ToolUse("echo", {"a": 1}, "t")])
    talk = Talk(ANTHROPIC, [echo()])
    talk.verdict = Verdict(allowed=True, input={"a": 2})
    (result,) = results(await talk.prompt("Go"))
    assert result_text(result) == "heard {'a': 2}"


async def test_an_error_of_the_service_while_asking_ends_the_turn(provider: Provider) -> None:
    provider.script([ToolUse("echo", {}, "t")])
    talk = Talk(ANTHROPIC, [echo()])
    talk.verdict = LeaseLost()
    with pytest.raises(LeaseLost):
        await talk.prompt("Go")


@both_wires
async def test_a_tool_that_is_not_there_is_an_error_for_the_model(provider: Provider, name: str) -> None:
    provider.script([ToolUse("fly", {}, "t")])
    events = await Talk(name, [echo()]).prompt("Go")
    (result,) = results(events)
    assert result.is_error
    assert result_text(result) == "unknown tool 'fly'; known: echo"
    assert stop_reason(events) == "end_turn"


@both_wires
@pytest.mark.parametrize(
    "given",
    [
        '{"cut": "off',
        "[1, 2]",
        '"text"',
        '{"a": NaN}',
        '{"a": [-Infinity]}',
        '{"a": {"b": 1e999}}',
        nested(50),
    ],
)
async def test_input_that_is_no_object_is_an_error_for_the_model(
    provider: Provider, name: str, given: str
) -> None:
    provider.script([ToolUse("echo", given, "t")])
    talk = Talk(name, [echo()])
    (result,) = results(await talk.prompt("Go"))
    assert result.is_error
    assert "must be a JSON object" in result_text(result)
    assert talk.stream_request == []
    assert len(provider.requests) == 2


@both_wires
@pytest.mark.parametrize("depth", [49, 50, 300, 500, 3_000, 100_000])
async def test_input_nested_however_deep_leaves_a_session_that_every_provider_takes(
    provider: Provider, name: str, depth: int
) -> None:
    provider.script([ToolUse("echo", nested(depth), "t")])
    talk = Talk(name, [echo()])
    (result,) = results(await talk.prompt("Go"))
    assert result.is_error == (depth >= 50)
    for other in (ANTHROPIC, OPENAI):
        talk.name = other
        assert stop_reason(await talk.prompt("Again")) == "end_turn"


async def test_a_model_that_pauses_is_asked_to_go_on(provider: Provider) -> None:
    provider.script(["Let me ", Stop("pause_turn")], ["see."])
    talk = Talk(ANTHROPIC)
    events = await talk.prompt("Go")
    assert [message.parts for message in only(Message, events)] == [
        (Text(text="Let me "),),
        (Text(text="see."),),
    ]
    assert stop_reason(events) == "end_turn"
    assert [message["role"] for message in provider.requests[1]["messages"]] == ["user", "assistant", "user"]
    await talk.prompt("And?")
    assert [message["role"] for message in provider.requests[2]["messages"]] == ["user", "assistant", "user"]


async def test_a_tool_that_raises_fails_alone(provider: Provider) -> None:
    provider.script([ToolUse("broken", {}, "a"), ToolUse("echo", {}, "b")])

    async def broken(_: Json, __: Show) -> ToolOutput:
        raise KeyError("x")

    events = await Talk(ANTHROPIC, [tool("broken", broken), echo()]).prompt("Go")
    found = {result.id: (result.is_error, result_text(result)) for result in results(events)}
    assert found == {"a": (True, "the tool failed: KeyError: 'x'"), "b": (False, "heard {}")}


@both_wires
async def test_calls_with_the_same_id_each_get_their_own(provider: Provider, name: str) -> None:
    provider.script([ToolUse("echo", {"n": 1}, "same"), ToolUse("echo", {"n": 2}, "same")])
    events = await Talk(name, [echo()]).prompt("Go")
    assert {result.id: result_text(result) for result in results(events)} == {
        "same": "heard {'n': 1}",
        "same-2": "heard {'n': 2}",
    }


@both_wires
@pytest.mark.parametrize(("given", "reason"), [("max_tokens", "max_tokens"), ("refusal", "refusal")])
async def test_why_a_model_stopped_is_told(provider: Provider, name: str, given: str, reason: str) -> None:
    provider.script(["So far", Stop(given)])
    assert stop_reason(await Talk(name).prompt("Go")) == reason


@both_wires
async def test_a_call_in_an_answer_that_was_cut_off_does_not_run(provider: Provider, name: str) -> None:
    provider.script([ToolUse("echo", '{"half', "t"), Stop("max_tokens")])
    talk = Talk(name, [echo()])
    events = await talk.prompt("Go")
    (result,) = results(events)
    assert result_text(result).startswith("not run")
    assert (stop_reason(events), len(provider.requests)) == ("max_tokens", 1)


async def test_a_turn_asks_no_more_often_than_it_may(provider: Provider) -> None:
    provider.otherwise = [ToolUse("echo", {}, "t")]
    talk = Talk(ANTHROPIC, [echo()], Choices(max_requests=3))
    events = await talk.prompt("Go")
    assert (stop_reason(events), len(provider.requests)) == ("max_turn_requests", 3)
    assert len(results(events)) == 3, "each call has its result"


@both_wires
async def test_usage_and_cost_are_the_providers_numbers(provider: Provider, name: str) -> None:
    provider.script(["Yes.", Used(1_000, 200, cache_read=600)])
    events = await Talk(name).prompt("Go")
    usage = only(Message, events)[0].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read) == (1_000, 200, 600)
    dollars = {ANTHROPIC: 400 * 2 + 600 * 0.2 + 200 * 10, OPENAI: 400 * 1.25 + 600 * 0.125 + 200 * 10}
    assert usage.cost == pytest.approx(dollars[name] / 1_000_000)
    assert only(Context, events) == [Context(used=1_200, size=None)]


@both_wires
async def test_usage_that_nobody_told_is_unknown(provider: Provider, name: str) -> None:
    provider.script(["Yes.", Used(None)])
    events = await Talk(name).prompt("Go")
    usage = only(Message, events)[0].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.cost) == (None, None, None, None)
    assert only(Context, events) == []


async def test_the_cost_of_a_model_without_a_price_is_unknown(provider: Provider) -> None:
    provider.script(["Yes.", Used(1_000, 200)])
    usage = only(Message, await Talk("openai-chat:my-own-model").prompt("Go"))[0].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cost) == (1_000, 200, None)


@both_wires
async def test_the_callers_trace_goes_to_the_provider(provider: Provider, name: str) -> None:
    trace = {"traceparent": "00-1-2-01", "tracestate": "a=b", "baggage": "bad\r\nx: y", "other": "z"}
    await Talk(name, choices=Choices(trace=trace)).prompt("Go")
    (headers,) = provider.headers
    assert (headers["traceparent"], headers["tracestate"]) == ("00-1-2-01", "a=b")
    assert {"baggage", "other", "x"}.isdisjoint(headers)


@both_wires
async def test_how_much_a_model_thinks_is_the_callers_choice(provider: Provider, name: str) -> None:
    await Talk(name, choices=Choices(thinking="low")).prompt("Go")
    field, value = ("output_config", {"effort": "low"}) if name == ANTHROPIC else ("reasoning_effort", "low")
    assert provider.requests[0][field] == value
    with pytest.raises(InvalidInput, match="thinking must be one of off, on"):
        await Talk(name, choices=Choices(thinking="a lot")).prompt("Go")


@both_wires
async def test_cancelling_ends_the_stream_at_once(provider: Provider, name: str) -> None:
    provider.script(["Once upon", PAUSE, " a time"])
    talk = Talk(name)
    turn = asyncio.create_task(talk.prompt("Go"))
    await arrives(talk.saying.wait(), "the first words")
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(turn, "the end of the turn")
    assert only(Delta, talk.events) == [Delta(text="Once upon")]
    await asyncio.to_thread(is_set, provider.left, "the connection to close")
    assert provider.closed == [0]


async def test_cancelling_ends_all_tools_before_the_turn_is_over(provider: Provider) -> None:
    provider.script([ToolUse("hang", {}, "a"), ToolUse("hang", {}, "b")])
    hanging, ended = asyncio.Semaphore(0), 0

    async def hang(_: Json, __: Show) -> ToolOutput:
        nonlocal ended
        hanging.release()
        try:
            await asyncio.Event().wait()
        finally:
            for _step in range(1_000):  # it has much to clean up
                await asyncio.sleep(0)
            ended += 1
        return ToolOutput(content=())

    turn = asyncio.create_task(Talk(ANTHROPIC, [tool("hang", hang)]).prompt("Go"))
    for _ in range(2):
        await arrives(hanging.acquire(), "the tools to hang")
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arrives(turn, "the end of the turn")
    assert ended == 2


async def test_cancelling_again_and_again_still_ends_all_tools_first(provider: Provider) -> None:
    provider.script([ToolUse("hang", {}, "a"), ToolUse("hang", {}, "b")])
    hanging, ended = asyncio.Semaphore(0), 0

    async def hang(_: Json, __: Show) -> ToolOutput:
        nonlocal ended
        hanging.release()
        try:
            await asyncio.Event().wait()
        finally:
            for _step in range(1_000):
                await asyncio.sleep(0)
            ended += 1
        return ToolOutput(content=())

    turn = asyncio.create_task(Talk(ANTHROPIC, [tool("hang", hang)]).prompt("Go"))
    for _ in range(2):
        await arrives(hanging.acquire(), "the tools to hang")
    for _ in range(10):
        turn.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await arrives(turn, "the end of the turn")
    assert ended == 2


async def test_a_history_is_made_ready_beside_the_loop(provider: Provider) -> None:
    threads: set[int] = set()

    class Watched(dict[str, Any]):
        def get(self, name: str, otherwise: Any = None) -> Any:
            threads.add(threading.get_ident())
            return super().get(name, otherwise)

    talk = Talk(ANTHROPIC)
    said = Entry(id="1", at=0, role="assistant", parts=(Text(text="Hello"),), meta=Watched())
    await talk.run((said, Entry(id="2", at=0, role="user", parts=(Text(text="Go"),))))
    assert len(provider.requests) == 1
    assert threads
    assert threading.get_ident() not in threads
