"""`$/cancel_request`: whenever it comes, its request gets one answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Delta, Event, Message, Turn, answering
from hitherto.model import LOCAL, Text
from tests.acp.agent.in_process import Json, Line, made, opened, quiet, serving
from tests.support.waits import arrives

PROMPT = [{"type": "text", "text": "Go"}]


@answering
async def engine(_: Turn) -> AsyncIterator[Event]:
    yield Delta(text="Gone.")
    yield Message(parts=(Text(text="Gone."),))


def call_off(line: Line, request: int) -> None:
    line.say(method="$/cancel_request", params={"requestId": request})


def answers(line: Line, request: int) -> list[Json]:
    return [message for message in line.seen if message.get("id") == request and "method" not in message]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/list", {}),
        ("session/new", {"cwd": "/p", "mcpServers": []}),
        ("session/prompt", {"prompt": PROMPT}),
    ],
)
async def test_a_request_that_is_called_off_before_it_was_begun_is_answered_and_never_begun(
    method: str, params: Json
) -> None:
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        request = line.begin(method, sessionId=session_id, **params)
        call_off(line, request)
        call_off(line, request)
        await line.until(lambda message: message.get("id") == request)
        await quiet()
        assert [answer["error"]["code"] for answer in answers(line, request)] == [-32800]
        assert await made(sessions) == {session_id}
        assert (await sessions.get(LOCAL, session_id)).message_count == 0
        await line.call("session/prompt", sessionId=session_id, prompt=PROMPT)


@pytest.mark.parametrize(
    ("method", "params"),
    [("session/status", {}), ("session/new", {"cwd": "/p", "mcpServers": []})],
)
async def test_a_request_that_is_called_off_while_its_answer_waits_for_the_client_gets_that_answer(
    method: str, params: Json
) -> None:
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        line.taking.clear()
        line.begin("session/list")
        request = line.begin(method, sessionId=session_id, **params)
        await arrives(line.full.wait(), "an answer that waits for the client")
        await quiet()
        call_off(line, request)
        await quiet()
        line.taking.set()
        result = await line.answer(request)
        assert len(answers(line, request)) == 1
        # What was made is known to whoever asked for it, and told of like every other.
        known = {session_id, result.get("sessionId", session_id)}
        assert await made(sessions) == known
        for each in known:
            await line.until(lambda message, each=each: message.get("params", {}).get("sessionId") == each)  # type: ignore[misc]


@pytest.mark.parametrize("method", ["session/new", "session/fork"])
async def test_what_is_being_made_when_its_request_is_called_off_is_made_and_told(method: str) -> None:
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        for steps in range(12):  # wherever it is by then
            request = line.begin(method, sessionId=session_id, cwd="/p", mcpServers=[])
            for _ in range(steps):
                await asyncio.sleep(0)
            call_off(line, request)
            await line.until(lambda message, request=request: message.get("id") == request)  # type: ignore[misc]
        told = [
            message["result"]["sessionId"]
            for message in line.seen
            if "sessionId" in message.get("result", {})
        ]
        assert len(told) > 1
        assert await made(sessions) == set(told)
