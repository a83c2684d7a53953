"""Turns that run elsewhere, over the same store: another process, another door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hitherto.engine import Delta, Event, Turn
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.service.turns import runner
from hitherto.updates import Outcome, Said
from tests.acp.agent.in_process import Json, opened, serving
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
