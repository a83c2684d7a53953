"""Our client with agents that are newer, older, careless or slow. Each speaks over a socket, line by line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from hitherto.acp.client import AgentLeft, AgentRefused, Client, Ended, OpenedSession, Update
from hitherto.acp.client.callbacks import Abilities, Question
from hitherto.acp.client.updates import UNREAD_LIMIT
from hitherto.engine import HttpServer, McpServer, StdioServer
from hitherto.errors import EngineError, InvalidInput, SessionNotFound
from tests.support.waits import arrives, within

Json = dict[str, Any]
EVERYTHING: Json = {
    "loadSession": True,
    "promptCapabilities": {"image": True},
    "mcpCapabilities": {"http": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "resume", "close", "delete", "additionalDirectories", "fork", "title")
    },
    "auth": {"logout": {}},
}
GREETING: Json = {
    "protocolVersion": 1,
    "agentCapabilities": EVERYTHING,
    "authMethods": [{"id": "key", "name": "Key"}],
}


class OddAgent:
    """Answers each request with what `answers` has for it: a result, or a function that does something first."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answers: Json) -> None:
        self._reader, self._writer = reader, writer
        self.answers = {"initialize": GREETING, **answers}
        self.heard: list[Json] = []
        self.told = asyncio.Event()

    async def run(self) -> None:
        while line := await self._line():
            message = json.loads(line)
            self.heard.append(message)
            self.told.set()
            if "method" in message and "id" in message:
                await self._answer(message)

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ConnectionError:
            return b""

    async def _answer(self, message: Json) -> None:
        found = self.answers[message["method"]]
        if callable(found):
            found = await found(self, message)
        if found is not None:
            await self.say({"id": message["id"], **(found if "error" in found else {"result": found})})

    async def say(self, message: Json) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def write(self, line: bytes) -> None:
        self._writer.write(line + b"\n")
        await self._writer.drain()

    async def update(self, session_id: str, **update: Any) -> None:
        await self.say({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    def asked(self, method: str) -> list[Json]:
        return [message.get("params") or {} for message in self.heard if message.get("method") == method]

    def leave(self) -> None:
        self._writer.close()

    def fall_silent(self) -> None:
        """Say nothing any more, and still listen."""
        self._writer.write_eof()

    async def heard_answer(self, number: int) -> Json:
        """What the client answers to a request."""
        async with within(f"the answer to {number}"):
            while True:
                for message in self.heard:
                    if message.get("id") == number and "method" not in message:
                        return message
                self.told.clear()
                await self.told.wait()


Answer = Callable[[OddAgent, Json], Awaitable[Json | None]]


@asynccontextmanager
async def odd(
    answers: Json | None = None, abilities: Abilities | None = None
) -> AsyncIterator[tuple[Client, OddAgent]]:
    ours, theirs = socket.socketpair()
    agent = OddAgent(*await asyncio.open_connection(sock=theirs), answers or {})
    running = asyncio.ensure_future(agent.run())
    streams = await asyncio.open_connection(sock=ours)
    try:
        async with Client.over(*streams, abilities=abilities or Abilities()) as client:
            yield client, agent
    finally:
        await arrives(running, "the agent to end")
        agent.leave()


def chunk(text: str, kind: str = "agent_message_chunk") -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


# Greetings


async def test_an_agent_of_another_version_is_refused_in_words() -> None:
    with pytest.raises(EngineError, match=r"the agent uses protocol version 2; this client supports only 1"):
        async with odd({"initialize": {"protocolVersion": 2}}):
            pass


async def test_a_greeting_with_nothing_or_nonsense_in_it_offers_nothing() -> None:
    nonsense = {
        "protocolVersion": 1,
        "agentCapabilities": {"loadSession": "yes", "sessionCapabilities": {"list": None, "fork": False}},
        "agentInfo": [],
        "authMethods": [{"id": 1}, "x", {"id": "key"}],
    }
    for greeting in ({"protocolVersion": 1}, nonsense):
        async with odd({"initialize": greeting}) as (client, agent):
            for method in ("session/load", "session/list", "session/fork", "session/resume"):
                assert not client.agent.supports(method)
            with pytest.raises(InvalidInput, match="the agent does not offer session/list"):
                await client.list_page()
            assert [message["method"] for message in agent.heard] == ["initialize"]
    assert [method["id"] for method in client.agent.auth_methods] == ["key"]


async def test_the_greeting_says_what_the_client_can_do() -> None:
    async def read(_: Any) -> str:
        return ""

    async with odd() as (_, agent):
        said = agent.asked("initialize")[0]
        assert said["protocolVersion"] == 1
        assert said["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
        assert said["clientCapabilities"]["terminal"] is False
        assert said["clientInfo"]["name"] == "hitherto"
    async with odd(abilities=Abilities(read_file=read)) as (_, agent):
        said = agent.asked("initialize")[0]
        assert said["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": False}


# Answers


async def test_rows_that_make_no_sense_are_left_out_and_what_is_new_is_kept() -> None:
    rows = [
        {
            "sessionId": "a",
            "cwd": "/p",
            "title": 1,
            "updatedAt": {},
            "_meta": [],
            "additionalDirectories": "q",
        },
        {"sessionId": "b"},
        {"cwd": "/p"},
        "c",
        None,
        {
            "sessionId": "d",
            "cwd": "/p",
            "colour": "blue",
            "_meta": {"x": 1},
            "additionalDirectories": ["/q", 2],
        },
    ]
    async with odd({"session/list": {"sessions": rows, "nextCursor": 7}}) as (client, _):
        first, second = [row async for row in client.list_sessions()]
        assert (first.session_id, first.title, first.updated_at, first.meta) == ("a", None, None, {})
        assert first.additional_directories == ()
        assert first.archived is None
        assert (second.session_id, second.meta, second.extra) == ("d", {"x": 1}, {"colour": "blue"})
        assert second.additional_directories == ("/q",)


async def test_cursors_are_given_back_as_they_came_even_an_empty_one() -> None:
    cursors = iter(["", '{"x": 1}  ', None])

    async def page(_: OddAgent, message: Json) -> Json:
        return {"sessions": [{"sessionId": str(message["params"]), "cwd": "/"}], "nextCursor": next(cursors)}

    async with odd({"session/list": page}) as (client, agent):
        rows = [row async for row in client.list_sessions(cwd="/p", meta={"k": 1})]
        assert len(rows) == 3
        asked = agent.asked("session/list")
        assert [params.get("cursor") for params in asked] == [None, "", '{"x": 1}  ']
        assert all(params["cwd"] == "/p" and params["_meta"] == {"k": 1} for params in asked)
        assert "cursor" not in asked[0]


async def test_an_agent_that_gives_the_same_cursor_for_ever_is_noticed() -> None:
    async with odd({"session/list": {"sessions": [], "nextCursor": "again"}}) as (client, agent):
        with pytest.raises(EngineError, match="same cursor"):
            [row async for row in client.list_sessions()]
        assert len(agent.asked("session/list")) == 2


async def test_answers_that_are_no_objects_are_empty_ones_unless_something_is_needed() -> None:
    async def null(agent: OddAgent, message: Json) -> None:
        await agent.say({"id": message["id"], "result": None})

    async with odd(dict.fromkeys(("session/load", "session/delete", "session/new"), null)) as (client, _):
        assert await client.load_session("s", "/p") == OpenedSession(session_id="s")
        await client.delete_session("s")
        with pytest.raises(EngineError, match="lacks sessionId"):
            await client.new_session("/p")


async def test_a_refusal_keeps_its_number_and_its_data() -> None:
    error = {"error": {"code": -32000, "message": "Authentication required", "data": [1]}}
    async with odd({"session/new": error, "authenticate": {}, "logout": {}}) as (client, agent):
        with pytest.raises(AgentRefused, match="Authentication required") as refused:
            await client.new_session("/p")
        assert (refused.value.number, refused.value.data) == (-32000, [1])
        await client.authenticate("key")
        await client.logout()
        assert agent.asked("authenticate") == [{"methodId": "key"}]


async def test_servers_and_directories_are_sent_as_the_protocol_words_them() -> None:
    async with odd({"session/new": {"sessionId": "s"}, "session/resume": {}}) as (client, agent):
        servers: list[McpServer] = [
            StdioServer(name="files", command="/bin/files", args=("-x",), env={"A": "1"}),
            HttpServer(name="web", url="http://127.0.0.1/", headers={"B": "2"}),
        ]
        await client.new_session("/p", mcp_servers=servers, additional_directories=["/q"])
        await client.resume_session("s", "/p")
        (new,), (resumed,) = agent.asked("session/new"), agent.asked("session/resume")
        assert new == {
            "cwd": "/p",
            "additionalDirectories": ["/q"],
            "mcpServers": [
                {
                    "name": "files",
                    "command": "/bin/files",
                    "args": ["-x"],
                    "env": [{"name": "A", "value": "1"}],
                },
                {
                    "type": "http",
                    "name": "web",
                    "url": "http://127.0.0.1/",
                    "headers": [{"name": "B", "value": "2"}],
                },
            ],
        }
        assert resumed == {"sessionId": "s", "cwd": "/p", "mcpServers": []}


async def test_a_boolean_option_is_sent_as_one() -> None:
    option = {"id": "web", "name": "Web", "type": "boolean", "currentValue": False}
    new = {"sessionId": "s", "configOptions": [option, {"id": 1}, None]}
    async with odd({"session/new": new, "session/set_config_option": new}) as (client, agent):
        assert (await client.new_session("/p")).options == (option,)
        assert await client.set_config_option("s", "web", True) == (option,)
        assert agent.asked("session/set_config_option") == [
            {"sessionId": "s", "configId": "web", "type": "boolean", "value": True}
        ]


# Updates


async def test_updates_of_unknown_kinds_come_as_they_are_and_broken_ones_hurt_nobody() -> None:
    heard: list[Update] = []

    async def prompt(agent: OddAgent, _: Json) -> Json:
        await agent.update("s", sessionUpdate="dreams_chunk", dream={"of": "sheep"})
        await agent.say({"method": "session/update", "params": {"sessionId": "s"}})
        await agent.say({"method": "session/update", "params": {"sessionId": "s", "update": "x"}})
        await agent.say({"method": "_acme/changed", "params": {}})
        await agent.write(b"not json")
        await agent.update("other", **chunk("not for this turn"))
        await agent.write(
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
            b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"half \\ud83d"}}}}'
        )
        return {"stopReason": "end_turn", "_meta": {"k": 1}}

    async with odd({"session/prompt": prompt}, Abilities(update=heard.append)) as (client, _):
        steps = [step async for step in client.prompt("s", [{"type": "text", "text": "Hi"}])]
        assert steps == [
            Update(
                session_id="s",
                kind="dreams_chunk",
                fields={"sessionUpdate": "dreams_chunk", "dream": {"of": "sheep"}},
            ),
            Update(session_id="s", kind="agent_message_chunk", fields=chunk("half \ufffd")),
            Ended(stop_reason="end_turn", meta={"k": 1}),
        ]
        assert [update.text for update in heard] == ["", "not for this turn", "half \ufffd"]


async def test_updates_are_heard_in_their_order_and_all_before_the_answer() -> None:
    async def load(agent: OddAgent, _: Json) -> Json:
        for number in range(5_000):
            await agent.update("s", **chunk(str(number)))
        return {}

    heard: list[str] = []
    async with odd({"session/load": load}) as (client, _):
        await client.load_session("s", "/p", hear=lambda update: heard.append(update.text))
        assert heard == [str(number) for number in range(5_000)]


async def test_an_agent_is_held_up_by_a_slow_reader_but_not_by_one_who_waits_for_something_else() -> None:
    many = 200_000
    sent = 0

    async def load(agent: OddAgent, message: Json) -> None:
        async def flood() -> None:
            nonlocal sent
            while sent < many:
                await agent.update("s", **chunk("x" * 100))
                sent += 1
            await agent.say({"id": message["id"], "result": {}})

        flooding.append(asyncio.ensure_future(flood()))

    def hear(update: Update) -> None:
        if update.text == "later":
            later.set()

    flooding: list[asyncio.Future[None]] = []
    later = asyncio.Event()
    async with odd({"session/load": load, "session/delete": {}}, Abilities(update=hear)) as (client, agent):
        async with aclosing(client.replay_session("s", "/p")) as steps:
            assert isinstance(await anext(steps), Update)
            before = -1
            while sent != before:  # until the agent cannot send any more
                before = sent
                for _round in range(2_000):
                    await asyncio.sleep(0)
            assert UNREAD_LIMIT <= sent < many / 4
            await client.delete_session("other")  # whoever waits for an answer gets it
            assert sent < many
        flooding[0].cancel()
        await arrives(asyncio.wait(flooding), "the end of the flood")
        await agent.update("s", **chunk("later"))
        await arrives(later.wait(), "the next update")  # what nobody will hear any more holds nothing up


# Turns


async def test_a_turn_that_is_left_is_cancelled_and_over_before_the_next_one() -> None:
    async def prompt(agent: OddAgent, message: Json) -> Json | None:
        await agent.update("s", **chunk("Half"))
        waiting.append(message["id"])
        return None

    waiting: list[int] = []
    async with odd({"session/prompt": prompt}) as (client, agent):

        async def obey() -> None:
            async with within("the turn to be cancelled"):
                while not agent.asked("session/cancel"):
                    agent.told.clear()
                    await agent.told.wait()
            for _ in range(3 * UNREAD_LIMIT):
                await agent.update("s", **chunk("more" * 300))
            await agent.say({"id": waiting[0], "result": {"stopReason": "cancelled"}})

        obeying = asyncio.ensure_future(obey())
        async with aclosing(client.prompt("s", "Go")) as steps:
            assert isinstance(await anext(steps), Update)
        assert obeying.done()
        assert not agent.asked("$/cancel_request")


async def test_a_question_of_a_turn_that_is_cancelled_is_answered_with_cancelled() -> None:
    asked = asyncio.Event()

    async def permit(_: Question) -> str | None:
        asked.set()
        await asyncio.Event().wait()
        return None

    async def prompt(agent: OddAgent, message: Json) -> None:
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "y"}]}
        await agent.say({"id": 99, "method": "session/request_permission", "params": params})
        waiting.append(message["id"])

    waiting: list[int] = []
    async with odd({"session/prompt": prompt}, Abilities(permit=permit)) as (client, agent):
        turn = asyncio.ensure_future(anext(client.prompt("s", "Go")))
        await arrives(asked.wait(), "the question")
        await client.cancel("s")
        assert (await agent.heard_answer(99))["result"] == {"outcome": {"outcome": "cancelled"}}
        await agent.say({"id": waiting[0], "result": {"stopReason": "cancelled"}})
        assert await arrives(turn, "the end of the turn") == Ended(stop_reason="cancelled")


async def test_an_agent_that_hangs_up_in_a_turn_ends_it() -> None:
    async def prompt(agent: OddAgent, _: Json) -> None:
        await agent.update("s", **chunk("Half"))
        agent.fall_silent()

    async with odd({"session/prompt": prompt}) as (client, _):
        steps = client.prompt("s", "Go")
        assert await anext(steps) == Update(session_id="s", kind="agent_message_chunk", fields=chunk("Half"))
        with pytest.raises(AgentLeft):
            await anext(steps)
        with pytest.raises(AgentLeft):
            await client.list_page()
        with pytest.raises(AgentLeft):
            await client.cancel("s")


async def test_what_a_listener_raises_reaches_whoever_gave_it() -> None:
    async def replayed(agent: OddAgent, _: Json) -> Json:
        for text in ("one", "two"):
            await agent.update("s", **chunk(text))
        return {}

    heard: list[str] = []

    def hear(update: Update) -> None:
        heard.append(update.text)
        raise ValueError("not this")

    all_of_it: list[str] = []
    abilities = Abilities(update=lambda update: all_of_it.append(update.text))
    async with odd({"session/load": replayed}, abilities) as (client, _):
        with pytest.raises(ValueError, match="not this"):
            await client.load_session("s", "/p", hear=hear)
        await client.load_session("s", "/p")
    assert heard == ["one"]
    assert all_of_it == ["one", "two"] * 2


@pytest.mark.parametrize(
    ("data", "raised"),
    [
        ({}, SessionNotFound),
        ({"data": {"sessionId": "s"}}, SessionNotFound),
        ({"data": {"code": "session_not_found"}}, SessionNotFound),
        ({"data": {"code": "entry_not_found"}}, AgentRefused),
    ],
)
async def test_only_a_session_that_is_not_there_is_a_missing_session(
    data: Json, raised: type[Exception]
) -> None:
    error = {"error": {"code": -32002, "message": "not found", **data}}
    async with odd({"session/fork": error}) as (client, _):
        with pytest.raises(raised):
            await client.fork_session("s", "/p")
