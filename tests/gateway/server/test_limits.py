"""How much a peer may ask for: each limit, and one more."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from hitherto.gateway.transport.limits import (
    KEYS,
    MESSAGE_BYTES,
    STRANGER_BYTES,
    Buckets,
    Limits,
    Room,
    peer_name,
)
from tests.gateway.servers import Server, serving
from tests.support.paths import ROOT
from tests.support.waits import arrives, block_until, in_time

ASKED = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'hitherto.db'}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = {"subscriptions": 3, "stranger_burst": 100_000}
    with serving(f"sqlite:///{tmp_path_factory.mktemp('limits') / 'r.db'}", limits=limits) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that does not wait for bodies."""
    limits = {"body_seconds": 0.3}
    with serving(f"sqlite:///{tmp_path_factory.mktemp('hasty') / 'r.db'}", limits=limits) as running:
        yield running


# Rates


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    now = [0.0]
    buckets = Buckets(2.0, 3, lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0, 0.5]
    now[0] = 100.0
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_buckets_are_not_kept_for_everybody_who_ever_came() -> None:
    buckets = Buckets(1.0, 1, lambda: 0.0)
    for number in range(KEYS + 10):
        buckets.take(number)
    assert len(buckets._levels) == KEYS
    assert buckets.take(KEYS + 9) > 0


def test_a_room_has_places_for_each_and_for_all() -> None:
    room = Room(3, 2)
    assert [room.enter(n, peer) for n, peer in enumerate("aaabb")] == [True, True, False, True, False]
    room.leave(0)
    room.leave(0)
    assert room.enter(9, "b")
    assert len(room) == 3


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("0:0:0:0:0:ffff:102:304", "1.2.3.4"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::2%eth0", "2001:db8::/64"),
        ("::1", "::1"),
        ("no address", "no address"),
    ],
)
def test_a_peer_has_one_name_however_it_is_written(address: str, name: str) -> None:
    assert peer_name(address) == name


def test_strangers_are_slowed_down_on_every_way_in(store: str) -> None:
    with serving(store, limits={"stranger_rate": 0.0, "stranger_burst": 10}) as server:
        bad = {"Authorization": "Bearer hth_" + "x" * 43}
        assert [server.request("GET", "/metrics", bad).status for _ in range(10)] == [401] * 10
        # Others on the same machine still see whether it runs, open the page, and come to say who they are.
        assert [server.request("GET", "/health").status for _ in range(10)] == [200] * 10
        assert [server.request("GET", "/").status for _ in range(10)] == [200] * 10
        assert [server.upgrade("/ws").status for _ in range(10)] == [101] * 10
        replies = [
            server.request("GET", "/metrics", bad),
            server.request("GET", "/metrics"),
            server.request("GET", "/ready"),
            server.request("GET", "/"),
            server.post(ASKED, Authorization="Bearer x"),
            server.upgrade("/ws", list(bad.items())),
            server.upgrade("/acp"),
        ]
        for reply in replies:
            assert reply.status == 429
            assert reply.json["error"]["data"] == {"code": "rate_limited", "retry_after_ms": 3_600_000}
            assert int(reply.headers["retry-after"]) == 3_600
        assert server.post(ASKED).status == 200  # who has a token is not kept out by those who have none


async def test_a_token_has_a_rate_of_its_own_on_every_transport(store: str) -> None:
    with serving(store, limits={"rate": 0.0, "burst": 6}) as server:
        assert [server.post(ASKED).status for _ in range(2)] == [200, 200]
        async with server.socket() as client:  # the upgrade is a request too
            answers = [await client.rpc("session.list") for _ in range(4)]
            assert ["error" in answer for answer in answers] == [False, False, False, True]
            assert answers[-1]["error"]["code"] == -32029
            assert answers[-1]["error"]["data"]["code"] == "rate_limited"
            reply = server.post(ASKED)
            assert (reply.status, reply.json["error"]["data"]["code"]) == (429, "rate_limited")
            assert server.post(ASKED, "bob").status == 200


def test_behind_a_proxy_peers_are_told_apart_by_what_it_says(store: str) -> None:
    where = {"origins": ["https://hitherto.example.org"]}
    with serving(store, where=where, limits={"stranger_rate": 0.0, "stranger_burst": 2}) as server:
        for peer in ("9.9.9.9", "spoofed, 8.8.8.8"):
            told = {"X-Forwarded-For": peer}
            assert [server.request("GET", "/health", told).status for _ in range(3)] == [200, 200, 429]
        assert server.request("GET", "/health", {"X-Forwarded-For": "another, 8.8.8.8"}).status == 429


def test_without_a_proxy_nobody_is_believed_who_they_are(store: str) -> None:
    with serving(store, limits={"stranger_rate": 0.0, "stranger_burst": 2}) as server:
        peers = ("1.1.1.1", "2.2.2.2", "3.3.3.3")
        told = [server.request("GET", "/health", {"X-Forwarded-For": peer}).status for peer in peers]
        assert told == [200, 200, 429]


# Connections


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other end closes."""
    data = b""
    with suppress(ConnectionResetError), in_time("the other end to close"):
        while chunk := connection.recv(65_536):
            data += chunk
    return data


def test_connections_are_bounded_for_each_peer(store: str) -> None:
    with serving(store, limits={"peer_connections": 3}) as server, ExitStack() as stack:
        opened = [stack.enter_context(server.plain()) for _ in range(3)]
        with server.plain() as refused:
            assert read_all(refused).startswith(b"HTTP/1.1 503 ")
        opened[0].close()
        opened[1].sendall(b"GET /health HTTP/1.1\r\nHost: %b\r\n\r\n" % server.host.encode())
        with in_time("an answer"):
            assert opened[1].recv(65_536).startswith(b"HTTP/1.1 200 ")
        block_until(lambda: server.request("GET", "/health").status == 200, "the place of who has left")


def test_connections_are_bounded_in_all(store: str) -> None:
    limits = {"connections": 2}
    with serving(store, limits=limits) as server, server.plain(), server.plain(), server.plain() as refused:
        assert read_all(refused).startswith(b"HTTP/1.1 503 ")


async def test_sockets_of_strangers_are_few(store: str) -> None:
    with serving(store, limits={"stranger_sockets": 2}) as server:
        async with server.socket(None) as first, server.socket(None):
            assert server.upgrade("/ws").status == 429
            await first.call("connect", {"token": server.tokens["ann"].secret})
            async with server.socket(None), server.socket("ann"):
                assert server.upgrade("/acp").status == 429


# Sizes


def test_a_head_without_an_end_is_cut_off(store: str) -> None:
    with serving(store) as server, server.plain() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: %b\r\nX: " % server.host.encode())
        try:
            for _ in range(64):
                connection.sendall(b"x" * STRANGER_BYTES)
        except (BrokenPipeError, ConnectionResetError):
            return
        assert read_all(connection)[:12] in (b"HTTP/1.1 431", b"")


@pytest.mark.parametrize("upgrade", [False, True])
def test_a_head_that_comes_at_once_is_not_longer_for_that(server: Server, upgrade: bool) -> None:
    headers = [*server.bearer("ann").items(), ("X", "x" * STRANGER_BYTES)]
    told = server.upgrade("/ws", headers) if upgrade else server.request("GET", "/metrics", headers)
    assert told.status == 431
    assert server.request("GET", "/metrics", {**server.bearer("ann"), "X": "x" * 60_000}).status == 200


def test_a_head_that_does_not_come_is_not_waited_for(store: str) -> None:
    # Long enough for a head that is there, even if the server is not at once.
    with serving(store, limits={"head_seconds": 2.0}) as server:
        with server.plain() as silent, server.plain() as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\n")
            assert read_all(silent) == b""
            assert read_all(slow) == b""
        with server.plain() as second:
            second.sendall(b"GET /health HTTP/1.1\r\nHost: %b\r\n\r\nGET" % server.host.encode())
            assert read_all(second).startswith(b"HTTP/1.1 200 ")


def test_a_body_beyond_the_limit_is_not_read(server: Server) -> None:
    headers = {**server.bearer("ann"), "Content-Type": "application/json"}
    told = {**headers, "Content-Length": str(MESSAGE_BYTES + 1)}
    assert server.request("POST", "/rpc", told).status == 413
    with server.plain() as connection:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        start = f"POST /rpc HTTP/1.1\r\nHost: {server.host}\r\n{head}Transfer-Encoding: chunked\r\n\r\n"
        connection.sendall(start.encode())
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(MESSAGE_BYTES // 0x100000 + 1):
                connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert read_all(connection)[:12] in (b"HTTP/1.1 413", b"")
    assert server.post(ASKED).status == 200


def test_a_body_of_just_the_limit_is_read(server: Server) -> None:
    assert server.post(ASKED + b" " * (MESSAGE_BYTES - len(ASKED))).status == 200


def test_a_body_that_does_not_come_is_not_waited_for(hasty: Server) -> None:
    headers = {**hasty.bearer("ann"), "Content-Type": "application/json", "Content-Length": "10"}
    assert hasty.request("POST", "/rpc", headers).status == 408


def test_a_body_that_comes_bit_by_bit_is_not_waited_for_either(hasty: Server) -> None:
    headers = {**hasty.bearer("ann"), "Content-Type": "application/json", "Content-Length": "1000000"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with hasty.plain() as connection:
        connection.sendall(f"POST /rpc HTTP/1.1\r\nHost: {hasty.host}\r\n{head}\r\n".encode())
        connection.settimeout(0.05)

        def told() -> bytes:
            with suppress(ConnectionError):  # it may be closed by now; what it said is still there
                connection.sendall(b" ")
            with suppress(TimeoutError):
                return connection.recv(12)
            return b""

        assert block_until(told, "the server to say something") == b"HTTP/1.1 408"


async def test_a_message_that_comes_bit_by_bit_is_not_waited_for(hasty: Server) -> None:
    async with hasty.socket() as client:

        async def bits() -> object:
            yield "{"
            while True:
                await (await client.connection.ping())  # the server has the bit before
                yield " "

        sending = asyncio.create_task(client.connection.send(bits()))  # type: ignore[arg-type]  # likewise
        assert (await client.closed())[0] == 1008
        await arrives(asyncio.wait([sending]), "the end of what was sent")
        assert isinstance(sending.exception(), ConnectionClosed)


@pytest.mark.parametrize("path", ["/ws", "/acp"])
async def test_a_stranger_sends_short_frames_only(server: Server, path: str) -> None:
    token = server.tokens["ann"].secret
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {"token": token}})
    async with server.socket(None, path) as client:
        await client.send(asked.ljust(STRANGER_BYTES))
        assert (await client.receive())["result"]["owner"] == "ann"
    async with server.socket(None, path) as client:
        await client.send(asked.ljust(STRANGER_BYTES + 1))
        assert (await client.closed())[0] == 1009
    async with server.socket(None, path) as client:

        async def pieces() -> object:
            for _ in range(3):
                yield " " * (STRANGER_BYTES // 2)

        await client.connection.send(pieces())  # type: ignore[arg-type]  # any iterable of texts
        assert (await client.closed())[0] == 1009


async def test_who_is_known_sends_long_frames(server: Server) -> None:
    async with server.socket() as client:
        await client.send(ASKED.decode().ljust(MESSAGE_BYTES))
        assert "result" in await client.receive()
        with suppress(ConnectionClosed):  # it may be closed before all of it is sent
            await client.send(ASKED.decode().ljust(MESSAGE_BYTES + 1))
        assert (await client.closed())[0] == 1009


async def test_subscriptions_are_bounded_for_each_connection(server: Server) -> None:
    async with server.socket() as client, server.socket() as other:
        made = [await client.call("session.subscribe") for _ in range(3)]
        assert (await client.rpc("session.subscribe"))["error"]["data"]["code"] == "too_large"
        assert "result" in await other.rpc("session.subscribe")
        await client.call("session.unsubscribe", {"subscription_id": made[0]["subscription_id"]})
        assert "result" in await client.rpc("session.subscribe")
        gone = await client.rpc("session.unsubscribe", {"subscription_id": made[0]["subscription_id"]})
        assert gone["error"]["data"]["code"] == "not_found"


def test_the_limits_are_those_of_the_page() -> None:
    text = (ROOT / "docs" / "serving.md").read_text()
    for name, value in (
        ("rate", Limits().rate),
        ("stranger", Limits().stranger_burst),
        ("connections", Limits().connections),
        ("peer", Limits().peer_connections),
        ("subscriptions", Limits().subscriptions),
    ):
        assert f"{value:,.0f}" in text, name


# Bytes being received


def receiving(server: Server) -> int:
    body = server.request("GET", "/metrics", server.bearer("ann")).body.decode()
    lines = (line.split() for line in body.splitlines())
    return next(int(float(line[1])) for line in lines if line[0] == "hitherto_receiving_bytes")


def half_sent(server: Server, name: str, size: int, path: str = "/rpc") -> socket.socket:
    """A connection on which a long body has begun."""
    line = server.plain()
    token = server.tokens[name].secret
    head = f"POST {path} HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {token}\r\n"
    line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {2 * size}\r\n\r\n".encode())
    line.sendall(b" " * size)
    return line


@pytest.mark.parametrize("path", ["/rpc", "/mcp"])
def test_half_sent_bodies_are_bounded_for_each_token_and_in_sum(store: str, path: str) -> None:
    limits = {"receive_bytes": 150_000, "receive_bytes_each": 100_000}
    with serving(store, limits=limits) as server, ExitStack() as stack:
        first = stack.enter_context(half_sent(server, "ann", 80_000, path))
        block_until(lambda: receiving(server) == 80_000, "the first body")
        second = stack.enter_context(half_sent(server, "ann", 80_000, path))
        with in_time("the refusal of the second"):
            assert second.recv(1_000).startswith(b"HTTP/1.1 429 ")
        stack.enter_context(half_sent(server, "bob", 60_000, path))
        block_until(lambda: receiving(server) == 140_000, "the body of another")
        third = stack.enter_context(half_sent(server, "ann-reads", 60_000, path))
        with in_time("the refusal of what is too much for all"):
            assert third.recv(1_000).startswith(b"HTTP/1.1 429 ")
        first.close()
        block_until(lambda: receiving(server) == 60_000, "the end of the first")
        assert "result" in server.rpc("session.list")


async def test_half_sent_messages_on_sockets_are_bounded_too(store: str) -> None:
    limits = {"receive_bytes": 150_000, "receive_bytes_each": 100_000}
    with serving(store, limits=limits) as server:
        async with server.socket() as first, server.socket() as second:
            await first.call("session.list")
            await second.call("session.list")
            frame = b"\x81\xff" + (200_000).to_bytes(8, "big") + bytes(4) + b" " * 80_000
            first.connection.transport.write(frame)
            await asyncio.to_thread(block_until, lambda: receiving(server) >= 80_000, "the first message")
            second.connection.transport.write(frame)
            assert (await second.closed())[0] == 1013
        block_until(lambda: receiving(server) == 0, "nothing to be received")
