"""Searches that take long: nobody else waits for them, and they say what is wrong instead of finding less."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.gateway.servers import Server, serving
from tests.support.waits import NEVER, arrives, until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hitherto.db"


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program writes to the search file, and does not come to an end."""
    db = apsw.Connection(str(file.with_name(f"{file.name}-search")))
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("ROLLBACK")
    finally:
        db.close()


def say(server: Server, *texts: str) -> None:
    session = server.call("session.create")["session_id"]
    messages = [{"role": "user", "content": text} for text in texts]
    server.call("session.append", {"session_id": session, "messages": messages})


def search(server: Server, text: str) -> Any:
    return server.rpc("session.search", {"query": text})


def running(server: Server) -> int:
    body = server.request("GET", "/metrics", server.bearer("ann")).body.decode()
    return next(
        int(float(line.split()[1]))
        for line in body.splitlines()
        if line.startswith("hitherto_requests_running ")
    )


def test_a_search_that_takes_too_long_says_so(file: Path) -> None:
    with serving(f"sqlite:///{file}", search=0.0) as server:
        say(server, *(f"w{number} w{number * 31}" for number in range(900)))
        error = search(server, "w*")["error"]
        assert error["data"] == {"code": "search_too_broad"}
        assert "write more of each word" in error["message"]


async def test_nobody_waits_for_the_search_of_another(file: Path) -> None:
    with serving(f"sqlite:///{file}", follow=NEVER) as server:
        say(server, "first")
        assert len(search(server, "first")["result"]["results"]) == 1
        with locked(file):
            say(server, "second")
            waiting = asyncio.create_task(asyncio.to_thread(search, server, "second"))
            await until(lambda: asyncio.to_thread(running, server), "the server to answer beside the search")
            assert server.request("GET", "/health").status == 200
            assert server.call("session.list", name="bob")["sessions"] == []
            assert not waiting.done()
        found = await arrives(waiting, "the search")
        assert len(found["result"]["results"]) == 1


async def test_a_search_whose_index_is_behind_finds_no_less_but_says_so(file: Path) -> None:
    with serving(f"sqlite:///{file}", follow=0.0) as server:
        say(server, "first")

        def found(text: str) -> list[Any]:
            hits: list[Any] = search(server, text).get("result", {}).get("results", [])
            return hits

        await until(lambda: asyncio.to_thread(found, "first"), "the first message to be found")
        with locked(file):
            say(server, "second")
            error = search(server, "first")["error"]
            assert error["data"].pop("code") == "index_behind"
            assert error["data"]["indexed"] < error["data"]["total"]
        await until(lambda: asyncio.to_thread(found, "second"), "the second message to be found")
