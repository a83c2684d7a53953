"""`can_use_tool`: whatever way it answers, the answer is understood."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import claude_agent_sdk
import pytest

import hitherto
from hitherto.engine import Event, Message, ToolEnded, Turn
from hitherto.errors import InvalidInput
from hitherto.model import Text, ToolCall, ToolResult
from hitherto.permissions import Verdict
from hitherto.sdk.permission import REFUSED, ToolPermissionContext, parse_answer
from tests.support.scripted_engine import Scripted


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        (True, "allow_once"),
        (False, "reject_once"),
        ("allow", "allow_once"),
        ("deny", "reject_once"),
        ("allow_always", "allow_always"),
        ("reject_always", "reject_always"),
        (Verdict(allowed=True), Verdict(allowed=True)),
        ({"behavior": "allow"}, Verdict(allowed=True)),
        ({"behavior": "allow", "updated_input": {"a": 1}}, Verdict(allowed=True, input={"a": 1})),
        ({"behavior": "allow", "updatedInput": {}}, Verdict(allowed=True, input={})),
        ({"behavior": "deny", "message": "not there"}, Verdict(allowed=False, reason="not there")),
        ({"behavior": "deny"}, Verdict(allowed=False, reason=REFUSED)),
        (SimpleNamespace(behavior="deny", message="no"), Verdict(allowed=False, reason="no")),
        (
            claude_agent_sdk.PermissionResultAllow(updated_input={"b": 2}),
            Verdict(allowed=True, input={"b": 2}),
        ),
        (claude_agent_sdk.PermissionResultDeny(message="never"), Verdict(allowed=False, reason="never")),
    ],
)
def test_every_form_of_answer_is_understood(answer: object, meant: object) -> None:
    assert parse_answer(answer) == meant


@pytest.mark.parametrize("answer", [None, 1, "yes", {}, {"behavior": "perhaps"}, object()])
def test_any_other_answer_is_an_error(answer: object) -> None:
    with pytest.raises(InvalidInput, match="allow or deny"):
        parse_answer(answer)


@pytest.mark.parametrize("given", ["text", 3, ["path"], {"path": object()}])
def test_another_input_that_is_no_mapping_of_json_is_an_error(given: object) -> None:
    for answer in ({"behavior": "allow", "updated_input": given}, Verdict(allowed=True, input=given)):
        with pytest.raises(InvalidInput, match="input"):
            parse_answer(answer)


def writing(*ids: str) -> Scripted:
    """An engine that wants to write a file, once in each turn, and says what came of it."""

    async def script(turn: Turn) -> AsyncIterator[Event]:
        call = ToolCall(
            id=ids_left.pop(0), name="write_file", kind="edit", input={"path": "/a"}, title="Write /a"
        )
        yield Message(parts=(call,))
        verdict = await turn.permit(call)
        told = f"wrote {verdict.input or call.input}" if verdict.allowed else verdict.reason
        content = (Text(text=told),)
        yield ToolEnded(result=ToolResult(id=call.id, content=content, is_error=not verdict.allowed))
        yield Message(parts=(Text(text=told),))

    ids_left = list(ids)
    return Scripted(*[script] * len(ids))


async def test_the_function_is_told_what_is_asked_and_may_be_async() -> None:
    heard: list[tuple[str, Any, ToolPermissionContext]] = []

    async def can_use_tool(name: str, given: Any, context: ToolPermissionContext) -> Any:
        heard.append((name, given, context))
        return {"behavior": "allow", "updated_input": {"path": "/b"}}

    session = hitherto.create_session(engine=writing("c1"), can_use_tool=can_use_tool, store="memory:")
    async with session:
        result = await session.prompt("Write it")
    assert result.result == "wrote {'path': '/b'}"
    ((name, given, context),) = heard
    assert (name, given) == ("write_file", {"path": "/a"})
    assert context == ToolPermissionContext(
        session_id=session.session_id, tool_use_id="c1", kind="edit", title="Write /a"
    )


async def test_a_plain_function_that_refuses_is_heard() -> None:
    options = {"canUseTool": lambda *_: False, "store": "memory:", "engine": writing("c1")}
    result = await hitherto.prompt("Write it", options)
    assert result.result == REFUSED


@pytest.mark.parametrize(
    "answer",
    [
        claude_agent_sdk.PermissionResultDeny(message="Stop.", interrupt=True),
        {"behavior": "deny", "message": "Stop.", "interrupt": True},
    ],
)
async def test_an_answer_that_denies_may_interrupt_the_turn(answer: Any) -> None:
    options = {"can_use_tool": lambda *_: answer, "store": "memory:", "engine": writing("c1", "c2")}
    async with hitherto.create_session(options) as session:
        result = await session.prompt("Write it")
        assert (result.is_error, result.subtype) == (True, "error_during_execution")
        assert "interrupted" in str(result)
    allowed = {
        **options,
        "can_use_tool": lambda *_: {"behavior": "allow", "interrupt": True},
        "engine": writing("c3"),
    }
    assert (await hitherto.prompt("Write it", allowed)).result.startswith("wrote")


async def test_an_answer_for_always_is_not_asked_for_again() -> None:
    asked: list[str] = []

    def can_use_tool(_: str, __: Any, context: ToolPermissionContext) -> str:
        asked.append(context.tool_use_id)
        return "allow_always"

    options = {"can_use_tool": can_use_tool, "store": "memory:", "engine": writing("c1", "c2")}
    async with hitherto.create_session(options) as session:
        for _ in range(2):
            assert (await session.prompt("Write it")).result.startswith("wrote")
    assert asked == ["c1"]


async def test_without_a_function_what_would_be_asked_is_refused_unless_the_mode_allows_it() -> None:
    refused = await hitherto.prompt("Write it", engine=writing("c1"), store="memory:")
    assert "there is nobody to ask" in refused.result
    mode = {"permissionMode": "acceptEdits"}
    allowed = await hitherto.prompt("Write it", mode, engine=writing("c1"), store="memory:")
    assert allowed.result == "wrote {'path': '/a'}"


async def test_what_the_function_raises_comes_out_of_the_prompt_and_the_session_goes_on() -> None:
    def can_use_tool(*_: Any) -> bool:
        raise ZeroDivisionError("in the caller's function")

    options = {"can_use_tool": can_use_tool, "store": "memory:", "engine": writing("c1")}
    async with hitherto.create_session(options) as session:
        with pytest.raises(ZeroDivisionError, match="in the caller's function"):
            await session.prompt("Write it")
        assert (await session.prompt("And now?")).result == "Noted."


async def test_what_the_function_raises_comes_out_of_the_stream() -> None:
    options = {"can_use_tool": lambda *_: "perhaps", "store": "memory:", "engine": writing("c1")}
    async with hitherto.create_session(options) as session:
        await session.send("Write it")
        with pytest.raises(InvalidInput, match="allow or deny"):
            async for _ in session.stream():
                pass
