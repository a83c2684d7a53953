"""`hitherto acp` with a real model layer: the editor's files and terminals are used where it offers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitherto import composition
from hitherto.acp.agent.connection import Offer
from hitherto.engine import Finished
from hitherto.engines.tools.toolset import client_tools
from hitherto.model import ToolCall
from tests.acp.agent.in_process import serving as in_process
from tests.acp.wire import (
    EVERYTHING,
    Agent,
    Json,
    Refusal,
    Talk,
    is_update,
    kinds,
    modelled,
    running,
    texts,
    url_of,
)
from tests.engines.provider import Provider, ToolUse, serving

MODEL = "anthropic:claude-sonnet-5"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as running_provider:
        yield running_provider


@asynccontextmanager
async def program(folder: Path, provider: Provider, **env: str) -> AsyncIterator[Agent]:
    """The program itself, started as an editor starts it."""
    arguments = ("-m", "hitherto", "acp", "--store", url_of(folder), "--model", MODEL)
    async with running(folder, *arguments, env={**provider.environ(), **env}) as agent:
        await agent.initialize()
        yield agent


@asynccontextmanager
async def editor(folder: Path, provider: Provider, capabilities: Json | None = None) -> AsyncIterator[Talk]:
    """The agent of the program, with all its parts, in this process."""
    async with modelled(folder, provider, MODEL) as (reader, writer):
        talk = Talk(writer, reader)
        await talk.initialize(capabilities)
        yield talk


def answered(answer: Json, _: Json) -> Json:
    """The same answer to every question."""
    return answer


def asked_for(agent: Talk) -> list[str]:
    """What the agent has asked the editor for, in order."""
    return [message["method"] for message in agent.seen if "id" in message]


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_how_full_the_context_is_is_told_when_a_session_is_opened_again(
    tmp_path: Path, provider: Provider, method: str
) -> None:
    async with editor(tmp_path, provider) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Hi")
        (then,) = [update for update in agent.updates(session) if update["sessionUpdate"] == "usage_update"]
    async with editor(tmp_path, provider) as agent:
        params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        opened = (await agent.call(method, params)).get("sessionId", session)
        assert "usage_update" not in kinds(agent.updates(opened))
        told = await agent.until(is_update(opened, "usage_update"))
        assert told["params"]["update"] == then


async def test_the_trace_goes_along_to_the_model(tmp_path: Path, provider: Provider) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with editor(tmp_path, provider) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Hi", _meta={"traceparent": trace})
    assert provider.headers[0]["traceparent"] == trace


async def test_the_model_answers_and_another_of_the_setting_once_it_is_chosen(
    tmp_path: Path, provider: Provider
) -> None:
    other = "anthropic:claude-opus-4-5"
    provider.script(["Hello ", "from the model."])
    async with program(tmp_path, provider, HITHERTO_MODELS=other) as agent:
        made = await agent.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        (models,) = [option for option in made["configOptions"] if option["id"] == "model"]
        assert [each["value"] for each in models["options"]] == ["default", other]
        session = made["sessionId"]
        assert (await agent.prompt(session, "Hi"))["stopReason"] == "end_turn"
        assert texts(agent.updates(session)) == "Hello from the model."
        assert "usage_update" in kinds(agent.updates(session))
        chosen = {"sessionId": session, "configId": "model", "value": other}
        await agent.call("session/set_config_option", chosen)
        await agent.prompt(session, "And you?")
    assert f"anthropic:{provider.requests[0]['model']}" == MODEL
    assert f"anthropic:{provider.requests[-1]['model']}" == other


async def test_without_a_model_the_answer_says_what_to_do(tmp_path: Path) -> None:
    async with running(tmp_path, "-m", "hitherto", "acp", "--store", url_of(tmp_path)) as agent:
        await agent.initialize()
        session = await agent.new(tmp_path)
        with pytest.raises(Refusal) as refused:
            await agent.prompt(session, "Hi")
        assert refused.value.error["data"]["code"] == "model_missing"
        assert "HITHERTO_MODEL" in refused.value.error["message"]
        assert await agent.load(session, tmp_path) == []


async def test_unsaved_files_of_the_editor_are_read_and_written_through_it(
    tmp_path: Path, provider: Provider
) -> None:
    (tmp_path / "a.txt").write_text("on the disk")
    path = str(tmp_path / "a.txt")
    provider.script(
        [ToolUse("read_file", {"path": path}, id="r")],
        [ToolUse("write_file", {"path": path, "content": "new text"}, id="w")],
        ["Done."],
    )
    written: list[Json] = []
    async with editor(tmp_path, provider, EVERYTHING) as agent:
        agent.on["fs/read_text_file"] = lambda _: {"content": "not saved yet"}
        agent.on["fs/write_text_file"] = lambda params: written.append(params) or {}  # type: ignore[func-returns-value]
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Change it")
        found = agent.updates(session)
    assert "not saved yet" in str(provider.requests[1]["messages"])
    assert written == [{"sessionId": session, "path": path, "content": "new text"}]
    assert (tmp_path / "a.txt").read_text() == "on the disk"
    (diff,) = [
        block
        for update in found
        if update["sessionUpdate"] == "tool_call_update"
        for block in update.get("content", ())
        if block["type"] == "diff"
    ]
    assert (diff["oldText"], diff["newText"]) == ("not saved yet", "new text")


async def test_an_editor_that_offers_nothing_is_asked_for_nothing(tmp_path: Path, provider: Provider) -> None:
    path = str(tmp_path / "a.txt")
    provider.script([ToolUse("write_file", {"path": path, "content": "new"})], ["Done."])
    async with editor(tmp_path, provider) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Write it")
        assert asked_for(agent) == ["session/request_permission"]
    assert (tmp_path / "a.txt").read_text() == "new"


async def test_what_an_editor_lacks_is_done_here(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "a.txt").write_text("on the disk")
    path = str(tmp_path / "a.txt")
    provider.script(
        [ToolUse("read_file", {"path": path}, id="r")],
        [ToolUse("run_command", {"command": "echo here"}, id="c")],
        ["Done."],
    )
    async with editor(tmp_path, provider, {"fs": {"writeTextFile": True}}) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Look")
        assert asked_for(agent) == ["session/request_permission"]
    assert "on the disk" in str(provider.requests[1]["messages"])
    assert "here" in str(provider.requests[2]["messages"])


async def test_commands_run_in_the_editors_terminal_which_is_given_back(
    tmp_path: Path, provider: Provider
) -> None:
    provider.script([ToolUse("run_command", {"command": "make"})], ["Done."])
    answers: dict[str, Any] = {
        "terminal/create": {"terminalId": "term"},
        "terminal/wait_for_exit": {"exitCode": 3},
        "terminal/output": {"output": "it failed", "truncated": False, "exitStatus": {"exitCode": 3}},
        "terminal/release": {},
    }
    async with editor(tmp_path, provider, EVERYTHING) as agent:
        for method, answer in answers.items():
            agent.on[method] = partial(answered, answer)
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Build it")
        assert asked_for(agent) == [
            "session/request_permission", "terminal/create", "terminal/wait_for_exit", "terminal/output",
            "terminal/release",
        ]  # fmt: skip
        (create,) = [each["params"] for each in agent.seen if each["method"] == "terminal/create"]
        assert (create["cwd"], create["args"]) == (str(tmp_path), ["-c", "make"])
    assert "it failed" in str(provider.requests[1]["messages"])


async def test_a_cancelled_command_is_killed_and_its_terminal_given_back(
    tmp_path: Path, provider: Provider
) -> None:
    provider.script([ToolUse("run_command", {"command": "make"})])
    async with editor(tmp_path, provider, EVERYTHING) as agent:
        agent.on["terminal/create"] = lambda _: {"terminalId": "term"}
        agent.on["terminal/kill"] = agent.on["terminal/release"] = lambda _: {}
        agent.on["terminal/output"] = lambda _: {"output": "", "truncated": False}
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, "Build it")
        await agent.until(lambda message: message.get("method") == "terminal/wait_for_exit")
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        assert asked_for(agent)[-2:] == ["terminal/kill", "terminal/release"]


@pytest.mark.parametrize("answer", [{"content": 5}, {}])
async def test_an_editor_that_answers_nonsense_makes_the_tool_fail_and_the_turn_go_on(
    tmp_path: Path, provider: Provider, answer: Json
) -> None:
    provider.script([ToolUse("read_file", {"path": str(tmp_path / "a.txt")})], ["Well."])
    async with editor(tmp_path, provider, EVERYTHING) as agent:
        agent.on["fs/read_text_file"] = lambda _: answer
        session = await agent.new(tmp_path)
        assert (await agent.prompt(session, "Read it"))["stopReason"] == "end_turn"
        ends = [each for each in agent.updates(session) if each["sessionUpdate"] == "tool_call_update"]
        assert ends[-1]["status"] == "failed"


@pytest.mark.parametrize(("directories", "seen"), [([], False), (["{other}"], True)])
async def test_only_folders_named_this_time_can_be_touched(
    tmp_path: Path, provider: Provider, directories: list[str], seen: bool
) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    (other / "a.txt").write_text("the other folder")
    async with editor(tmp_path, provider) as agent:
        session = await agent.new(work, additionalDirectories=[str(other)])
    provider.script([ToolUse("read_file", {"path": str(other / "a.txt")})], ["Well."])
    async with editor(tmp_path, provider) as agent:
        named = [name.format(other=other) for name in directories]
        await agent.load(session, work, additionalDirectories=named)
        await agent.prompt(session, "Read it")
    assert ("the other folder" in str(provider.requests)) is seen


class Machine:
    """The client's own machine, which offers only what it says."""

    reads_files, writes_files, runs_commands = True, True, False

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def approves(self, _: ToolCall) -> bool:
        return True

    async def read_text(self, path: str) -> str:
        return self.files[path]

    async def write_text(self, path: str, text: str) -> None:
        self.files[path] = text

    async def run(self, *_: Any, **__: Any) -> Finished:
        raise AssertionError("it offers no commands")


async def test_a_client_elsewhere_has_its_own_files_used_and_nothing_of_this_machine_is_touched(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("of this machine")
    path = str(tmp_path / "a.txt")
    machine = Machine({path: "of the client"})
    tools = {tool.name: tool for tool in client_tools((str(tmp_path),), machine)}
    assert set(tools) == {"read_file", "write_file", "edit_file", "update_plan"}
    done = await tools["read_file"].call({"path": "a.txt"}, lambda _: None)
    assert "of the client" in str(done)
    await tools["edit_file"].call({"path": path, "old": "client", "new": "editor"}, lambda _: None)
    assert (machine.files[path], (tmp_path / "a.txt").read_text()) == ("of the editor", "of this machine")
    for outside in ("/etc/passwd", "../b.txt", f"{tmp_path}-beside/c.txt"):
        refused = await tools["read_file"].call({"path": outside}, lambda _: None)
        assert refused.is_error
    assert {tool.name for tool in client_tools((str(tmp_path),), None)} == {"update_plan"}


async def test_an_editor_without_rights_on_this_machine_still_reads_its_own_files(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("of this machine")
    provider.script([ToolUse("read_file", {"path": path}, id="r")], ["Done."])
    for name, value in provider.environ().items():
        monkeypatch.setenv(name, value)
    offers = {"fs": {"readTextFile": True}}
    async with in_process(composition.engine(MODEL), Offer(local=False), offers) as (line, _):
        session = (await line.call("session/new", cwd=str(tmp_path), mcpServers=[]))["sessionId"]
        said = [{"type": "text", "text": "Read it"}]
        prompt = line.begin("session/prompt", sessionId=session, prompt=said)
        at = await line.until(lambda message: message.get("method") == "fs/read_text_file")
        line.say(id=line.seen[at]["id"], result={"content": "of the client"})
        assert (await line.answer(prompt))["stopReason"] == "end_turn"
    offered = {tool["name"] for tool in provider.requests[0]["tools"]}
    assert "read_file" in offered
    assert not offered & {"write_file", "edit_file", "list_files", "search_files", "run_command"}
    assert "of the client" in str(provider.requests[1]["messages"])
    assert "of this machine" not in str(provider.requests[1]["messages"])


async def test_the_instructions_of_a_client_reach_the_model_and_are_kept_until_it_gives_others(
    tmp_path: Path, provider: Provider
) -> None:
    def saying(mode: str, text: str) -> Json:
        return {"mode": mode, "content": [{"type": "text", "text": text}]}

    async with editor(tmp_path, provider) as agent:
        session = await agent.new(tmp_path, systemPrompt=saying("append", "Speak like a pirate."))
        await agent.prompt(session, "Hi")
        for wrong in (
            saying("prepend", "x"),
            saying("append", " "),
            {"mode": "append", "content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
        ):
            with pytest.raises(Refusal) as refused:
                await agent.new(tmp_path, systemPrompt=wrong)
            assert refused.value.code == -32602
        assert len((await agent.call("session/list"))["sessions"]) == 1
    async with editor(tmp_path, provider) as agent:
        await agent.load(session, tmp_path)
        await agent.prompt(session, "And now?")
        await agent.load(session, tmp_path, systemPrompt=saying("override", "Be brief."))
        await agent.prompt(session, "Now?")
    appended, kept, replaced = (
        str(request["system"]) for request in provider.requests if "system" in request
    )
    assert "kept by Hitherto" in appended
    assert "Speak like a pirate." in appended
    assert kept == appended
    assert "Be brief." in replaced
    assert not any(said in replaced for said in ("pirate", "kept by Hitherto"))
