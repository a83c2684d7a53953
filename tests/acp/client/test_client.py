"""Our client with real agents: our own, and one that is made with the protocol's own Python package."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import psutil
import pytest

import hitherto
from hitherto.acp.client import AgentLeft, AgentRefused, Client, Ended, OpenedSession, Update, process
from hitherto.acp.client.callbacks import Abilities, Command, Exit, Output, Question, ReadFile, WriteFile
from hitherto.engine import HttpServer, SseServer
from hitherto.errors import EngineError, InvalidInput, SessionNotFound
from hitherto.model import LOCAL, Json
from tests.acp.scripted_agent import engine
from tests.acp.wire import beside, environment, modelled, url_of
from tests.engines.provider import PAUSE, Provider, ToolUse, serving
from tests.support.paths import ROOT
from tests.support.waits import arrives, is_set

MODEL = "anthropic:claude-sonnet-5"
NOTHING = Abilities()


@asynccontextmanager
async def hitherto_agent(
    folder: Path, abilities: Abilities = NOTHING
) -> AsyncIterator[tuple[Client, Provider]]:
    """The agent of `hitherto acp` with a model on the loopback interface."""
    with serving() as provider:
        async with (
            modelled(folder, provider, MODEL) as streams,
            Client.over(*streams, abilities=abilities) as client,
        ):
            yield client, provider


@asynccontextmanager
async def scripted_agent(folder: Path, abilities: Abilities = NOTHING) -> AsyncIterator[Client]:
    async with beside(folder, engine) as streams, Client.over(*streams, abilities=abilities) as client:
        yield client


@asynccontextmanager
async def sdk_agent(folder: Path, abilities: Abilities = NOTHING) -> AsyncIterator[Client]:
    """A program of its own, started by the client."""
    command = (sys.executable, ["-m", "tests.acp.sdk_agent"])
    async with Client.start(*command, env=environment(folder), cwd=str(ROOT), abilities=abilities) as client:
        yield client


async def turn(client: Client, session_id: str, said: str) -> tuple[str, str]:
    """What the agent says to this, and how it ends."""
    heard, reason = "", ""
    async for step in client.prompt(session_id, said):
        if isinstance(step, Ended):
            reason = step.stop_reason
        elif step.kind == "agent_message_chunk":
            heard += step.text
    return heard.strip(), reason


async def replayed(client: Client, session_id: str, cwd: Path) -> list[tuple[str, str]]:
    heard: list[Update] = []
    await client.load_session(session_id, str(cwd), hear=heard.append)
    return [(update.kind, update.text.strip()) for update in heard if update.text]


# Any agent


async def test_a_turn_tells_what_happens_and_then_how_it_ended(tmp_path: Path) -> None:
    async with hitherto_agent(tmp_path) as (client, provider):
        provider.script(["Hel", "lo."])
        session = await client.new_session(str(tmp_path))
        steps = [step async for step in client.prompt(session.session_id, "Hi")]
        assert "".join(step.text for step in steps if isinstance(step, Update)) == "Hello."
        assert [isinstance(step, Ended) for step in steps[-2:]] == [False, True]
        assert isinstance(steps[-1], Ended)
        assert steps[-1].stop_reason == "end_turn"
        assert steps[-1].usage["outputTokens"] == 5
        assert client.agent.name == "hitherto"


async def test_the_whole_life_of_a_session(tmp_path: Path) -> None:
    async with hitherto_agent(tmp_path) as (client, _):
        made = await client.new_session(str(tmp_path), additional_directories=["/other"])
        await turn(client, made.session_id, "Paint the barn")
        assert await client.set_title(made.session_id, "  The barn ") == "The barn"
        assert await client.status(made.session_id) == "open"
        await client.close_session(made.session_id)
        assert await client.status(made.session_id) == "saved"
        forked = await client.fork_session(made.session_id, str(tmp_path))
        assert await replayed(client, forked.session_id, tmp_path) == await replayed(
            client, made.session_id, tmp_path
        )
        await client.archive_session(made.session_id)
        assert [row.session_id async for row in client.list_sessions()] == [forked.session_id]
        (row,) = [row async for row in client.list_sessions(archived="only")]
        assert (row.title, row.archived, row.cwd) == ("The barn", True, str(tmp_path))
        assert row.additional_directories == ()  # those that were named last
        assert row.meta["messageCount"] == 2
        await client.unarchive_session(made.session_id)
        await client.delete_session(made.session_id)
        assert [row.session_id async for row in client.list_sessions()] == [forked.session_id]


async def test_modes_and_options_are_those_that_the_session_came_with(tmp_path: Path) -> None:
    async with scripted_agent(tmp_path) as client:
        session = await client.new_session(str(tmp_path))
        await client.set_mode(session.session_id, "plan")
        options = await client.set_config_option(session.session_id, "thinking", "high")
        assert {option["id"]: option["currentValue"] for option in options} == {
            "model": "default", "mode": "plan", "thinking": "high",
        }  # fmt: skip
        with pytest.raises(InvalidInput, match="is not one of this session's modes: default"):
            await client.set_mode(session.session_id, "sleep")
        with pytest.raises(InvalidInput, match="is not one of this session's options: model"):
            await client.set_config_option(session.session_id, "colour", "blue")
        with pytest.raises(InvalidInput, match="open it first"):
            await client.set_mode("another", "plan")
        resumed = await client.resume_session(session.session_id, str(tmp_path))
        assert resumed.mode == "plan"


async def test_a_list_is_walked_page_by_page_to_its_end(tmp_path: Path) -> None:
    async with scripted_agent(tmp_path) as client:
        async with hitherto.open(url_of(tmp_path)) as sessions:
            made = [(await sessions.create(LOCAL, cwd=f"/p{number % 2}")).id for number in range(120)]
        first = await client.list_page()
        assert len(first.sessions) == 50
        assert first.next_cursor is not None
        assert sorted([row.session_id async for row in client.list_sessions()]) == sorted(made)
        assert sorted([row.session_id async for row in client.list_sessions(cwd="/p1")]) == sorted(made[1::2])
        assert [row async for row in client.list_sessions(cwd="/nowhere")] == []
        with pytest.raises(AgentRefused) as refused:
            await client.list_page(cursor=first.next_cursor, cwd="/p1")
        assert refused.value.number == -32602


async def test_a_load_has_told_everything_when_it_returns_and_a_replay_ends_with_the_session(
    tmp_path: Path,
) -> None:
    async with scripted_agent(tmp_path) as client:
        session = await client.new_session(str(tmp_path))
        for number in range(40):
            await turn(client, session.session_id, json.dumps([f"Answer {number}."]))
    async with scripted_agent(tmp_path) as client:
        told = await replayed(client, session.session_id, tmp_path)
        assert [text for kind, text in told if kind == "agent_message_chunk"] == [
            f"Answer {number}." for number in range(40)
        ]
        steps = [step async for step in client.replay_session(session.session_id, str(tmp_path))]
        assert isinstance(steps[-1], OpenedSession)
        assert [step.text for step in steps[:-1] if isinstance(step, Update) and step.text] == [
            text for _, text in told
        ]


async def test_what_the_agent_does_not_know_or_refuses_is_an_error_of_its_own(tmp_path: Path) -> None:
    async with scripted_agent(tmp_path) as client:
        for call in (client.load_session, client.resume_session, client.fork_session):
            with pytest.raises(SessionNotFound):
                await call("nonesuch", str(tmp_path))
        await client.close_session("nonesuch")
        await client.delete_session("nonesuch")
        session = await client.new_session(str(tmp_path))
        with pytest.raises(AgentRefused) as refused:
            await client.resume_session(session.session_id, "/elsewhere")
        assert refused.value.number == -32602
        assert refused.value.data["cwd"] == str(tmp_path)


async def test_methods_and_notifications_of_the_agents_own_are_reached_by_name(tmp_path: Path) -> None:
    told: asyncio.Queue[Json] = asyncio.Queue()
    abilities = Abilities(notified={"_hitherto/session/list/changes": told.put_nowait})
    async with scripted_agent(tmp_path, abilities) as client:
        await client.request("_hitherto/session/list/subscribe", {})
        session = await client.new_session(str(tmp_path))
        await client.set_title(session.session_id, "Named")
        change = await arrives(told.get(), "the change")
        assert [row["sessionId"] for row in change["sessions"]] == [session.session_id]
        with pytest.raises(AgentRefused) as refused:
            await client.request("_nonesuch", {})
        assert refused.value.number == -32601
        with pytest.raises(InvalidInput):
            await client.request("session/new", {})
        with pytest.raises(InvalidInput):
            await client.notify("session/cancel", {})
        await client.notify("_nonesuch", {})


# An agent that offers less


async def test_an_agent_of_the_python_package_is_listed_loaded_and_resumed(tmp_path: Path) -> None:
    async with sdk_agent(tmp_path) as client:
        made = [await client.new_session(f"/p{number % 2}") for number in range(5)]
        assert [row.session_id async for row in client.list_sessions()] == ["s1", "s2", "s3", "s4", "s5"]
        assert [row.title async for row in client.list_sessions(cwd="/p1")] == ["Session s2", "Session s4"]
        assert await turn(client, "s1", "Hello there") == ("Hello there (calm)", "end_turn")
        await client.set_mode("s1", "wild")
        assert await turn(client, "s1", "Again") == ("Again (wild)", "end_turn")
        assert await replayed(client, "s1", Path("/p0")) == [
            ("user_message_chunk", "Hello there"),
            ("agent_message_chunk", "Hello there (calm)"),
            ("user_message_chunk", "Again"),
            ("agent_message_chunk", "Again (wild)"),
        ]
        assert (await client.resume_session("s2", "/p1")).modes == made[1].modes
        with pytest.raises(SessionNotFound):
            await client.load_session("s9", "/p0")


async def test_what_an_agent_has_not_offered_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async with sdk_agent(tmp_path) as client:
        session = (await client.new_session("/p")).session_id
        for call, told in (
            (client.fork_session(session, "/p"), "repeater does not offer session/fork"),
            (client.close_session(session), "the capability sessionCapabilities.close"),
            (client.delete_session(session), "the capability sessionCapabilities.delete"),
            (client.archive_session(session), "the capability sessionCapabilities.archive"),
            (client.unarchive_session(session), "the capability sessionCapabilities.archive"),
            (client.set_title(session, "T"), "the capability sessionCapabilities.title"),
            (client.status(session), "the capability sessionCapabilities.status"),
            (client.list_page(archived="only"), "the capability sessionCapabilities.archive"),
            (client.logout(), "the capability auth.logout"),
            (client.authenticate("login"), "does not offer the auth method"),
            (client.set_config_option(session, "model", "x"), "is not one of this session's options: none"),
            (client.new_session("/p", additional_directories=["/q"]), "the capability sessionCapabilities.additional"),
            (client.new_session("/p", mcp_servers=[HttpServer(name="h", url="http://h")]), "mcpCapabilities.http"),
            (client.new_session("/p", mcp_servers=[SseServer(name="s", url="http://s")]), "mcpCapabilities.sse"),
            (client.new_session("p"), "absolute"),
            (anext(client.prompt(session, [{"type": "audio"}])), "the capability promptCapabilities.audio"),
            (anext(client.prompt(session, [{"type": "resource"}])), "the capability promptCapabilities.embeddedContext"),
        ):  # fmt: skip
            with pytest.raises(InvalidInput, match=told):
                await call
        assert not client.agent.supports("session/fork")
        assert client.agent.supports("session/resume")
        assert client.agent.supports("session/new")


# What a client does for the agent


async def test_without_a_function_for_it_nothing_is_permitted_and_no_file_is_offered(tmp_path: Path) -> None:
    async with sdk_agent(tmp_path) as client:
        session = (await client.new_session("/p")).session_id
        assert await turn(client, session, "ask") == ("cancelled -", "end_turn")
        for said in ("read /a", "run ls"):
            with pytest.raises(AgentRefused):
                await turn(client, session, said)
        assert await turn(client, session, "and on") == ("and on (calm)", "end_turn")


async def test_a_question_is_answered_by_the_one_who_was_given_for_it(tmp_path: Path) -> None:
    asked: list[Question] = []
    answers = iter(("y", "n", None, "maybe"))

    async def permit(question: Question) -> str | None:
        asked.append(question)
        return next(answers)

    async with sdk_agent(tmp_path, Abilities(permit=permit)) as client:
        session = (await client.new_session("/p")).session_id
        assert (await turn(client, session, "ask"))[0] == "selected y"
        assert (await turn(client, session, "ask"))[0] == "selected n"
        assert (await turn(client, session, "ask"))[0] == "cancelled -"
        assert asked[0].tool_call["title"] == "Paint the barn"
        assert [option["kind"] for option in asked[0].options] == ["allow_once", "reject_once"]
        with pytest.raises(AgentRefused):  # an answer that is none of the options is not passed on
            await turn(client, session, "ask")


async def test_a_question_is_withdrawn_when_the_turn_is_cancelled(tmp_path: Path) -> None:
    asked, dropped = asyncio.Event(), asyncio.Event()

    async def permit(_: Question) -> str | None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()
        return None

    async with hitherto_agent(tmp_path, Abilities(permit=permit)) as (client, provider):
        provider.script([ToolUse("write_file", {"path": str(tmp_path / "a"), "content": "x"})])
        session = (await client.new_session(str(tmp_path))).session_id
        running = asyncio.ensure_future(turn(client, session, "write it"))
        await arrives(asked.wait(), "the question")
        await client.cancel(session)
        await arrives(dropped.wait(), "the question to be withdrawn")
        assert (await arrives(running, "the end of the turn"))[1] == "cancelled"
        assert not (tmp_path / "a").exists()


async def test_files_and_terminals_of_the_client_are_used_when_they_are_offered(tmp_path: Path) -> None:
    done: list[object] = []

    async def read(asked: ReadFile) -> str:
        done.append(asked)
        return "second line"

    async def write(asked: WriteFile) -> None:
        done.append(asked)

    class Screen:
        async def create(self, command: Command) -> str:
            done.append(command)
            return "term"

        async def output(self, terminal_id: str) -> Output:
            return Output(output=f"said in {terminal_id}", exit_status=Exit(exit_code=3))

        async def wait(self, terminal_id: str) -> Exit:
            return Exit(exit_code=len(terminal_id) - 1)

        async def kill(self, terminal_id: str) -> None:
            done.append(("kill", terminal_id))

        async def release(self, terminal_id: str) -> None:
            done.append(("release", terminal_id))

    abilities = Abilities(read_file=read, write_file=write, terminals=Screen())
    async with sdk_agent(tmp_path, abilities) as client:
        session = (await client.new_session("/p")).session_id
        assert (await turn(client, session, "read /p/a"))[0] == "second line"
        assert (await turn(client, session, "run ls"))[0] == "said in term 3"
    assert done == [
        ReadFile(session_id=session, path="/p/a", line=2),
        WriteFile(session_id=session, path="/p/a", content="SECOND LINE"),
        Command(session_id=session, command="ls", args=("-l",)),
        ("kill", "term"),
        ("release", "term"),
    ]


# Ends


async def test_a_cancelled_turn_ends_with_cancelled(tmp_path: Path) -> None:
    async with sdk_agent(tmp_path) as client:
        session = (await client.new_session("/p")).session_id
        reasons = []
        async for step in client.prompt(session, "wait"):
            if isinstance(step, Ended):
                reasons.append(step.stop_reason)
            elif step.text == "waiting ":
                await client.cancel(session)
        assert reasons == ["cancelled"]


async def test_leaving_a_turn_early_cancels_it(tmp_path: Path) -> None:
    async with hitherto_agent(tmp_path) as (client, provider):
        provider.script(["Half", PAUSE, "whole"], ["Second."])
        session = (await client.new_session(str(tmp_path))).session_id
        async with aclosing(client.prompt(session, "Go")) as steps:
            async for step in steps:
                if isinstance(step, Update) and step.text:
                    break
        await asyncio.to_thread(is_set, provider.left, "the engine to leave the provider")
        provider.go.set()
        assert (await turn(client, session, "And now?"))[0] == "Second."
        told = await replayed(client, session, tmp_path)
        assert [text for _, text in told] == ["Go", "Half", "And now?", "Second."]


async def test_a_cancelled_caller_cancels_its_turn(tmp_path: Path) -> None:
    async with scripted_agent(tmp_path) as client:
        session = (await client.new_session(str(tmp_path))).session_id
        begun = asyncio.Event()

        async def prompting() -> None:
            async for step in client.prompt(session, '["Half", {"hang": true}]'):
                if isinstance(step, Update) and step.text:
                    begun.set()

        task = asyncio.ensure_future(prompting())
        await arrives(begun.wait(), "the first words")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await arrives(task, "the end of the turn")
        assert await turn(client, session, "Hello") == ("You said: Hello", "end_turn")


async def test_an_agent_that_leaves_is_an_error_for_all_who_wait_and_all_who_come(tmp_path: Path) -> None:
    async with sdk_agent(tmp_path) as client:
        waiting, leaving = [(await client.new_session("/p")).session_id for _ in range(2)]
        other = asyncio.ensure_future(turn(client, waiting, "wait"))
        with pytest.raises(AgentLeft):
            await turn(client, leaving, "leave")
        with pytest.raises(AgentLeft):
            await arrives(other, "the end of the turn")
        with pytest.raises(AgentLeft):
            await client.new_session("/p")
        with pytest.raises(AgentLeft):
            await client.cancel(waiting)


PARTING = """
import json, os, pathlib, signal, sys
stubborn, folder = sys.argv[1] == "stubborn", pathlib.Path(sys.argv[2])
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder / "number").write_text(str(os.getpid()))
number = json.loads(sys.stdin.readline())["id"]
print(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": 1}}), flush=True)
sys.stdin.read()
(folder / "seen the end").touch()
while stubborn:
    signal.pause()
"""


@pytest.mark.parametrize("manner", ["polite", "stubborn"])
async def test_with_the_block_the_agents_input_ends_and_so_does_the_agent(
    tmp_path: Path, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if manner == "stubborn":
        monkeypatch.setattr(process, "LEAVE_SECONDS", 0.2)
    async with Client.start(
        sys.executable, ["-c", PARTING, manner, str(tmp_path)], env=environment(tmp_path)
    ):
        assert not (tmp_path / "seen the end").exists()
    assert manner == "stubborn" or (tmp_path / "seen the end").exists()
    assert not psutil.pid_exists(int((tmp_path / "number").read_text()))


async def test_a_program_that_cannot_be_started_or_is_no_agent_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start the agent '/no/such/agent': No such file"):
        async with Client.start("/no/such/agent"):
            pass
    with pytest.raises(AgentLeft):
        async with Client.start(sys.executable, ["-c", "pass"], env=environment(tmp_path)):
            pass


def test_every_call_is_documented() -> None:
    page = (ROOT / "docs" / "acp-client.md").read_text()
    for name in dir(Client):
        assert name.startswith("_") or re.search(rf"`(Client\.)?{name}[(`]", page), name
