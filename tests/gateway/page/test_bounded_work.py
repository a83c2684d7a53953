"""Pages that would take minutes to make: they are shown plainly, they end when their reader leaves, and with the server."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

import hitherto
from hitherto.gateway.server.worker import MEMORY_BYTES
from hitherto.gateway.server.workers import COMMAND, Workers, WorkFailed, WorkTooSlow
from hitherto.model import Draft, Part, Principal, Text, ToolCall
from hitherto.presentation.effort import bounded
from hitherto.remote.sessions import open as open_remote
from tests.gateway.servers import Server, serving
from tests.support.waits import LIMIT, NEVER, arrives, until

ANN = Principal(owner="ann")
OURS = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin"}
FENCE = Text(text="```c\n" + "\n" * 49_000 + "```")
"""Pygments needs a minute and a half of CPU for this: its lexer of C is quadratic in empty lines."""
OLD, NEW = ("".join(f"{n * n * by % 1009 % 120}\n" for n in range(30_000)) for by in (7_919, 104_729))
EDIT = ToolCall(id="1", name="Edit", input={"old_string": OLD, "new_string": NEW})
"""Comparing these takes many seconds: each line is rare enough to be looked at, and has hundreds of equals."""
TABLE = Text(text="|a" * 2_500 + "\n" + "|-" * 2_500 + "|\n" + "|\n" * 1_250)
"""Takes a second of CPU as Markdown: each of its rows is short, and is filled up with thousands of cells."""
PATIENT = {"page_seconds": NEVER}
"""On a busy machine too, only CPU time counts."""
UNLIMITED = {"page_effort": NEVER, "page_seconds": NEVER}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'hitherto.db'}"


async def said(store: str, *parts: Part) -> str:
    async with hitherto.open(store) as sessions:
        session = await sessions.create(ANN)
        drafts = [Draft(role="assistant", parts=(part,)) for part in parts]
        drafts = [*drafts, Draft(role="user", parts=(Text(text="the last word"),))]
        await sessions.append(ANN, session.id, drafts)
        return session.id


def cookie(server: Server) -> dict[str, str]:
    """The cookie of somebody who signed in to the page."""
    body = b'{"token": "%s"}' % server.tokens["ann"].secret.encode()
    reply = server.request("POST", "/signin", {**OURS, "Content-Type": "application/json"}, body)
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0], **OURS}


@contextmanager
def reading(server: Server, path: str) -> Iterator[socket.socket]:
    """A reader who has asked for a page."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in cookie(server).items())
    with server.plain() as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n{headers}\r\n".encode())
        yield line


def workers_of(server: Server) -> list[psutil.Process]:
    return psutil.Process(server.process.pid).children()


def here() -> list[psutil.Process]:
    """The workers of this process."""
    return [each for each in psutil.Process().children() if COMMAND[-1] in each.cmdline()]


async def works(server: Server) -> psutil.Process:
    """Wait until a worker has been at it for a while."""

    def busy() -> list[psutil.Process]:
        return [each for each in workers_of(server) if each.cpu_times().user > 2]

    return (await until(busy, "a worker that makes the page"))[0]


async def test_code_that_takes_minutes_to_highlight_is_shown_plainly(store: str) -> None:
    session = await said(store, *[FENCE] * 5)
    with serving(store, limits=PATIENT) as server:
        reply = server.request("GET", f"/s/{session}", cookie(server))
        assert reply.status == 200
        assert b"the last word" in reply.body


async def test_texts_that_take_long_to_compare_are_shown_as_old_and_new(store: str) -> None:
    session = await said(store, EDIT)
    with serving(store, limits=PATIENT) as server:
        reply = server.request("GET", f"/s/{session}?steps=1", cookie(server))
        assert b"the last word" in reply.body
        assert b'<span class="removed"' in reply.body
        assert b'<span class="same"' not in reply.body


async def test_ordinary_code_is_highlighted_beside_code_that_is_not(store: str) -> None:
    ordinary = Text(text="```python\nimport this\n```")
    session = await said(store, ordinary, FENCE, ordinary)
    with serving(store, limits=PATIENT) as server:
        reply = server.request("GET", f"/s/{session}", cookie(server))
        assert reply.body.count(b'<span class="kn">import</span>') == 2


@pytest.mark.parametrize("format", ["html", "markdown"])
async def test_an_export_that_takes_long_has_the_rest_as_plain_text(store: str, format: str) -> None:
    session = await said(store, Text(text="*first*"), *[TABLE] * 30)
    with serving(store, limits=PATIENT) as server:
        data = server.call("session.export", {"session_id": session, "format": format})["data"]
        assert "the last word" in data
        if format == "html":
            assert "<em>first</em>" in data
            assert data.count("<pre>|a") >= 20


@pytest.mark.parametrize("way", ["review", "socket"])
async def test_other_ways_to_an_export_have_it_made_by_a_worker_too(
    store: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    session = await said(store, TABLE)
    with serving(store, limits=PATIENT) as server:
        assert workers_of(server) == []
        if way == "review":
            reply = server.request("GET", f"/export?session={session}&format=html", cookie(server))
            assert reply.status == 200
        else:
            monkeypatch.setenv("HITHERTO_TOKEN", server.tokens["ann"].secret)
            async with open_remote(f"http://{server.host}") as remote:
                pieces = [piece async for piece in remote.transfer.export_file(ANN, session, "html")]
            assert b"the last word" in b"".join(pieces)
        assert len(workers_of(server)) == 1


async def test_the_work_ends_when_its_reader_leaves(store: str) -> None:
    session = await said(store, FENCE)
    with serving(store, limits=UNLIMITED) as server:
        with reading(server, f"/s/{session}"):
            worker = await works(server)
        await until(lambda: not worker.is_running(), "the worker to end")
        assert server.request("GET", "/health").status == 200


async def test_a_signal_ends_the_server_while_a_page_is_made(store: str) -> None:
    session = await said(store, FENCE)
    with serving(store, limits=UNLIMITED, where={"grace": 0}, noisy=True) as server:
        with reading(server, f"/s/{session}"):
            worker = await works(server)
            server.signal()
            assert await server.ended() == 0
        assert not worker.is_running()


async def test_others_have_their_pages_while_one_owner_has_many_that_take_long() -> None:
    workers = Workers(NEVER, NEVER)

    async def ask(owner: str, *work: object) -> bytes:
        async with workers.turn(owner) as run:
            return await run(*work)

    slow = [asyncio.create_task(ask("ann", time.sleep, NEVER)) for _ in range(8)]
    assert await arrives(ask("bob", bytes, 3), "the page of another owner") == bytes(3)
    for each in slow:
        each.cancel()
    await arrives(asyncio.wait(slow), "the pages that nobody wants any more")
    await workers.close()
    assert here() == []


async def test_a_worker_that_does_not_answer_is_killed_and_says_so() -> None:
    workers = Workers(NEVER, 0.001)
    async with workers.turn("ann") as run:
        with pytest.raises(WorkTooSlow):
            await arrives(run(time.sleep, LIMIT), "the end of its time")
    assert (len(workers), here()) == (0, [])


async def test_what_takes_too_much_memory_is_given_up_too() -> None:
    workers = Workers(NEVER, NEVER)
    async with workers.turn("ann") as run:
        result = run(bounded, partial(bytes, 2 * MEMORY_BYTES), partial(bytes, 3))
        assert await arrives(result, "something smaller") == bytes(3)
    await workers.close()


async def test_an_error_of_the_work_is_told_and_its_worker_goes_on() -> None:
    workers = Workers(NEVER, NEVER)
    async with workers.turn("ann") as run:
        with pytest.raises(WorkFailed, match="ZeroDivisionError"):
            await arrives(run(divmod, 1, 0), "an error")
        assert await arrives(run(bytes, 2), "a result") == bytes(2)
    await workers.close()
