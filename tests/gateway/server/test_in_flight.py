"""What is being made when its reader leaves, or the server ends: nothing is made for nobody, and nothing keeps the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from hitherto.gateway.transport.limits import Outgoing
from tests.gateway.page.test_bounded_work import TABLE, UNLIMITED, cookie, workers_of, works
from tests.gateway.server.test_searches import locked, running, say, search
from tests.gateway.servers import Server, serving
from tests.support.waits import NEVER, arrives, until

Asking = Callable[[Server, str], object]
ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hitherto.db"


def called(tool: str, **given: object) -> bytes:
    """A call of a tool of MCP."""
    params = {"name": tool, "arguments": given}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def ask_tool(server: Server, tool: str, **given: object) -> str:
    reply = server.request("POST", "/mcp", {**server.bearer("ann"), **ACCEPTED}, called(tool, **given))
    return str(reply.json["result"]["content"][0]["text"])


def making(server: Server) -> int:
    """How many bytes of long answers are being made or sent."""
    body = server.request("GET", "/metrics", server.bearer("ann")).body.decode()
    lines = (line.split() for line in body.splitlines())
    return next(int(float(line[1])) for line in lines if line[0] == "hitherto_answer_bytes")


def long_session(server: Server) -> str:
    session = server.call("session.create")["session_id"]
    messages = [{"role": "user", "content": TABLE.text}] * 50
    server.call("session.append", {"session_id": session, "messages": messages})
    return str(session)


def search_words(server: Server, _: str) -> object:
    return search(server, "second")


def search_by_tool(server: Server, _: str) -> object:
    return ask_tool(server, "sessions_search", query="second")


def export(server: Server, session: str) -> object:
    return server.rpc("session.export", {"session_id": session, "format": "html"})


def show(server: Server, session: str) -> object:
    return server.request("GET", f"/s/{session}", cookie(server))


def review(server: Server, session: str) -> object:
    return server.request("GET", f"/export?session={session}", cookie(server))


@pytest.mark.parametrize("asking", [search_words, search_by_tool, export, show, review])
async def test_a_signal_ends_the_server_whatever_is_being_made(file: Path, asking: Asking) -> None:
    searches = asking in (search_words, search_by_tool)
    never: dict[str, Any] = dict.fromkeys(("follow", "patience", "last"), NEVER)
    ending = serving(f"sqlite:///{file}", limits=UNLIMITED, where={"grace": 0}, noisy=True, **never)
    with ending as server, ExitStack() as stack:
        say(server, "first")
        assert len(search(server, "first")["result"]["results"]) == 1
        session = "" if searches else long_session(server)
        if searches:
            stack.enter_context(locked(file))
            say(server, "second")
        asked = asyncio.create_task(asyncio.to_thread(_unanswered, asking, server, session))
        if asking is search_by_tool:
            await until(lambda: making(server), "the call of the tool to be answered")
        elif asking is search_words:
            await until(lambda: running(server), "the search to run")
        else:
            await works(server)
        children = psutil.Process(server.process.pid).children()
        server.signal()
        assert await server.ended() == 0
        assert not any(child.is_running() for child in children)
        await arrives(asked, "the end of the request")


def _unanswered(asking: Asking, server: Server, session: str) -> None:
    with suppress(Exception):  # whatever the answer is, or if there is none
        asking(server, session)


async def test_a_call_of_a_tool_ends_when_its_reader_leaves(file: Path) -> None:
    with serving(f"sqlite:///{file}", follow=NEVER, patience=NEVER) as server:
        say(server, "first")
        assert "first" in ask_tool(server, "sessions_search", query="first")
        with locked(file):
            say(server, "second")
            body = called("sessions_search", query="second")
            headers = {**server.bearer("ann"), **ACCEPTED, "Content-Length": str(len(body))}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            with server.plain() as line:
                line.sendall(f"POST /mcp HTTP/1.1\r\nHost: {server.host}\r\n{head}\r\n".encode() + body)
                await until(lambda: making(server), "the call to be answered")
            await until(lambda: not making(server), "the end of a call that nobody waits for")


def test_a_tool_reads_by_a_worker(file: Path) -> None:
    with serving(f"sqlite:///{file}") as server:
        session = long_session(server)
        assert workers_of(server) == []
        assert (
            TABLE.text[:100]
            in json.loads(ask_tool(server, "sessions_read", session_id=session))["messages"][0]["text"]
        )
        assert len(workers_of(server)) == 1


async def test_long_answers_are_bounded_for_each_token_and_in_sum() -> None:
    outgoing = Outgoing(250, 100)
    begun, done = list[str](), asyncio.Event()

    async def make(token: str) -> None:
        async with outgoing.making(token, 80):
            begun.append(token)
            await done.wait()

    tasks = [asyncio.create_task(make(token)) for token in ("ann", "ann", "bob", "cem", "dan")]
    await until(lambda: len(begun) == 3, "those for which there is room")
    assert (begun, outgoing.total) == (["ann", "bob", "cem"], 240)
    done.set()
    await arrives(asyncio.gather(*tasks), "the others")
    assert (sorted(begun), outgoing.total) == (["ann", "ann", "bob", "cem", "dan"], 0)
