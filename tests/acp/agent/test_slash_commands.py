"""Commands that the door offers and carries out itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Imported
from tests.acp.wire import EVERYTHING, Json, Refusal, Talk, is_update, scripted, texts, url_of

WORDS = "The service stores each event before the next one is asked for, and shows the rest. "


def offered(agent: Talk, session_id: str) -> list[Json]:
    """The lists of commands that were told for a session."""
    told = filter(is_update(session_id, "available_commands_update"), agent.seen)
    return [message["params"]["update"] for message in told]


async def test_commands_are_told_after_each_answer_that_opens_a_session(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        params: Json = {"cwd": str(tmp_path), "mcpServers": []}
        for method in ("session/new", "session/load", "session/resume", "session/fork"):
            answer = await agent.call(method, params)
            session = params["sessionId"] = answer.get("sessionId") or params["sessionId"]
            assert offered(agent, session) == [], method
            await agent.until(is_update(session, "available_commands_update"))
            (commands,) = offered(agent, session)
            assert [each["name"] for each in commands["availableCommands"]] == ["compact", "title", "tags"]
            agent.seen.clear()


async def test_a_command_is_answered_at_once_and_is_no_part_of_the_conversation(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "Hello")
        assert (await agent.prompt(session, "/title  A better  title "))["stopReason"] == "end_turn"
        assert texts(agent.updates(session)).endswith("Title: A better title")
        await agent.until(lambda _: agent.updates(session)[-1].get("title") == "A better title")
        await agent.prompt(session, "/tags red blue")
        await agent.prompt(session, "/tags -red")
        assert texts(agent.updates(session)).endswith("Tags: blue, redTags: blue")
        for asked, said in (("/title", "Title: A better title"), ("/tags", "Tags: blue")):
            await agent.prompt(session, asked)
            assert texts(agent.updates(session)).endswith(said)
        (row,) = (await agent.call("session/list"))["sessions"]
        assert (row["title"], row["_meta"]["tags"], row["_meta"]["messageCount"]) == (
            "A better title",
            ["blue"],
            2,
        )
        assert texts(await agent.load(session, tmp_path)) == "You said: Hello"


@pytest.mark.parametrize(
    "said", ["/etc/hosts looks wrong", "/unknown", "Look at /title", "/titles x", "/ title"]
)
async def test_what_is_no_command_of_ours_is_said_to_the_engine(tmp_path: Path, said: str) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, said)
        assert texts(agent.updates(session)) == f"You said: {said}"


async def test_a_command_with_something_beside_it_is_said_to_the_engine(tmp_path: Path) -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "/title of this?"}, link]}
        await agent.call("session/prompt", params)
        assert texts(agent.updates(session)) == "You said: /title of this?"


async def said_much(folder: Path, session_id: str) -> None:
    async with hitherto.open(url_of(folder)) as sessions:
        drafts = [
            Draft(role=("user", "assistant")[at % 2], parts=(Text(text=WORDS * 20),)) for at in range(40)
        ]
        await sessions.append(LOCAL, session_id, drafts)


async def compaction(agent: Talk, session: str) -> list[Json]:
    """All updates of a compaction, once it is completed."""

    def found() -> list[Json]:
        return [each for each in agent.updates(session) if each["sessionUpdate"].startswith("compaction")]

    await agent.until(lambda _: any(each.get("status") == "completed" for each in found()))
    return found()


async def test_compact_makes_room_and_shows_where(tmp_path: Path) -> None:
    async with scripted(tmp_path, EVERYTHING) as agent:
        session = await agent.new(tmp_path)
        await agent.prompt(session, "/compact")
        assert texts(agent.updates(session)).startswith("Nothing was compacted: ")
        await said_much(tmp_path, session)
        assert (await agent.prompt(session, "/compact"))["stopReason"] == "end_turn"
        assert "instead of 40 messages" in texts(agent.updates(session))
        begun, chunk, ended = await compaction(agent, session)
        assert begun == {
            "sessionUpdate": "compaction_update",
            "compactionId": begun["compactionId"],
            "status": "in_progress",
        }
        assert chunk["compactionId"] == ended["compactionId"] == begun["compactionId"]
        assert ended["summary"] == [chunk["content"]]
        (row,) = (await agent.call("session/list"))["sessions"]
        assert row["_meta"]["messageCount"] == 40
        replayed = await agent.load(session, tmp_path)
        assert len([each for each in replayed if "message_chunk" in each["sessionUpdate"]]) == 40
        (again,) = [each for each in replayed if each["sessionUpdate"].startswith("compaction")]
        assert (again["compactionId"], again["status"]) == (begun["compactionId"], "completed")
        with pytest.raises(Refusal) as refused:
            await agent.prompt(session, "/compact twice")
        assert refused.value.code == -32602


async def test_no_command_runs_beside_a_turn(tmp_path: Path) -> None:
    async with scripted(tmp_path) as one, scripted(tmp_path) as two:
        session = await one.new(tmp_path)
        prompt = await one.begin_prompt(session, ["x", {"hang": True}])
        await one.until(is_update(session, "agent_message_chunk"))
        for agent, command in ((one, "/title x"), (one, "/compact"), (two, "/compact")):
            with pytest.raises(Refusal) as refused:
                await agent.prompt(session, command)
            assert refused.value.error["data"]["code"] == "busy"
        await one.send(method="session/cancel", params={"sessionId": session})
        assert (await one.answer(prompt))["stopReason"] == "cancelled"


async def test_compacting_a_session_of_another_agent_goes_on_in_a_fork(tmp_path: Path) -> None:
    given = Imported(id="claude:1", source="claude", created_at=1, updated_at=1, cwd=str(tmp_path))
    async with hitherto.open(url_of(tmp_path)) as sessions:
        await sessions.transfer.sync(LOCAL, given, [])
    async with scripted(tmp_path) as agent:
        await agent.load(given.id, tmp_path)
        answer = await agent.prompt(given.id, "/compact")
        fork = answer["_meta"]["hitherto/continuedAs"]
        assert texts(agent.updates(given.id)).startswith("Nothing was compacted")
        await agent.prompt(given.id, "/title Mine")
        titles = {
            row["sessionId"]: row.get("title") for row in (await agent.call("session/list"))["sessions"]
        }
        assert titles == {fork: "Mine"}  # one conversation is one row
