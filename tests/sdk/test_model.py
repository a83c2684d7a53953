"""The session API with a real model layer, against a provider on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.claude.paths import config_home
from hitherto.engines.mcp import servers
from hitherto.errors import ModelMissing
from tests.claude.transcripts import Writer, session_id
from tests.engines.provider import PAUSE, Json, Provider, Thinking, ToolUse, Used
from tests.support.paths import ROOT
from tests.support.waits import LIMIT, NEVER

MODELS = ("claude-opus-4-5", "gpt-5")
TALK = """
import asyncio, json, sys
import hitherto

async def main(given, store, model, folder, *prompts):
    options = {"model": model, "store": store, "cwd": folder, "title": "Counting"}
    session = hitherto.resume_session(given, options) if given else hitherto.create_session(options)
    async with session:
        for prompt in prompts:
            result = await session.prompt(prompt)
            assert not result.is_error, result
    print(session.session_id)

asyncio.run(main(*sys.argv[1:]))
"""


def talked(store: str, model: str, folder: Path, *prompts: str, given: str = "") -> str:
    """What one program says in a session, from its start to its end; the session's id."""
    program = (sys.executable, "-W", "error", "-c", TALK, given, store, model, str(folder), *prompts)
    done = subprocess.run(
        program, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def messages(body: Json) -> list[Any]:
    """The messages of a request, without the marks of what to cache."""
    text = json.dumps(body["messages"])
    told: list[Any] = json.loads(text, object_hook=_without_marks)
    return told


def _without_marks(value: Json) -> Json:
    return {name: item for name, item in value.items() if name != "cache_control"}


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_that_goes_on_in_another_process_sends_exactly_the_earlier_messages(
    provider: Provider, store: str, tmp_path: Path, model: str
) -> None:
    (tmp_path / "note.txt").write_text("The number is 7.")
    provider.script(
        [
            Thinking("I should look."),
            "Let me look.",
            ToolUse("read_file", {"path": str(tmp_path / "note.txt")}),
        ],
        ["It is 7."],
        ["As I said."],
        ["For the third time: 7."],
    )
    first = talked(store, model, tmp_path, "Which number?", "Again?")
    assert talked(store, model, tmp_path, "And again?", given=first) == first
    *earlier, before, after = [messages(body) for body in provider.requests]
    assert len(earlier) == 2
    assert after[: len(before)] == before
    assert [each["role"] for each in after[len(before) :]] == ["assistant", "user"]
    assert "The number is 7." in json.dumps(after)
    assert "As I said." in json.dumps(after[-2])
    assert "And again?" in json.dumps(after[-1])


@pytest.mark.parametrize("model", MODELS)
async def test_usage_and_cost_are_the_providers_numbers(provider: Provider, store: str, model: str) -> None:
    provider.script(["Hello ", "there.", Used(input=100, output=20, cache_read=40)])
    result = await hitherto.unstable_v2_prompt("Hi", {"model": model, "store": store})
    assert (result.subtype, result.result, result.num_turns) == ("success", "Hello there.", 1)
    assert (result.usage["input_tokens"], result.usage["output_tokens"]) == (60, 20)
    assert result.usage["cache_read_input_tokens"] == 40
    assert result.total_cost_usd is not None
    assert 0 < result.total_cost_usd < 0.01
    assert len(provider.requests) == 1


async def test_a_refused_key_is_a_result_and_says_so(
    provider: Provider, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "wrong")
    result = await hitherto.prompt("Hi", model=MODELS[0], store=store)
    assert (result.subtype, result.is_error, result.error_code) == (
        "error_during_execution", True, "model_refused",
    )  # fmt: skip
    assert "key" in result.result
    assert result.errors == (result.result,)
    assert len(provider.requests) == 1


async def test_a_model_that_nobody_knows_or_that_lacks_its_key_raises(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelMissing, match="ANTHROPIC_API_KEY"):
        await hitherto.prompt("Hi", model=MODELS[0], store=store)
    with pytest.raises(ModelMissing, match="provider:name"):
        await hitherto.prompt("Hi", model="some-model", store=store)
    with pytest.raises(ModelMissing, match="HITHERTO_MODEL"):
        async for _ in hitherto.query("Hi", store=store):
            pass


async def test_max_turns_bounds_what_a_prompt_asks_of_the_model(
    provider: Provider, store: str, tmp_path: Path
) -> None:
    provider.otherwise = ["Once more. ", ToolUse("list_files", {"path": str(tmp_path)})]
    options = {"model": MODELS[0], "store": store, "cwd": tmp_path, "maxTurns": 3}
    result = await hitherto.prompt("List for ever", options)
    assert (result.subtype, result.is_error, result.num_turns) == ("error_max_turns", True, 3)
    assert len(provider.requests) == 3


async def test_an_interrupt_hangs_up_and_keeps_what_was_said(provider: Provider, store: str) -> None:
    provider.script(["Half an ans", PAUSE, "wer"])
    options = {"model": MODELS[0], "store": store, "title": "Halves", "includePartialMessages": True}
    async with hitherto.create_session(options) as session:
        await session.send("Speak")
        async for message in session.stream():
            if message.type == "stream_event":
                assert await session.interrupt()
        assert isinstance(message, hitherto.SDKResultMessage)
        assert (message.stop_reason, message.result) == ("cancelled", "Half an ans")
        assert await asyncio.to_thread(provider.left.wait, 60)
        assert (await session.prompt("Go on")).result == "Noted."


async def test_a_tool_waits_for_the_callers_word_and_runs_in_the_folder(
    provider: Provider, store: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "README.md")
    provider.script([ToolUse("write_file", {"path": path, "content": "# Mine"})], ["Written."])
    asked: list[str] = []

    async def can_use_tool(name: str, _: Any, context: hitherto.ToolPermissionContext) -> bool:
        asked.append(f"{name} {context.kind}")
        return True

    options = {"model": MODELS[0], "store": store, "cwd": str(tmp_path), "canUseTool": can_use_tool}
    result = await hitherto.prompt("Add a README.", options)
    assert (result.result, asked) == ("Written.", ["write_file edit"])
    assert await asyncio.to_thread((tmp_path / "README.md").read_text) == "# Mine"


async def test_system_prompts_and_the_tools_of_servers_reach_the_model(
    provider: Provider, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "START_SECONDS", NEVER)
    provider.script([ToolUse("mcp__everything__echo", {"text": "hello"})], ["It said hello."])
    server = {"command": sys.executable, "args": ["-m", "tests.engines.mcp.sdk_server", "stdio"]}
    async with hitherto.create_session(
        {
            "model": MODELS[0],
            "store": store,
            "cwd": ROOT,
            "title": "Servers",
            "permissionMode": "bypassPermissions",
            "systemPrompt": "You are an echo.",
            "appendSystemPrompt": "Be loud.",
            "mcpServers": {"everything": server},
        }
    ) as session:
        await session.send("Say hello")
        messages: list[Any] = [message async for message in session.stream()]
    assert messages[0].mcp_servers == ({"name": "everything", "type": "stdio"},)
    assert "read_file" in messages[0].tools
    assert messages[-1].result == "It said hello."
    (result,) = [message for message in messages if message.type == "user"]
    assert result.message["content"][0]["content"] == [{"type": "text", "text": "hello"}]
    told = json.dumps(provider.requests[0]["system"])
    assert "You are an echo." in told
    assert "Be loud." in told


async def test_a_server_that_fails_is_told_of_in_the_turn_that_goes_without_it(
    provider: Provider, store: str
) -> None:
    servers = {"broken": {"command": "/no/such/program"}}
    told = hitherto.query("Hello", model=MODELS[0], store=store, mcp_servers=servers)
    messages: list[Any] = [message async for message in told]
    assert [message.get("subtype") or message.type for message in messages] == [
        "init", "notice", "assistant", "success",
    ]  # fmt: skip
    assert "broken" in messages[1].text
    result = await hitherto.prompt("Hello", model=MODELS[0], store=store, mcp_servers=servers)
    assert "broken" in result.notices[0]
    assert len(provider.requests) == 2


async def test_an_image_that_the_model_is_not_shown_is_told_of(provider: Provider, store: str) -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = await hitherto.prompt(["See:", image], model=MODELS[0], store=store)
    (notice,) = result.notices
    assert "does not see an image" in notice
    assert "[image: https://example.org/a.png]" in json.dumps(provider.requests[0]["messages"])


async def test_a_transcript_of_claude_code_reaches_the_model_whole(provider: Provider, store: str) -> None:
    made = Writer(session_id(1))
    made.user("What is the number?")
    _, call = made.call("Read", {"file_path": "/home/ann/project/a.txt"})
    made.result(call, "forty-two")
    made.say("It is 42.")
    await asyncio.to_thread(made.save, config_home() / "projects")
    for prompt in ("Again?", "And again?"):
        async with hitherto.resume_session(session_id(1), model=MODELS[0], store=store) as session:
            assert (await session.prompt(prompt)).subtype == "success"
    first, second = [messages(body) for body in provider.requests]
    assert [each["role"] for each in first] == ["user", "assistant", "user", "assistant", "user"]
    told = json.dumps(first)
    for said in ("What is the number?", "forty-two", "It is 42.", "Again?"):
        assert said in told
    assert second[: len(first)] == first
    assert [each["role"] for each in second[len(first) :]] == ["assistant", "user"]
