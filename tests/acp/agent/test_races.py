"""What happens at exactly one moment: the agent in this process, and a line that holds it there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from hitherto.engine import Choices, Conversation, Delta, Event, Message, Notice, Setup, Turn, answering
from hitherto.errors import ModelUnreachable
from hitherto.model import LOCAL, Draft, Entry, Text, ToolCall
from hitherto.values.positions import BEGINNING
from tests.acp.agent.in_process import Json, is_told, opened, quiet, serving
from tests.support.waits import arrives, until, within

CALL = ToolCall(id="t1", name="run", kind="execute", input={"command": "ls"})
PROMPT = [{"type": "text", "text": "Go"}]


class Slow:
    """An engine that gets ready when it is told to, and then answers for ever."""

    def __init__(self) -> None:
        self.opening, self.asked = asyncio.Event(), asyncio.Event()
        self.known = asyncio.Event()
        self.ran = False

    @asynccontextmanager
    async def open(self, _: Setup) -> AsyncIterator[Conversation]:
        await arrives(self.opening.wait(), "leave to open")
        yield self

    async def run(self, _: Turn) -> AsyncIterator[Event]:
        self.ran = True
        yield Delta(text="Half")
        await asyncio.Event().wait()

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return None

    async def window(self, choices: Choices) -> int | None:  # noqa: ARG002
        self.asked.set()
        await arrives(self.known.wait(), "the window to be known")
        return None


async def test_a_call_is_shown_before_it_is_asked_about_however_slowly_the_client_reads() -> None:
    @answering
    async def engine(turn: Turn) -> AsyncIterator[Event]:
        yield Delta(text="I will.")
        await arrives(line.full.wait(), "a client that does not take it")
        yield Message(parts=(Text(text="I will."), CALL))
        await turn.permit(CALL)

    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        line.taking.clear()
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        async with within("the question"), aclosing(sessions.watch(LOCAL, after=BEGINNING)) as changes:  # type: ignore[type-var]
            async for _ in changes:
                if (await sessions.get(LOCAL, session_id)).status == "waiting":
                    break
        await quiet()
        line.taking.set()
        question = await line.until(lambda message: message.get("method") == "session/request_permission")
        shown = [at for at, message in enumerate(line.seen) if is_told(message, "tool_call")]
        assert [at < question for at in shown] == [True]
        line.say(id=line.seen[question]["id"], result={"outcome": {"outcome": "cancelled"}})
        assert (await line.answer(prompt))["stopReason"] == "end_turn"


async def test_a_prompt_cancelled_while_the_engine_gets_ready_is_never_begun() -> None:
    engine = Slow()
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        line.say(method="session/cancel", params={"sessionId": session_id})
        await line.call("session/status", sessionId=session_id)
        engine.opening.set()
        engine.known.set()
        assert (await line.answer(prompt))["stopReason"] == "cancelled"
        assert not engine.ran
        assert (await sessions.get(LOCAL, session_id)).message_count == 0


async def test_a_prompt_cancelled_in_the_moment_it_begins_ends_without_an_answer() -> None:
    engine = Slow()
    engine.opening.set()
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        await arrives(engine.asked.wait(), "the engine to be asked")
        line.say(method="session/cancel", params={"sessionId": session_id})
        await line.call("session/status", sessionId=session_id)
        engine.known.set()
        assert (await line.answer(prompt))["stopReason"] == "cancelled"
        assert not engine.ran
        assert await sessions.leases.current(LOCAL, session_id) is None


async def test_a_load_hears_that_it_is_cancelled_however_quickly_the_client_reads() -> None:
    async with serving(Slow()) as (line, sessions):
        session = await sessions.create(LOCAL, cwd="/p")
        drafts = [Draft(role="user", parts=(Text(text="x" * 2_000),)) for _ in range(2_000)]
        await sessions.append(LOCAL, session.id, drafts)
        load = line.begin("session/load", sessionId=session.id, cwd="/p", mcpServers=[])
        await line.until(lambda message: is_told(message, "user_message_chunk"))
        line.say(method="$/cancel_request", params={"requestId": load})
        answered = await line.until(lambda message: message.get("id") == load)
        assert line.seen[answered]["error"]["code"] == -32800
        assert answered < 2_000


async def test_entries_of_very_different_sizes_are_replayed_in_pages_of_bounded_bytes() -> None:
    @answering
    async def engine(_: Turn) -> AsyncIterator[Event]:
        yield Message(parts=(Text(text="never asked"),))

    sizes = [10] * 300 + [1_000_000] * 30 + [10] * 300
    async with serving(engine) as (line, sessions):
        session = await sessions.create(LOCAL, cwd="/p")
        await sessions.append(
            LOCAL, session.id, [Draft(role="user", parts=(Text(text="x" * size),)) for size in sizes]
        )
        await line.call("session/load", sessionId=session.id, cwd="/p", mcpServers=[])
        told = [
            message["params"]["update"] for message in line.seen if is_told(message, "user_message_chunk")
        ]
        assert [len(update["content"]["text"]) for update in told] == sizes
        assert max(line.sizes) < 1_200_000


class Late(Slow):
    """An engine that cannot be opened the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.known.set()
        self.tried = 0

    @asynccontextmanager
    async def open(self, _: Setup) -> AsyncIterator[Conversation]:
        self.tried += 1
        if self.tried == 1:
            raise ModelUnreachable("not up yet")
        yield self

    async def run(self, _: Turn) -> AsyncIterator[Event]:
        yield Message(parts=(Text(text="Up."),))


async def test_an_engine_that_could_not_be_opened_is_opened_by_the_next_prompt() -> None:
    engine = Late()
    async with serving(engine) as (line, _):
        session_id = await opened(line)
        await until(lambda: engine.tried == 1, "the engine to be opened")
        answer = await line.call("session/prompt", sessionId=session_id, prompt=PROMPT)
        assert answer["stopReason"] == "end_turn"
        await line.call("session/prompt", sessionId=session_id, prompt=PROMPT)
        assert engine.tried == 2


class Clinging(Slow):
    """An engine that takes its time to end: it waits for all that are open to be asked to."""

    def __init__(self, sessions: int) -> None:
        super().__init__()
        self._all, self._ending, self.opened = sessions, 0, 0
        self.told = asyncio.Event()

    @asynccontextmanager
    async def open(self, _: Setup) -> AsyncIterator[Conversation]:
        self.opened += 1
        try:
            yield self
        finally:
            self._ending += 1
            if self._ending == self._all:
                self.told.set()
            await arrives(self.told.wait(), "all that are open to be asked to end")


async def test_when_a_client_leaves_all_its_sessions_are_closed_at_once() -> None:
    engine = Clinging(3)
    async with serving(engine) as (line, _):
        for _ in range(3):
            await line.call("session/new", cwd="/p", mcpServers=[])
        await until(lambda: engine.opened == 3, "all engines to be opened")
    assert engine.told.is_set()


@pytest.mark.parametrize(("able", "kind"), [({"notices": {}}, "notice"), ({}, "agent_thought_chunk")])
async def test_what_fails_while_a_session_is_opened_is_told_once_to_every_client(
    able: Json, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Slow):
        @asynccontextmanager
        async def open(self, setup: Setup) -> AsyncIterator[Conversation]:
            setup.report(Notice(text="MCP server 'x' did not start", severity="warning"))
            yield self

        async def run(self, _: Turn) -> AsyncIterator[Event]:
            yield Message(parts=(Text(text="Without it, then."),))

    engine = Failing()
    engine.known.set()
    async with serving(engine, capabilities={"session": able}) as (line, _):
        session_id = await opened(line)
        if kind == "notice":
            await line.until(lambda message: is_told(message, "notice"))
        else:
            await quiet()
            assert not any(is_told(message, "notice") for message in line.seen)
        for _ in range(2):
            await line.call("session/prompt", sessionId=session_id, prompt=PROMPT)
        told = [message["params"]["update"] for message in line.seen if is_told(message, kind)]
        assert len(told) == 1
        assert "MCP server 'x' did not start" in str(told)
    assert "MCP server 'x' did not start" in caplog.text
