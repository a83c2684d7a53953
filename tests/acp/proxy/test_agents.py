"""The proxy in front of real agents: one of the protocol's Python package, an example, our own; and as a program."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hitherto
from hitherto.acp.client import Client
from hitherto.acp.client.callbacks import Abilities, Question, ReadFile, WriteFile
from hitherto.model import LOCAL, Json
from tests.acp.client.test_client import replayed, turn
from tests.acp.proxy.in_process import entries_of, kept, line_agent, streams
from tests.acp.wire import LINE_BYTES, Agent, environment, is_update, running, texts, url_of
from tests.engines.provider import serving
from tests.support.paths import ROOT
from tests.support.waits import arrives, until

NOTHING = Abilities()
BARE = [sys.executable, "-m", "tests.acp.sdk_agent", "bare"]
MODEL = "anthropic:claude-sonnet-5"


@asynccontextmanager
async def client_of(
    folder: Path, command: Sequence[str], abilities: Abilities = NOTHING, env: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    async with streams(folder, command, env) as ends, Client.over(*ends, abilities=abilities) as client:
        yield client


async def test_an_agent_of_the_python_package_gets_what_it_has_not(tmp_path: Path) -> None:
    async def permit(question: Question) -> str | None:
        return "y" if question.tool_call["title"] == "Paint the barn" else None

    async def read(wanted: ReadFile) -> str:
        return f"line {wanted.line}"

    async def write(wanted: WriteFile) -> None:
        written.append(wanted.content)

    written: list[str] = []
    abilities = Abilities(permit=permit, read_file=read, write_file=write)
    async with client_of(tmp_path, BARE, abilities) as client:
        assert client.agent.name == "repeater"
        made = await client.new_session(str(tmp_path))
        assert made.mode == "calm"
        await client.set_mode(made.session_id, "wild")
        assert await turn(client, made.session_id, "Hello there") == ("Hello there (wild)", "end_turn")
        assert await turn(client, made.session_id, "ask") == ("selected y", "end_turn")
        assert await turn(client, made.session_id, f"read {tmp_path}/x") == ("line 2", "end_turn")
        assert written == ["LINE 2"]
        fork = await client.fork_session(made.session_id, str(tmp_path))
        await client.set_title(made.session_id, "Mine")
    async with client_of(tmp_path, BARE) as client:
        rows = {row.session_id: row.title async for row in client.list_sessions(cwd=str(tmp_path))}
        assert rows == {made.session_id: "Mine", fork.session_id: "Hello there"}
        said = await replayed(client, made.session_id, tmp_path)
        assert said[:2] == [
            ("user_message_chunk", "Hello there"),
            ("agent_message_chunk", "Hello there (wild)"),
        ]
        assert await replayed(client, fork.session_id, tmp_path) == said
        assert await turn(client, made.session_id, "Again") == ("Again (wild)", "end_turn")
        await client.delete_session(made.session_id)
        assert [row.session_id async for row in client.list_sessions()] == [fork.session_id]
    async with hitherto.open(url_of(tmp_path)) as sessions:
        assert (await sessions.get(LOCAL, fork.session_id)).agent_id == "repeater"


async def test_our_own_agent_behind_resumes_forks_titles_and_deletes_by_itself(tmp_path: Path) -> None:
    behind = f"sqlite:///{tmp_path / 'behind.db'}"
    command = [sys.executable, "-m", "hitherto", "acp", "--store", behind, "--model", MODEL]
    with serving() as provider:
        provider.script(*[_reply] * 10)
        async with client_of(tmp_path, command, env=provider.environ()) as client:
            made = await client.new_session(str(tmp_path))
            assert await turn(client, made.session_id, "One") == ("Reply to One", "end_turn")
            await client.close_session(made.session_id)
            assert await replayed(client, made.session_id, tmp_path) == [
                ("user_message_chunk", "One"),
                ("agent_message_chunk", "Reply to One"),
            ]
            assert (await turn(client, made.session_id, "Two"))[0] == "Reply to Two"
            fork = await client.fork_session(made.session_id, str(tmp_path))
            assert (await turn(client, fork.session_id, "Three"))[0] == "Reply to Three"
            await client.set_title(made.session_id, "Ours")
            async with hitherto.open(behind) as theirs:
                titles = [session.title for session in (await theirs.find(LOCAL)).sessions]
                assert "Ours" in titles
                await client.delete_session(made.session_id)
                (left,) = (await theirs.find(LOCAL)).sessions
                said = [entry.role for entry in await entries_of(theirs, left.id)]
        asked = [
            json.dumps(each["messages"])
            for each in provider.requests
            if "Three" in json.dumps(each["messages"])
        ]
    assert all(word in asked[0] for word in ("Reply to One", "Reply to Two"))
    assert "the earlier part of this conversation" not in asked[0]  # it knew, nobody had to tell it
    assert said == ["user", "assistant"] * 3
    assert [role for role, _ in await kept(tmp_path, fork.session_id)] == said


async def test_the_example_agent_behind_the_program(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'registry.db'}"
    command = shlex.join([sys.executable, str(ROOT / "examples/registry_agent.py"), "--store", store])
    arguments = ("-m", "hitherto", "acp", "--agent", command, "--store", url_of(tmp_path))
    async with running(tmp_path, *arguments) as agent:
        await agent.initialize()
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Hello")
        first = texts(agent.updates(session))
    assert [part["text"] for _, part in await kept(tmp_path, session)] == ["Hello", first]


async def test_a_killed_proxy_has_kept_the_prompt_and_all_that_was_said(tmp_path: Path) -> None:
    call = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "Run",
        "status": "in_progress",
        "rawInput": {"x": 1},
    }
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "rawOutput": 1}
    script = [{"say": "One"}, {"update": call}, {"update": done}, {"say": "Half"}, {"wait": True}]
    arguments = [
        "-m",
        "hitherto",
        "acp",
        "--agent",
        shlex.join(line_agent(tmp_path)),
        "--store",
        url_of(tmp_path),
    ]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=pipe,
        stdout=pipe,
        cwd=ROOT,
        env=environment(tmp_path),
        limit=LINE_BYTES,
    )
    agent = Agent(process)
    async with hitherto.open(url_of(tmp_path)) as sessions:
        try:
            await agent.initialize()
            session = await agent.new(tmp_path)
            await agent.begin_prompt(session, script)
            await agent.until(
                lambda m: is_update(session, "agent_message_chunk")(m) and "Half" in json.dumps(m)
            )

            async def shown() -> bool:
                return b"Half" in (await sessions.changes.live(LOCAL, session) or b"")

            await until(shown, "everybody to be shown what is being said")
        finally:
            process.kill()
            await arrives(process.wait(), "the end of a killed proxy")
        assert (await sessions.get(LOCAL, session)).status == "interrupted"
    async with running(tmp_path, *arguments) as again:
        await again.initialize()
        replay = await again.load(session, tmp_path)
        assert texts(replay) == "OneHalf"
        assert (await again.call("session/status", {"sessionId": session}))["_meta"] == {
            "hitherto/status": "interrupted"
        }
        assert (await again.prompt(session, "Go on"))["stopReason"] == "end_turn"
    roles = [role for role, _ in await kept(tmp_path, session)]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant", "user", "assistant"]


def _reply(body: Json) -> list[Any]:
    """An answer that tells what it answers."""
    content = body["messages"][-1]["content"]
    return ["Reply to " + (content if isinstance(content, str) else content[-1]["text"])]
