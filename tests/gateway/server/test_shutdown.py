"""How a server ends: turns are finished, or ended and kept; nothing new is taken; a second signal does not wait."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import Principal, plain_text
from tests.gateway.servers import Client, Json, Server, awaited, go, serving
from tests.support.waits import arrives, until

ANN = Principal(owner="ann")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'hitherto.db'}"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "go")
    return tmp_path / "go"


class Prompted:
    """A session with a running turn, and the request that waits for it."""

    def __init__(self, session_id: str, answer: asyncio.Task[Any]) -> None:
        self.session_id, self.answer = session_id, answer


@asynccontextmanager
async def by_http(server: Server, pipe: Path) -> AsyncIterator[Prompted]:
    named = {"session_id": server.call("session.create")["session_id"]}
    asked = {**named, "content": f"wait {pipe}"}
    sent = asyncio.create_task(asyncio.to_thread(server.rpc, "session.send", asked))
    await awaited(pipe)
    yield Prompted(named["session_id"], sent)


@asynccontextmanager
async def by_socket(server: Server, pipe: Path) -> AsyncIterator[Prompted]:
    async with server.socket() as client:
        named = await client.call("session.create")
        named = {"session_id": named["session_id"]}
        number = await client.begin("session.send", {**named, "content": f"wait {pipe}"})
        await awaited(pipe)
        yield Prompted(named["session_id"], asyncio.create_task(client.answer(number)))


@asynccontextmanager
async def by_agent(server: Server, pipe: Path) -> AsyncIterator[Prompted]:
    async with server.socket(path="/acp") as client:
        await client.call("initialize", {"protocolVersion": 1})
        made = await client.call("session/new", {"cwd": "/", "mcpServers": []})
        named = {"session_id": made["sessionId"]}
        prompt = [{"type": "text", "text": f"wait {pipe}"}]
        number = await client.begin("session/prompt", {"sessionId": made["sessionId"], "prompt": prompt})
        await awaited(pipe)
        yield Prompted(named["session_id"], asyncio.create_task(client.answer(number)))


WAYS = {"http": by_http, "socket": by_socket, "agent": by_agent}


async def kept(store: str, session_id: str) -> tuple[str, list[str]]:
    """What the session does, and what was said in it, as another process sees it."""
    async with hitherto.open(store) as sessions:
        page = await sessions.history(ANN, session_id)
        status = (await sessions.get(ANN, session_id)).status
        assert await sessions.leases.current(ANN, session_id) is None
        return status, [plain_text(entry) for entry in page.entries]


async def refused(server: Server) -> None:
    """Wait until the server takes no connection any more."""

    def no_longer_listens() -> bool:
        try:
            server.plain().close()
        except OSError:
            return True
        return False

    await until(no_longer_listens, "the server to stop listening")


@pytest.mark.parametrize("way", WAYS)
async def test_a_running_turn_is_finished_and_answered(store: str, pipe: Path, way: str) -> None:
    with serving(store) as server:
        async with WAYS[way](server, pipe) as prompted:
            server.signal(signal.SIGTERM)
            await refused(server)
            assert not prompted.answer.done()
            go(pipe)
            answer = await arrives(prompted.answer, "the answer to the prompt")
            told = answer["result"].get("stop_reason") or answer["result"].get("stopReason")
            assert told == "end_turn"
            assert await server.ended() == 0
        assert await kept(store, prompted.session_id) == ("idle", [f"wait {pipe}", "Waiting. Done."])


@pytest.mark.parametrize("way", WAYS)
async def test_a_second_signal_ends_the_turn_and_keeps_what_was_said(
    store: str, pipe: Path, way: str
) -> None:
    with serving(store) as server:
        async with WAYS[way](server, pipe) as prompted:
            server.signal(signal.SIGINT)
            await refused(server)
            server.signal(signal.SIGINT)
            assert await server.ended() == 0
            await arrives(asyncio.wait([prompted.answer]), "the answer to the prompt")
            prompted.answer.exception()
        assert await kept(store, prompted.session_id) == ("idle", [f"wait {pipe}", "Waiting. "])


async def test_further_signals_do_not_cut_the_end_short(store: str, pipe: Path) -> None:
    with serving(store) as server:
        async with by_socket(server, pipe) as prompted:
            for _ in range(2):
                server.signal(signal.SIGTERM)
                await refused(server)

            def is_over() -> bool:
                server.signal(signal.SIGTERM)
                return server.process.poll() is not None

            await until(is_over, "the server's end")
            await asyncio.wait([prompted.answer])
            prompted.answer.exception()
        assert await kept(store, prompted.session_id) == ("idle", [f"wait {pipe}", "Waiting. "])


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_that_takes_too_long_is_ended_and_kept(store: str, pipe: Path, way: str) -> None:
    with serving(store, where={"grace": 0.0}, noisy=True) as server:
        async with WAYS[way](server, pipe) as prompted:
            server.signal(signal.SIGTERM)
            assert await server.ended() == 0
            await arrives(asyncio.wait([prompted.answer]), "the answer to the prompt")
            prompted.answer.exception()
        assert await kept(store, prompted.session_id) == ("idle", [f"wait {pipe}", "Waiting. "])


async def test_another_server_goes_on_with_the_session(store: str, pipe: Path) -> None:
    with serving(store) as here, serving(store, tokens={}) as there:
        there.tokens = here.tokens
        async with by_socket(here, pipe) as prompted:
            here.signal()
            await refused(here)
            here.signal()
            await here.ended()
            await arrives(asyncio.wait([prompted.answer]), "the answer to the prompt")
            prompted.answer.exception()
        sent = there.call("session.send", {"session_id": prompted.session_id, "content": "Go on"})
        assert sent["message"]["content"] == "You said: Go on"


async def test_idle_sockets_are_closed_at_once(store: str) -> None:
    with serving(store) as server:
        async with (
            server.socket() as client,
            server.socket(path="/acp") as agent,
            server.socket(None) as stranger,
        ):
            await client.call("session.subscribe")
            await agent.call("initialize", {"protocolVersion": 1})
            server.signal()
            for each in (client, agent, stranger):
                assert (await each.closed())[0] == 1012
            assert await server.ended() == 0


async def test_nothing_new_is_taken_while_it_ends(store: str, pipe: Path) -> None:
    with serving(store) as server:
        async with server.socket() as client:
            named: Json = {"session_id": (await client.call("session.create"))["session_id"]}
            number = await client.begin("session.send", {**named, "content": f"wait {pipe}"})
            await awaited(pipe)
            server.signal()
            await refused(server)
            answer = await client.rpc("session.create")
            assert answer["error"]["data"] == {"code": "ending"}
            go(pipe)
            assert (await client.answer(number))["result"]["stop_reason"] == "end_turn"
            assert (await client.closed())[0] == 1012


async def test_a_turn_that_waits_for_its_client_is_finished_too(store: str) -> None:
    with serving(store) as server:
        async with server.socket(path="/acp") as client:
            await client.call("initialize", {"protocolVersion": 1})
            made = await client.call("session/new", {"cwd": "/", "mcpServers": []})
            call = {"id": "c", "name": "write_file", "kind": "edit", "input": {}}
            script = json.dumps([{"call": call}, {"permit": True}, {"result": "done"}, "All done."])
            prompt = [{"type": "text", "text": script}]
            number = await client.begin("session/prompt", {"sessionId": made["sessionId"], "prompt": prompt})
            asked = await permission(client)
            server.signal()
            await refused(server)
            chosen = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
            await client.send(json.dumps({"jsonrpc": "2.0", "id": asked, "result": chosen}))
            assert (await client.answer(number))["result"]["stopReason"] == "end_turn"
            assert (await client.closed())[0] == 1012


async def permission(client: Client) -> int:
    """The number of the question that the agent asks."""
    await client.until(lambda params: "toolCall" in params)
    number: int = client.seen[-1]["id"]
    return number


async def test_a_thread_that_does_not_end_keeps_no_server(store: str) -> None:
    with serving(store, where={"grace": 0}, last=0.0, noisy=True) as server:
        async with server.socket() as client:
            named = {"session_id": (await client.call("session.create"))["session_id"]}
            await client.call("session.subscribe", named)
            await client.begin("session.send", {**named, "content": "block"})
            await client.until(lambda event: "Blocked." in json.dumps(event))
            server.signal()
            assert await server.ended() == 0
