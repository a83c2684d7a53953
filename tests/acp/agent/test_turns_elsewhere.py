"""Turns that run elsewhere, over the same store: another process, another door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hitherto.engine import Context, Delta, Event, Message, ToolEnded, ToolProgress, Turn
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL, Plan, Text, Thought, ToolCall, ToolResult, Usage
from hitherto.service import Sessions
from hitherto.service.turns import runner
from hitherto.updates import Outcome, Said
from tests.acp.agent.in_process import Json, Line, is_told, opened, serving
from tests.support.scripted_engine import Scripted, Watcher, in_background
from tests.support.waits import arrives


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)


async def endless(_: Turn) -> AsyncIterator[Event]:
    yield Delta(text="I was about to")
    await asyncio.Event().wait()


@asynccontextmanager
async def going_on(sessions: Sessions, session_id: str) -> AsyncIterator[asyncio.Task[Outcome]]:
    """A turn of the session that is not the client's."""
    watcher = Watcher()
    async with sessions.opened(LOCAL, session_id, Scripted(endless)) as elsewhere:
        running = await in_background(elsewhere, emit=watcher)
        await watcher.until(Said)
        yield running


@pytest.mark.parametrize("of_ours", [False, True])
async def test_archiving_a_session_ends_its_turn_first_wherever_that_runs(of_ours: bool) -> None:
    async with serving(Scripted()) as (line, sessions):
        session_id = await opened(line) if of_ours else (await sessions.create(LOCAL)).id
        async with going_on(sessions, session_id) as running:
            await line.call("session/archive", sessionId=session_id)
            assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
        session = await sessions.get(LOCAL, session_id)
        assert (session.archived, session.status) == (True, "idle")


async def test_deleting_a_session_ends_its_turn_wherever_that_runs() -> None:
    async with serving(Scripted()) as (line, sessions):
        session_id = await opened(line)
        async with going_on(sessions, session_id) as running:
            await line.call("session/delete", sessionId=session_id)
            with pytest.raises(SessionNotFound):
                await arrives(running, "the end of the turn")


async def test_a_prompt_whose_session_is_deleted_elsewhere_is_told_so() -> None:
    async with serving(Scripted(endless)) as (line, sessions):
        session_id = await opened(line)
        asked: Json = {"sessionId": session_id, "prompt": [{"type": "text", "text": "Go"}]}
        prompt = line.begin("session/prompt", **asked)
        await line.until(lambda message: "agent_message_chunk" in str(message))
        await sessions.delete(LOCAL, session_id)
        at = await line.until(lambda message: message.get("id") == prompt)
        assert line.seen[at]["error"]["code"] == -32002


async def test_cancel_ends_a_turn_that_the_client_only_follows() -> None:
    async with serving(Scripted()) as (line, sessions):
        session_id = await opened(line)
        async with going_on(sessions, session_id) as running:
            line.say(method="session/cancel", params={"sessionId": session_id})
            assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"


async def test_who_follows_sees_what_the_prompter_sees_in_order_from_wherever_they_begin() -> None:
    more, progressed, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def script(_: Turn) -> AsyncIterator[Event]:
        for thought, text in ((True, "Hm. "), (False, "First "), (True, "But "), (False, "then ")):
            yield Delta(text=text, thought=thought)
        await more.wait()
        yield Delta(text="more.")
        call = ToolCall(id="c", name="run_command", kind="read", input={})
        said = (Thought(text="Hm. "), Text(text="First "), Thought(text="But "), Text(text="then more."))
        yield Message(parts=(*said, call), usage=Usage(input=5, output=2))
        yield Context(used=7, size=100)
        yield ToolProgress(id="c", content=(Text(text="half"),))
        await progressed.wait()
        plan = Plan(steps=({"content": "One", "status": "pending", "priority": "low"},))
        yield ToolEnded(result=ToolResult(id="c", content=(Text(text="done"),)), extra=(plan,))
        await end.wait()

    async with serving(Scripted(), store="memory:") as (line, sessions):
        session_id = (await sessions.create(LOCAL, cwd="/p")).id
        watcher = Watcher()
        async with sessions.opened(LOCAL, session_id, Scripted(script)) as elsewhere:
            running = await in_background(elsewhere, emit=watcher)
            await watcher.until(Said, 4)
            await line.call("session/load", sessionId=session_id, cwd="/p", mcpServers=[])
            await line.until(lambda message: "then " in str(message))
            more.set()
            await line.until(lambda message: "half" in str(message))
            await line.until(lambda message: is_told(message, "usage_update"))
            progressed.set()
            await line.until(lambda message: is_told(message, "plan"))
            end.set()
            await arrives(running, "the end of the turn")
            await line.until(lambda message: "updatedAt" in str(message) and "plan" in kinds(line))
    found = [
        message["params"]["update"] for message in line.seen if message.get("method") == "session/update"
    ]
    said = [
        (update["sessionUpdate"], update["content"]["text"])
        for update in found
        if update["sessionUpdate"].endswith("chunk") and update["sessionUpdate"] != "user_message_chunk"
    ]
    joined: list[tuple[str, str]] = []
    for kind, text in said:
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    thought, message = "agent_thought_chunk", "agent_message_chunk"
    assert joined == [(thought, "Hm. "), (message, "First "), (thought, "But "), (message, "then more.")]
    of_tool = [update for update in found if update.get("toolCallId") == "c"]
    assert [update.get("status") for update in of_tool] == ["pending", "in_progress", "completed"]
    assert "half" in str(of_tool[1])
    (used,) = [update for update in found if update["sessionUpdate"] == "usage_update"]
    assert (used["used"], used["size"]) == (7, 100)


def kinds(line: Line) -> list[str]:
    return [
        message["params"]["update"]["sessionUpdate"]
        for message in line.seen
        if "update" in str(message.get("params"))
    ]
