"""A conversation is rebuilt from its stored entries alone, and always into one that providers accept."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from hitherto.engine import Choices
from hitherto.engines.model.connect import connect
from hitherto.engines.model.content import TOO_DEEP
from hitherto.engines.model.messages import BEGINNING, GO_ON, INTERRUPTED, NO_OUTPUT, NOTHING, model_messages
from hitherto.engines.model.request import ModelCall, stream_request
from hitherto.engines.model.settings import for_turn
from hitherto.engines.tools.limits import IMAGE_BYTES
from hitherto.model import (
    ROLES,
    Audio,
    Entry,
    Image,
    Json,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from tests.engines.model.conversation import ANTHROPIC, OPENAI, PIXEL, Talk, both_wires, echo
from tests.engines.provider import Provider, Thinking, ToolUse
from tests.support.paths import ROOT
from tests.support.waits import arrives

PNG = b"\x89PNG\r\n\x1a\n"


def entry(role: Role, *parts: Part | str, **meta: Any) -> Entry:
    told = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Entry(id="e", at=0, role=role, parts=told, meta=meta)


def result(id: str, *content: Part | str, **more: Any) -> Entry:
    told = tuple(Text(text=part) if isinstance(part, str) else part for part in content)
    return entry("tool", ToolResult(id=id, content=told, **more))


def call(id: str, name: str = "read", given: Any = None) -> ToolCall:
    return ToolCall(id=id, name=name, input=given)


def outline(messages: Sequence[ModelMessage]) -> list[Any]:
    """The messages as plain values, without what never changes."""
    return [[_outlined(part) for part in message.parts] for message in messages]


def _outlined(part: Any) -> Any:
    match part:
        case UserPromptPart(content=content):
            return content
        case TextPart(content=content):
            return {"text": content}
        case ThinkingPart():
            return {"thought": part.content, "signature": part.signature}
        case ToolCallPart():
            return {"call": part.tool_call_id, "name": part.tool_name, "input": part.args}
        case ToolReturnPart():
            return {"result": part.tool_call_id, "content": part.content, "ok": part.outcome == "success"}
    raise AssertionError(part)


# The same again


@both_wires
async def test_a_process_that_never_saw_the_session_sends_exactly_the_earlier_messages(
    provider: Provider, name: str
) -> None:
    provider.script(
        [
            Thinking("Let me see.", "signature of this"),
            "I look \ud83d\ude00.",
            ToolUse("echo", {"path": "/ä", "n": 1.0}, "t1"),
            ToolUse("echo", {"deep": {"list": [1, None, True]}}, "t2"),
        ],
        [Thinking("And now?", "signature of that"), ToolUse("echo", "no JSON", "t3")],
        ["Done."],
        ["And this is the second answer."],
    )
    talk = Talk(name, [echo()])
    await talk.prompt("Look at this:", Image(mime_type="image/png", data=PIXEL))
    await talk.prompt("And now?")
    before = list(talk.stored)
    await talk.prompt("Go on.")
    here = provider.requests[-1]

    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tests.engines.model.model_worker", name, "Go on."),
        env={**os.environ, **provider.environ(), "PYTHONPATH": "src"},
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
    )
    await arrives(child.communicate(b"\n".join(before)), "the other process to end")
    assert child.returncode == 0
    there = provider.requests[-1]
    assert there is not here
    assert there == here
    for earlier in provider.requests[:-2]:
        assert there["messages"][: len(earlier["messages"])] == earlier["messages"]


@both_wires
async def test_the_thoughts_of_a_model_go_back_to_its_own_provider_only(
    provider: Provider, name: str
) -> None:
    talk = Talk(name)
    talk.add("user", Text(text="Hi"))
    talk.add(
        "assistant",
        Thought(text="mine", signature="of Anthropic", provider="anthropic"),
        Thought(text="unsigned", provider="anthropic"),
        Thought(text="of another", signature="x", provider="google"),
        Text(text="Hello."),
    )
    await talk.prompt("Go on")
    told = provider.requests[0]["messages"]
    assert ("mine" in str(told), "of Anthropic" in str(told)) == (name == ANTHROPIC,) * 2
    assert "unsigned" not in str(told)
    assert "of another" not in str(told)


@both_wires
async def test_a_thought_that_only_its_provider_can_read_goes_back_to_it_alone(
    provider: Provider, name: str
) -> None:
    talk = Talk(name)
    talk.add("user", Text(text="Hi"))
    hidden = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    talk.add("assistant", Unknown(raw=hidden), Text(text="Hello."))
    await talk.prompt("Go on")
    told = provider.requests[0]["messages"]
    assert ("c2VhbGVk" in str(told)) == (name == ANTHROPIC)
    if name == ANTHROPIC:
        assert told[1]["content"] == [hidden, {"type": "text", "text": "Hello."}]


async def test_what_a_server_like_openai_calls_reasoning_goes_back_to_it(provider: Provider) -> None:
    provider.script([Thinking("Let me see."), ToolUse("echo", {}, "t")])
    await Talk(OPENAI, [echo()]).prompt("Go")
    assert provider.requests[1]["messages"][2]["reasoning_content"] == "Let me see."


@both_wires
async def test_lone_surrogates_are_stored_as_they_are_and_sent_as_question_marks(
    provider: Provider, name: str
) -> None:
    talk = Talk(name)
    talk.add("user", Text(text="half \ud800 a pair"))
    talk.add("assistant", call("t\udfff", "look\ud800", {"\ud800": ["\ud800"]}))
    talk.add("tool", ToolResult(id="t\udfff", content=(Text(text="seen \ud800"),)))
    await talk.prompt("Go on")
    assert rb"\ud800" in talk.stored[0]
    assert "half ? a pair" in str(provider.requests[0]["messages"])
    assert "seen ?" in str(provider.requests[0]["messages"])


# What becomes of what


def test_a_plain_conversation_is_as_it_was_said() -> None:
    history = [
        entry("user", "Hi"),
        entry("assistant", "Reading.", call("a", given={"path": "/x"})),
        result("a", "text of x"),
        entry("assistant", "Done."),
        entry("user", "Thanks", "!"),
    ]
    assert outline(model_messages(history, "anthropic")) == [
        ["Hi"],
        [{"text": "Reading."}, {"call": "a", "name": "read", "input": {"path": "/x"}}],
        [{"result": "a", "content": "text of x", "ok": True}],
        [{"text": "Done."}],
        ["Thanks\n\n!"],
    ]


def test_results_stand_in_the_order_of_the_calls_directly_after_them() -> None:
    history = [
        entry("assistant", call("a"), call("b")),
        entry("user", "meanwhile"),
        result("b", "B"),
        result("a", "A", is_error=True),
        entry("assistant", "Done."),
    ]
    assert outline(model_messages(history, "anthropic"))[2:] == [
        [
            {"result": "a", "content": "A", "ok": False},
            {"result": "b", "content": "B", "ok": True},
            "meanwhile",
        ],
        [{"text": "Done."}],
        [GO_ON],
    ]


def test_a_call_without_a_result_is_told_to_be_interrupted() -> None:
    history = [entry("user", "Hi"), entry("assistant", call("a")), entry("user", "Go on")]
    assert outline(model_messages(history, "anthropic"))[2] == [
        {"result": "a", "content": INTERRUPTED, "ok": False},
        "Go on",
    ]


def test_a_result_without_a_call_is_left_out() -> None:
    history = [
        entry("user", "Hi"),
        result("a", "lost"),
        entry("assistant", "x"),
        result("b", "too"),
        entry("user", "y"),
    ]
    assert outline(model_messages(history, "anthropic")) == [["Hi"], [{"text": "x"}], ["y"]]


def test_repeated_ids_are_told_apart() -> None:
    history = [
        entry("user", "Hi"),
        entry("assistant", call("a", given={"n": 1})),
        entry("user", "crashed"),
        entry("assistant", call("a", given={"n": 2}), call("a", given={"n": 3})),
        result("a", "second"),
        result("a", "third"),
        entry("user", "ok"),
    ]
    found = [part for message in model_messages(history, "anthropic") for part in message.parts]
    calls = {part.tool_call_id: part.args for part in found if isinstance(part, ToolCallPart)}
    answers = {part.tool_call_id: part.content for part in found if isinstance(part, ToolReturnPart)}
    assert calls == {"a": {"n": 1}, "a-2": {"n": 2}, "a-3": {"n": 3}}
    assert answers == {"a": INTERRUPTED, "a-2": "second", "a-3": "third"}


@pytest.mark.parametrize("id", ["", "a b", "call|1", "x" * 41, "ä"])
def test_an_id_that_no_provider_takes_is_replaced_by_the_same_one_each_time(id: str) -> None:
    history = [
        entry("user", "Hi"),
        entry("assistant", call(id, "My Tool!")),
        result(id, "yes"),
        entry("user", "?"),
    ]
    messages = model_messages(history, "anthropic")
    (stream_request,), (run_turn, _) = messages[1].parts, messages[2].parts
    assert isinstance(stream_request, ToolCallPart)
    assert isinstance(run_turn, ToolReturnPart)
    assert stream_request.tool_call_id == run_turn.tool_call_id != id
    assert (stream_request.tool_name, run_turn.content) == ("My_Tool_", "yes")
    assert messages == model_messages(history, "anthropic")


def test_answers_of_one_side_in_a_row_become_one_message() -> None:
    thought = Thought(text="hm", signature="s", provider="anthropic")
    history = [entry("user", "a"), entry("user", "b"), entry("assistant", thought), entry("assistant", "c")]
    assert outline(model_messages(history, "anthropic")) == [
        ["a\n\nb"],
        [{"thought": "hm", "signature": "s"}, {"text": "c"}],
        [GO_ON],
    ]


def test_a_conversation_that_begins_with_the_assistant_gets_a_beginning() -> None:
    assert outline(model_messages([entry("assistant", "Hello"), entry("user", "Hi")], "openai")) == [
        [BEGINNING],
        [{"text": "Hello"}],
        ["Hi"],
    ]


def test_a_message_of_thoughts_alone_is_left_out() -> None:
    thought = Thought(text="hm", signature="s", provider="anthropic")
    history = [entry("user", "a"), entry("assistant", thought), entry("user", "b")]
    assert outline(model_messages(history, "anthropic")) == [["a\n\nb"]]


@pytest.mark.parametrize(("provider", "kept"), [("anthropic", 1), ("openai", 2)])
def test_an_unsigned_thought_goes_back_by_its_id_where_that_is_enough(provider: str, kept: int) -> None:
    thought = Thought(text="hm", provider=provider)
    replay = {"provider": provider, "parts": {"0": {"id": "of the thought"}}}
    _, answer, _ = model_messages(
        [entry("user", "a"), entry("assistant", thought, "b", replay=replay)], provider
    )
    assert len(answer.parts) == kept


def test_what_shows_nothing_is_left_out() -> None:
    history = [
        entry("user"),
        entry("user", "  \n", Plan(steps=({"content": "x"},)), Unknown(raw={"a": 1})),
        entry("assistant", "", synthetic=True),
        entry("system", "overloaded", error=True),
        entry("user", "Hi"),
        entry("assistant", "API Error", synthetic=True),
    ]
    assert outline(model_messages(history, "anthropic")) == [["Hi"]]
    assert outline(model_messages([], "anthropic")) == [[NOTHING]]


def test_summaries_and_notes_are_told_as_what_they_are() -> None:
    history = [
        entry("system", "All was well.", compaction="c1"),
        entry("system", "You are in a hurry."),
        entry("user", "Go on"),
    ]
    assert outline(model_messages(history, "anthropic")) == [
        [
            "<earlier-conversation-summary>\nAll was well.\n</earlier-conversation-summary>\n\n"
            "<note>\nYou are in a hurry.\n</note>\n\nGo on"
        ]
    ]


def test_what_a_model_cannot_look_at_is_described() -> None:
    audio = Audio(mime_type="audio/wav", data="UklGRg==")
    history = [
        entry(
            "user",
            Image(mime_type="image/png", data=PIXEL),
            Image(mime_type="image/png", data="no base64!"),
            Image(mime_type="image/tiff", data=PIXEL),
            Image(mime_type="image/png", uri="https://example.org/a.png"),
            audio,
            Resource(uri='file:///a"b', text="inside"),
            Resource(uri="file:///blob", blob=PIXEL, mime_type="image/png"),
            ResourceLink(uri="file:///c", name="c", description="A file."),
        )
    ]
    ((content,),) = outline(model_messages(history, "anthropic"))
    image, texts, blob, link = content
    assert isinstance(image, BinaryContent)
    assert isinstance(blob, BinaryContent)
    assert texts.split("\n\n") == [
        "[image/png: cannot be read]",
        "[image/tiff, 70 bytes: cannot be shown to this model]",
        "[image: https://example.org/a.png]",
        "[audio/wav, 4 bytes: cannot be shown to this model]",
        '<resource uri="file:///a&quot;b">\ninside\n</resource>',
    ]
    assert link == "[resource: c <file:///c>]\nA file."
    ((heard,),) = outline(model_messages([entry("user", audio)], "google"))
    assert isinstance(heard[0], BinaryContent)


@pytest.mark.parametrize(
    ("kind", "data", "sent"),
    [
        ("image/png", b"not a png", "[image/png, 9 bytes: cannot be read]"),
        ("application/pdf", b"not a pdf", "[application/pdf, 9 bytes: cannot be read]"),
        ("image/png", PNG.ljust(IMAGE_BYTES + 1), "[image/png, 3750001 bytes: too large to be shown]"),
        ("image/png", PNG.ljust(IMAGE_BYTES), BinaryContent(PNG.ljust(IMAGE_BYTES), media_type="image/png")),
        ("image/png", b"GIF89a", BinaryContent(b"GIF89a", media_type="image/gif")),
        ("application/pdf", b"\n%PDF-1.7", BinaryContent(b"\n%PDF-1.7", media_type="application/pdf")),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_only_files_that_are_what_they_are_said_to_be_are_sent(
    kind: str, data: bytes, sent: str | BinaryContent
) -> None:
    image = Image(mime_type=kind, data=base64.b64encode(data).decode())
    history = [entry("user", "Hi"), entry("assistant", call("a")), result("a", image), entry("user", "?")]
    assert outline(model_messages(history, "anthropic"))[2][0]["content"] == sent


@both_wires
async def test_stored_input_that_is_nested_too_deep_is_cut(provider: Provider, name: str) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    talk = Talk(name)
    talk.add("user", Text(text="Hi"))
    talk.add("assistant", call("a", given={"n": 1, "deep": deep}))
    talk.add("tool", ToolResult(id="a", content=(Text(text="done"),)))
    await talk.prompt("Go on")
    (sent,) = provider.requests
    assert TOO_DEEP in str(sent)
    assert str(sent).count("[[[") < 60


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (ToolResult(id="a"), NO_OUTPUT),
        (ToolResult(id="a", output={"n": 1}), '{"n":1}'),
        (ToolResult(id="a", content=(Text(text="x"), Text(text="y"))), "x\n\ny"),
    ],
)
def test_a_result_is_never_empty(given: ToolResult, sent: str) -> None:
    history = [entry("user", "Hi"), entry("assistant", call("a")), entry("tool", given), entry("user", "?")]
    assert outline(model_messages(history, "anthropic"))[2][0]["content"] == sent


# Whatever the entries hold

texts = st.text(st.characters(), max_size=12) | st.sampled_from(["\ud800", "\x00", " ", "\u2028", "a"])
ids = st.sampled_from(["a", "b", "c", "", "x y", "t" * 50]) | texts
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/plain", "nonsense"])
data = st.sampled_from([PIXEL, "", "not base64", "\ud800"])
leaves: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Image, mime_type=kinds, data=st.none() | data, uri=st.none() | texts),
    st.builds(Audio, mime_type=kinds, data=data),
    st.builds(
        Resource, uri=texts, mime_type=st.none() | kinds, text=st.none() | texts, blob=st.none() | data
    ),
    st.builds(ResourceLink, uri=texts, name=st.none() | texts, description=st.none() | texts),
    st.builds(Plan, steps=st.just(({"content": "x"},))),
    st.builds(Unknown, raw=values),
)
parts: st.SearchStrategy[Part] = st.one_of(
    leaves,
    st.builds(
        Thought,
        text=texts,
        signature=st.none() | texts,
        provider=st.sampled_from([None, "anthropic", "openai", "google"]),
    ),
    st.builds(ToolCall, id=ids, name=texts, input=values),
    st.builds(
        ToolResult,
        id=ids,
        content=st.lists(leaves, max_size=3).map(tuple),
        is_error=st.booleans(),
        output=values,
    ),
)
metas: st.SearchStrategy[Json] = st.sampled_from(
    [
        {},
        {"compaction": "c"},
        {"synthetic": True},
        {"replay": {"provider": "openai", "parts": {"0": {"id": "rs_1"}, "1": {"details": {"x": 1}}}}},
        {"replay": "nonsense"},
        {"replay": {"provider": "anthropic", "parts": {"0": {"id": "redacted_thinking"}, "2": 3}}},
    ]
)
histories = st.lists(
    st.builds(
        Entry,
        id=st.just("e"),
        at=st.just(0),
        role=st.sampled_from(ROLES),
        parts=st.lists(parts, max_size=4).map(tuple),
        meta=metas,
    ),
    max_size=8,
)


@settings(max_examples=100)
@given(history=histories, provider=st.sampled_from(["anthropic", "openai", "google", "other"]))
def test_every_call_has_exactly_one_result_directly_after_it(history: list[Entry], provider: str) -> None:
    messages = model_messages(history, provider)
    assert [type(message) for message in messages[::2]] == [ModelRequest] * (len(messages) // 2 + 1)
    assert [type(message) for message in messages[1::2]] == [ModelResponse] * (len(messages) // 2)
    assert len(messages) % 2 == 1, "the user has the first and the last word"
    seen: list[str] = []
    for said, heard in zip([None, *messages[1::2]], messages[::2], strict=True):
        calls = [part.tool_call_id for part in (said.parts if said else ()) if isinstance(part, ToolCallPart)]
        returns = [part.tool_call_id for part in heard.parts if isinstance(part, ToolReturnPart)]
        assert calls == returns
        assert heard.parts
        seen += calls
    assert len(seen) == len(set(seen))
    assert len(seen) == sum(
        isinstance(part, ToolCall)
        for entry in history
        if entry.role == "assistant" and not entry.meta.get("synthetic")
        for part in entry.parts
    )
    assert messages == model_messages(history, provider)


@both_wires
def test_whatever_the_entries_hold_it_can_be_sent(provider: Provider, name: str) -> None:
    with asyncio.Runner() as runner, closing_with(runner, connect(name)) as model:
        asking = for_turn(model, Choices(), "", ())

        @settings(max_examples=100)
        @given(history=histories)
        def sent(history: list[Entry]) -> None:
            runner.run(_sent(asking, history))
            check = _check_anthropic if name == ANTHROPIC else _check_openai
            check(provider.requests.pop()["messages"])

        sent()


@contextmanager
def closing_with(runner: asyncio.Runner, model: Model) -> Iterator[Model]:
    runner.run(model.__aenter__())
    try:
        yield model
    finally:
        runner.run(model.__aexit__(None, None, None))


async def _sent(asking: ModelCall, history: list[Entry]) -> None:
    async with aclosing(stream_request(asking, model_messages(history, asking.model.system))) as events:
        async for _ in events:
            pass


def _check_anthropic(messages: list[Json]) -> None:
    assert [message["role"] for message in messages] == (["user", "assistant"] * len(messages))[
        : len(messages)
    ]
    for said, heard in zip([{"content": []}, *messages[1::2]], messages[::2], strict=True):
        calls = [block["id"] for block in said["content"] if block["type"] == "tool_use"]
        assert calls == [block["tool_use_id"] for block in heard["content"] if block["type"] == "tool_result"]


def _check_openai(messages: list[Json]) -> None:
    assert messages[0]["role"] == "user"
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert waiting == []
