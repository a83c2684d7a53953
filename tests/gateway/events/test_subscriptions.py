"""Subscriptions: what happens is told in order, across servers, from a cursor on, and to slow readers too."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.gateway.servers import Client, Json, Server, go, serving
from tests.support.homes import PostgresHome
from tests.support.postgres_server import PostgresServer
from tests.support.waits import LIMIT, in_time, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('events') / 'r.db'}") as running:
        yield running


@pytest.fixture(scope="module", params=("sqlite", "postgres"))
def two(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Two servers on one store. The tokens of the first are good at the second."""
    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path_factory.mktemp('two') / 'r.db'}"
        if request.param == "postgres":
            database: PostgresServer = request.getfixturevalue("postgres_server")
            url = PostgresHome(database, "two_servers").url
            stack.callback(database.drop_database, "two_servers")
        first = stack.enter_context(serving(url))
        second = stack.enter_context(serving(url, tokens={}))
        second.tokens = first.tokens
        yield first, second


def said(*texts: str) -> Json:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


async def created(client: Client) -> Json:
    return {"session_id": (await client.call("session.create"))["session_id"]}


async def followed(client: Client, **wish: Any) -> str:
    subscription: str = (await client.call("session.subscribe", wish))["subscription_id"]
    return subscription


def texts(events: list[Json]) -> list[str]:
    """What was said in the messages that were told."""
    told = (message for event in events if event["event"] == "entries" for message in event["messages"])
    return [message["content"] for message in told]


def is_event(name: str, **fields: Any) -> Any:
    return lambda event: (
        event["event"] == name and all(event.get(key) == value for key, value in fields.items())
    )


# All sessions


async def test_what_happens_to_sessions_is_told_in_order(server: Server) -> None:
    async with server.socket() as client, server.socket() as other:
        subscription = await followed(client)
        named = await created(other)
        await client.until(is_event("created", **named))
        await other.call("sessions.set_topic", {**named, "topic": "New"})
        changed = await client.until(is_event("updated", **named))
        await other.call("session.delete", named)
        gone = await client.until(is_event("deleted", **named))
        assert changed["session"]["title"] == "New"
        assert "session" not in gone
        assert [event["event"] for event in client.events] == ["created", "updated", "deleted"]
        assert {event["subscription_id"] for event in client.events} == {subscription}


async def test_only_the_events_that_were_wished_for_are_told(server: Server) -> None:
    async with server.socket() as client:
        await followed(client, events=["deleted"])
        named = await created(client)
        await client.call("session.append", {**named, **said("Hello")})
        await client.call("session.delete", named)
        await client.until(is_event("deleted", **named))
        assert len(client.events) == 1


async def test_nothing_of_another_owner_is_told(server: Server) -> None:
    async with server.socket("bob") as bob, server.socket("ann") as ann:
        for client in (ann, bob):
            await followed(client)
        theirs = await created(ann)
        await ann.call("session.append", {**theirs, **said("Secret")})
        own = await created(bob)
        first = await bob.until(lambda _: True)
        assert first["session_id"] == own["session_id"]
        await bob.until(is_event("created", **own))
        assert {event["session_id"] for event in bob.events} == {own["session_id"]}
        foreign = await bob.rpc("session.subscribe", theirs)
        assert foreign["error"]["data"]["code"] == "session_not_found"


async def test_a_subscription_that_was_ended_is_told_nothing(server: Server) -> None:
    async with server.socket() as client:
        ended, kept = await followed(client), await followed(client)
        await client.call("session.unsubscribe", {"subscription_id": ended})
        named = await created(client)
        await client.until(is_event("created", **named))
        assert {event["subscription_id"] for event in client.events} == {kept}


async def test_subscriptions_need_a_socket(server: Server) -> None:
    assert server.rpc("session.subscribe")["error"]["data"]["code"] == "invalid_input"


@pytest.mark.parametrize("cursor", ["", "x", "x.y", "rQ.U83i6vWibL3m9GF_yguyEQ"])
async def test_a_cursor_that_is_none_is_refused(server: Server, cursor: str) -> None:
    async with server.socket() as client:
        answer = await client.rpc("session.subscribe", {"cursor": cursor})
        assert answer["error"]["data"]["code"] == "invalid_cursor"
        named = await created(client)
        answer = await client.rpc("session.subscribe", {**named, "cursor": cursor})
        assert answer["error"]["data"]["code"] == "invalid_cursor"


async def test_a_cursor_is_good_for_its_owner_and_its_question_only(server: Server) -> None:
    async with server.socket("ann") as ann, server.socket("bob") as bob:
        cursor = (await ann.call("session.subscribe"))["cursor"]
        for client, named in ((bob, {}), (ann, await created(ann))):
            answer = await client.rpc("session.subscribe", {**named, "cursor": cursor})
            assert answer["error"]["data"]["code"] == "invalid_cursor"


async def test_compaction_is_told(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        turns = [f"{'We decided that the port is 8787. ' * 60} ({n})" for n in range(20)]
        await client.call("session.append", {**named, **said(*turns)})
        await followed(client)
        await followed(client, **named)
        done = await client.call("session.compact", named)
        assert done["compacted"], done
        for _ in range(2):
            event = await client.until(is_event("compacted", **named))
            assert event["session"]["last_compaction"] is not None
            client.seen.remove({"jsonrpc": "2.0", "method": "session.event", "params": event})


# One session


async def test_messages_are_told_in_order_and_once(server: Server) -> None:
    async with server.socket() as client, server.socket() as other:
        named = await created(other)
        await other.call("session.append", {**named, **said("before")})
        await followed(client, **named)
        for number in range(20):
            await other.call("session.append", {**named, **said(f"{number}", f"{number}'")})
        await client.until(lambda event: "19'" in texts([event]))
        assert texts(client.events) == [each for n in range(20) for each in (f"{n}", f"{n}'")]
        state = await client.until(lambda e: e["event"] == "updated" and e["session"]["message_count"] == 41)
        assert state["session"]["session_id"] == named["session_id"]


async def test_words_are_told_while_they_are_said(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    async with server.socket() as client, server.socket() as other:
        named = await created(other)
        await followed(client, **named)
        number = await other.begin("session.send", {**named, "content": f"wait {tmp_path / 'go'}"})
        delta = await client.until(is_event("delta"))
        assert delta["text"] == "Waiting. "
        go(tmp_path / "go")
        answer = (await other.answer(number))["result"]["message"]
        stored = await client.until(lambda event: "Waiting. Done." in texts([event]))
        assert stored["messages"][-1]["message_id"] == delta["message_id"] == answer["message_id"]
        await client.until(lambda e: e["event"] == "updated" and e["session"]["status"] == "idle")
        assert texts(client.events) == [f"wait {tmp_path / 'go'}", "Waiting. Done."]


async def test_words_are_told_once(server: Server, tmp_path: Path) -> None:
    pipes = [tmp_path / "one", tmp_path / "two"]
    for pipe in pipes:
        os.mkfifo(pipe)
    async with server.socket() as client, server.socket() as other:
        named = await created(other)
        await followed(client, **named, events=["delta"])
        number = await other.begin("session.send", {**named, "content": f"wait {pipes[0]} {pipes[1]}"})
        for pipe, text in zip(pipes, ("Waiting. ", "Still waiting. "), strict=True):
            await client.until(is_event("delta", text=text))
            go(pipe)
        await other.answer(number)
        assert [event["text"] for event in client.events] == ["Waiting. ", "Still waiting. "]


async def test_words_being_said_are_no_event_of_a_session_in_the_list(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    async with server.socket() as client, server.socket() as other:
        named = await created(other)
        every = await followed(client)
        await followed(client, **named, events=["delta"])
        number = await other.begin("session.send", {**named, "content": f"wait {tmp_path / 'go'}"})
        await client.until(is_event("delta"))
        go(tmp_path / "go")
        await other.answer(number)
        await client.until(lambda e: e["event"] == "updated" and e["session"]["status"] == "idle")
        told = [e["session"]["revision"] for e in client.events if e["subscription_id"] == every]
        assert told == sorted(set(told))


async def test_thoughts_are_told_as_thoughts(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        await followed(client, **named, events=["delta"])
        await client.begin("session.send", {**named, "content": '[{"thought": "Hm."}, {"hang": true}]'})
        delta = await client.until(is_event("delta"))
        assert (delta["thought"], delta["text"]) == (True, "Hm.")
        assert (await client.call("session.cancel", named))["cancelled"]


async def test_a_session_that_is_rewound_says_so(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        await client.call("session.append", {**named, **said("one", "two")})
        await followed(client, **named)
        await client.call("sessions.reset", named)
        event = await client.until(is_event("entries"))
        assert [message["episode"] for message in event["messages"]] == ["manual"]
        await client.call("session.append", {**named, **said("three")})
        await client.until(lambda event: texts([event]) == ["three"])
        (kept,) = (await client.call("sessions.compaction.list", named))["checkpoints"]
        await client.call("sessions.compaction.restore", {**named, "checkpoint_id": kept["checkpoint_id"]})
        event = await client.until(lambda event: event.get("reset") is True)
        assert event["messages"] == []
        await client.call("session.append", {**named, **said("four")})
        await client.until(lambda event: texts([event]) == ["four"])


async def test_the_end_of_a_session_is_the_last_event(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        subscription = await followed(client, **named)
        await client.call("session.delete", named)
        await client.until(is_event("deleted", **named))
        assert "result" in await client.rpc("session.unsubscribe", {"subscription_id": subscription})


async def test_ephemeral_sessions_tell_too(server: Server) -> None:
    async with server.socket() as client:
        made = await client.call("session.create", {"session_key": f"agent:main:ephemeral:{uuid.uuid4()}"})
        named = {"session_key": made["session_key"]}
        await followed(client, **named)
        await client.call("session.append", {**named, **said("Hello")})
        await client.until(lambda event: texts([event]) == ["Hello"])


async def test_a_session_goes_on_from_its_cursor(server: Server) -> None:
    async with server.socket() as client:
        named = await created(client)
        cursor = (await client.call("session.subscribe", named))["cursor"]
        await client.call("session.append", {**named, **said("one")})
        cursor = (await client.until(lambda event: texts([event]) == ["one"]))["cursor"]
    async with server.socket() as client:
        await client.call("session.append", {**named, **said("two")})
        await client.call("session.append", {**named, **said("three")})
        await followed(client, **named, cursor=cursor)
        await client.until(lambda event: "three" in texts([event]))
        assert texts(client.events) == ["two", "three"]


# Two servers


async def test_what_happens_at_one_server_is_told_by_another(two: tuple[Server, Server]) -> None:
    here, there = two
    async with here.socket() as client, there.socket() as other:
        await followed(client)
        named = await created(other)
        await client.until(is_event("created", **named))
        await followed(client, **named, events=["entries"])
        for number in range(10):
            await other.call("session.append", {**named, **said(f"{number}")})
        await client.until(lambda event: "9" in texts([event]))
        assert texts(client.events) == [f"{number}" for number in range(10)]


async def test_a_client_that_moves_to_another_server_misses_nothing(two: tuple[Server, Server]) -> None:
    here, there = two
    async with here.socket() as client:
        cursor = (await client.call("session.subscribe"))["cursor"]
        first = await created(client)
        cursor = (await client.until(is_event("created", **first)))["cursor"]
    second, third = there.call("session.create"), here.call("session.create")
    here.call("session.delete", first)
    async with there.socket() as client:
        await followed(client, cursor=cursor)
        for event in (("created", second), ("created", third), ("deleted", first)):
            await client.until(is_event(event[0], session_id=event[1]["session_id"]))
        assert len(client.events) == 3


async def test_words_said_at_one_server_are_told_by_another(
    two: tuple[Server, Server], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    here, there = two
    async with here.socket() as client, there.socket() as other:
        named = await created(other)
        await followed(client, **named)
        number = await other.begin("session.send", {**named, "content": f"wait {tmp_path / 'go'}"})
        assert (await client.until(is_event("delta")))["text"] == "Waiting. "
        go(tmp_path / "go")
        await other.answer(number)
        await client.until(lambda event: "Waiting. Done." in texts([event]))


# Slow readers


def narrow(server: Server) -> socket.socket:
    """A connection that takes little ahead."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", server.port))
    made.setblocking(False)
    return made


@asynccontextmanager
async def unread(server: Server) -> AsyncIterator[Client]:
    """A client that reads only when it is told to."""
    async with server.socket(
        sock=narrow(server), max_queue=1, ping_interval=None, close_timeout=0.1
    ) as client:
        yield client


async def test_those_who_do_not_read_are_closed_and_go_on_later(tmp_path: Path) -> None:
    limits = {"stall_seconds": 0.3, "linger_seconds": 0.3}
    store = f"sqlite:///{tmp_path / 'r.db'}"
    expected = [f"{number} ".ljust(100_000, "x") for number in range(40)]
    with serving(store, limits=limits) as server, serving(store, tokens={}) as patient:
        patient.tokens = server.tokens
        async with patient.socket() as writer, unread(server) as slow:
            named = await created(writer)
            await followed(slow, **named, events=["entries"])
            await writer.call("session.append", {**named, **said(expected[0])})
            await slow.until(lambda event: expected[0] in texts([event]))
            for text in expected[1:]:
                await writer.call("session.append", {**named, **said(text)})
            await numbers(server, "hitherto_sockets", 0)
            assert (await slow.closed())[0] in (1013, 1006, None)
            known = texts(slow.events)
            assert known == expected[: len(known)]
            assert 0 < len(known) < len(expected)
        async with patient.socket() as client:
            await followed(client, **named, events=["entries"], cursor=slow.events[-1]["cursor"])
            await client.until(lambda event: expected[-1] in texts([event]))
            assert known + texts(client.events) == expected


async def test_those_who_do_not_read_cost_little_and_hold_up_nobody(tmp_path: Path) -> None:
    expected = [f"{number} ".ljust(50_000, "x") for number in range(100)]
    with serving(f"sqlite:///{tmp_path / 'r.db'}") as server:
        async with server.socket() as writer, server.socket() as reader, AsyncExitStack() as stack:
            slow = [await stack.enter_async_context(unread(server)) for _ in range(24)]
            named = await created(writer)
            for each in (reader, *slow):
                await followed(each, **named, events=["entries"])
            process = psutil.Process(server.process.pid)
            before = process.memory_info().rss
            for text in expected:
                await writer.call("session.append", {**named, **said(text)})
            await reader.until(lambda event: expected[-1] in texts([event]))
            grown = process.memory_info().rss - before
            assert texts(reader.events) == expected
            assert grown < len(slow) * sum(map(len, expected)) / 3, f"{grown:,}"
            await slow[0].until(lambda event: expected[-1] in texts([event]))
            assert texts(slow[0].events) == expected  # who reads on gets all of it


async def test_long_answers_that_are_not_read_are_not_piled_up(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'r.db'}", limits={"answer_bytes_each": 1}) as server:
        async with server.socket() as writer, unread(server) as slow:
            named = await created(writer)
            await writer.call("session.append", {**named, **said("x" * 4_000_000)})
            await writer.call("session.history", named)  # once, so that what it takes is not counted below
            process = psutil.Process(server.process.pid)
            before = process.memory_info().rss
            asked = [await slow.begin("session.history", named) for _ in range(24)]
            for _ in range(20):  # everybody else is served, of what is short at least
                await writer.call("session.get", named)
            grown = process.memory_info().rss - before
            # Of 24 answers a few at once: one that is read, one that is written, one that is sent, and what was free before.
            assert grown < 10 * 4_000_000, f"{grown:,}"
            for number in asked:
                assert len((await slow.answer(number))["result"]["messages"][0]["content"]) == 4_000_000


async def test_an_answer_that_is_not_read_is_given_up(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'r.db'}", limits={"stall_seconds": 0.3}) as server:
        made = server.call("session.create")
        named = {"session_id": made["session_id"]}
        server.call("session.append", {**named, **said("x" * 8_000_000)})
        with narrow(server) as connection:
            connection.settimeout(LIMIT)
            asked = {"jsonrpc": "2.0", "id": 1, "method": "session.history", "params": named}
            body = json.dumps(asked)
            told = f"POST /rpc HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\n"
            known = f"Authorization: {server.bearer('ann')['Authorization']}\r\n"
            connection.sendall(f"{told}{known}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            with in_time("the beginning of an answer"):
                assert connection.recv(15) == b"HTTP/1.1 200 OK"
            await numbers(server, "hitherto_connections", 1)


async def numbers(server: Server, name: str, wanted: int) -> None:
    """Wait until the server counts so many of something."""

    def counted() -> bool:
        text = server.request("GET", "/metrics", server.bearer("ann")).body.decode()
        return f"\n{name} {wanted}\n" in text

    await until(counted, f"{wanted} of {name}")
