"""Turns whose client has left: they go on, and whoever opens the session follows them and answers for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import hitherto
import hitherto.acp
from hitherto.acp.agent.connection import Offer, Outliving
from hitherto.acp.agent.serve import serve
from hitherto.engine import Delta, Engine, Event, Message, ToolEnded, Turn
from hitherto.model import LOCAL, Text, ToolCall
from hitherto.service import Sessions
from tests.acp.agent.in_process import Json, Line, is_told, opened
from tests.support.scripted_engine import Scripted, result
from tests.support.waits import NEVER, arrives, until

EDITOR: Json = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
PROMPT = [{"type": "text", "text": "Go"}]


class Client:
    """A client of a server, and the task that serves it."""

    def __init__(self, sessions: Sessions, engine: Engine, seconds: float, offer: Offer) -> None:
        self.line = Line()
        self.served = asyncio.ensure_future(
            serve(self.line, sessions, LOCAL, engine, offer=offer, outliving=Outliving(seconds))
        )


@asynccontextmanager
async def server(
    engine: Engine, clients: int = 2, seconds: float = NEVER, capabilities: Json | None = None
) -> AsyncIterator[tuple[Sessions, list[Client]]]:
    async with hitherto.open("memory:") as sessions:
        made = [Client(sessions, engine, seconds, Offer()) for _ in range(clients)]
        for client in made:
            await client.line.call("initialize", protocolVersion=1, clientCapabilities=capabilities or {})
        try:
            yield sessions, made
        finally:
            for client in made:
                client.line.leave()
            await arrives(asyncio.wait([client.served for client in made]), "the agents to end")


def said(line: Line) -> str:
    found = [message["params"]["update"] for message in line.seen if is_told(message, "agent_message_chunk")]
    return "".join(update["content"]["text"] for update in found)


async def test_however_many_clients_drop_in_the_middle_of_a_turn_none_loses_a_word() -> None:
    count, go = 20, asyncio.Event()

    async def script(_: Turn) -> AsyncIterator[Event]:
        yield Delta(text="The first half, ")
        await go.wait()
        yield Delta(text="and the second.")
        yield Message(parts=(Text(text="The first half, and the second."),))

    async with server(Scripted(*[script] * count), clients=count + 1) as (sessions, (follower, *clients)):
        made = [await opened(client.line) for client in clients]
        for client, session_id in zip(clients, made, strict=True):
            client.line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
            await client.line.until(lambda message: is_told(message, "agent_message_chunk"))
            client.line.leave()
        followed = made[0]
        await follower.line.call("session/load", sessionId=followed, cwd="/p", mcpServers=[])
        await follower.line.until(lambda message: is_told(message, "agent_message_chunk"))
        assert said(follower.line) == "The first half, "
        go.set()
        await arrives(asyncio.wait([client.served for client in clients]), "the end of the turns")
        for session_id in made:
            session = await sessions.get(LOCAL, session_id)
            assert (session.status, session.message_count) == ("idle", 2)
            *_, answer = (await sessions.history(LOCAL, session_id)).entries
            assert answer.parts == (Text(text="The first half, and the second."),)
        await until(lambda: said(follower.line) == "The first half, and the second.", "the rest of it")


async def ask(turn: Turn, call: ToolCall) -> AsyncIterator[Event]:
    yield Message(parts=(call,))
    verdict = await turn.permit(call)
    yield ToolEnded(result=result(call.id, "done" if verdict.allowed else verdict.reason))


async def outcome(sessions: Sessions, session_id: str) -> str:
    *_, ended = (await sessions.history(LOCAL, session_id)).entries
    return str(ended.parts)


async def test_a_question_of_a_turn_whose_client_has_left_is_answered_by_another() -> None:
    asks = Scripted(lambda turn: ask(turn, ToolCall(id="c", name="deploy", kind="execute", input={})))
    async with server(asks) as (sessions, (prompter, other)):
        session_id = await opened(prompter.line)
        await other.line.call("session/resume", sessionId=session_id, cwd="/p", mcpServers=[])
        prompter.line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        await prompter.line.until(lambda message: message.get("method") == "session/request_permission")
        prompter.line.leave()
        at = await other.line.until(lambda message: message.get("method") == "session/request_permission")
        asked = other.line.seen[at]
        assert asked["params"]["toolCall"]["toolCallId"] == "c"
        answer = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        other.line.say(id=asked["id"], result=answer)
        await arrives(prompter.served, "the end of the turn")
        assert "done" in await outcome(sessions, session_id)


async def test_only_the_client_whose_hands_are_used_permits_that() -> None:
    asks = Scripted(lambda turn: ask(turn, ToolCall(id="c", name="run_command", kind="execute", input={})))
    async with server(asks, capabilities=EDITOR) as (sessions, (prompter, other)):
        session_id = await opened(prompter.line)
        await other.line.call("session/resume", sessionId=session_id, cwd="/p", mcpServers=[])
        prompter.line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        await prompter.line.until(lambda message: message.get("method") == "session/request_permission")
        assert await sessions.questions.pending(LOCAL, session_id) is None
        assert not await sessions.questions.answer(LOCAL, session_id, "c", "allow_once")
        prompter.line.leave()
        await arrives(prompter.served, "the end of the turn")
        assert "not answered" in await outcome(sessions, session_id)
        asked = [
            message for message in other.line.seen if message.get("method") == "session/request_permission"
        ]
        assert asked == []


async def test_a_turn_that_nobody_attends_for_too_long_is_ended_and_what_was_said_is_kept() -> None:
    async def endless(_: Turn) -> AsyncIterator[Event]:
        yield Delta(text="I was about to")
        await asyncio.Event().wait()

    async with server(Scripted(endless), clients=1, seconds=0.01) as (sessions, (client,)):
        session_id = await opened(client.line)
        client.line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        await client.line.until(lambda message: is_told(message, "agent_message_chunk"))
        client.line.leave()
        await arrives(client.served, "the end of the turn")
        assert "I was about to" in await outcome(sessions, session_id)
        assert (await sessions.get(LOCAL, session_id)).status == "idle"
