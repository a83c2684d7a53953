"""JSON-RPC over HTTP and over a WebSocket: the same table, the same answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitherto.gateway.methods import METHODS
from tests.gateway.servers import Client, Json, Server, go, serving

BAD = {
    "nothing": ("", -32700, None),
    "no JSON": ("{", -32700, None),
    "a word": ("hello", -32700, None),
    "a number": ("7", -32600, None),
    "a text": ('"x"', -32600, None),
    "an empty batch": ("[]", -32600, None),
    "a batch": ('[{"jsonrpc":"2.0","id":1,"method":"session.list"}]', -32600, None),
    "nothing asked": ("{}", -32600, None),
    "no version": ('{"id":1,"method":"session.list"}', -32600, 1),
    "another version": ('{"jsonrpc":"1.0","id":1,"method":"session.list"}', -32600, 1),
    "an id that is none": ('{"jsonrpc":"2.0","id":{},"method":"session.list"}', -32600, None),
    "a method that is none": ('{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    "an unknown method": ('{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601, 1),
    "an empty method": ('{"jsonrpc":"2.0","id":1,"method":""}', -32601, 1),
    "a deep one": ('{"jsonrpc":"2.0","id":1,"method":"session.list","params":' + "[" * 100_000, -32700, None),
    "parameters by place": ('{"jsonrpc":"2.0","id":1,"method":"session.get","params":["x"]}', -32602, 1),
    "a name that is no text": ('{"jsonrpc":"2.0","id":1,"method":"session.get","params":{"session_key":7}}', -32602, 1),
    "a missing session": ('{"jsonrpc":"2.0","id":"a","method":"session.get","params":{"session_key":"x"}}', -32002, "a"),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('rpc') / 'r.db'}") as running:
        yield running


@pytest.mark.parametrize("case", BAD)
async def test_bad_messages_are_answered_alike_on_both_transports(server: Server, case: str) -> None:
    text, code, number = BAD[case]
    by_http = server.post(text.encode())
    assert (by_http.status, by_http.json["error"]["code"], by_http.json["id"]) == (200, code, number)
    async with server.socket() as client:
        await client.send(text)
        assert await client.receive() == by_http.json
        assert "result" in await client.rpc("session.list")  # the connection goes on


async def test_good_requests_are_answered_alike_on_both_transports(server: Server) -> None:
    made = server.call("session.create", {"name": "both"})
    asked: list[tuple[str, Json]] = [
        ("session.get", {"session_key": made["session_key"]}),
        ("session.list", {"limit": 1}),
        ("session.history", {"session_key": made["session_key"]}),
        ("rpc.discover", {}),
    ]
    async with server.socket() as client:
        for method, params in asked:
            by_http, by_socket = server.rpc(method, params), await client.rpc(method, params)
            assert by_http["result"] == by_socket["result"]


async def test_every_method_of_the_table_is_served_on_both_transports(server: Server) -> None:
    async with server.socket() as client:
        for method in METHODS:
            for answer in (
                server.rpc(method, {"no such parameter": 1}),
                await client.rpc(method, {"no such": 1}),
            ):
                assert answer["error"]["code"] in (-32602, -32002), method


def test_an_id_comes_back_as_it_was(server: Server) -> None:
    for number in ("0", "-1", "1.50", '"é"', "12345678901234567890", "null"):
        body = b'{"jsonrpc":"2.0","id":%b,"method":"session.list"}' % number.encode()
        assert f'"id":{number},'.encode() in server.post(body).body


async def test_a_notification_is_done_and_not_answered(server: Server) -> None:
    asked = '{"jsonrpc":"2.0","method":"session.create","params":{"name":"%s"}}'
    reply = server.post((asked % "by http").encode())
    assert (reply.status, reply.body) == (204, b"")
    async with server.socket() as client:
        await client.send(asked % "by socket")
        await client.eventually("session.list", {}, lambda told: told["sessions"][0]["title"] == "by socket")
        assert server.call("session.list")["sessions"][1]["title"] == "by http"
        assert client.seen == []


def test_a_notification_of_something_unknown_is_left_out(server: Server) -> None:
    assert server.post(b'{"jsonrpc":"2.0","method":"nope"}').status == 204


def test_an_answer_to_nothing_is_refused(server: Server) -> None:
    assert server.post(b'{"jsonrpc":"2.0","id":1,"result":{}}').json["error"]["code"] == -32600


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_body_of_another_kind_is_not_read(server: Server, kind: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"session.create"}'
    before = server.call("session.list")["total"]
    assert server.request("POST", "/rpc", {**server.bearer("ann"), "Content-Type": kind}, body).status == 415
    assert server.request("POST", "/rpc", server.bearer("ann"), body).status == 415
    assert server.call("session.list")["total"] == before


def test_the_kind_of_a_body_may_name_its_characters(server: Server) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'
    headers = {**server.bearer("ann"), "Content-Type": "Application/JSON; charset=utf-8"}
    assert server.request("POST", "/rpc", headers, body).status == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "PATCH"])
def test_requests_are_posted(server: Server, method: str) -> None:
    assert server.request(method, "/rpc", server.bearer("ann")).status == 405


async def test_words_that_are_no_text_are_refused(server: Server) -> None:
    assert server.post(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}').json["error"]["code"] == -32700
    async with server.socket() as client:
        await client.connection.send(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', text=True)
        assert (await client.receive())["error"]["code"] == -32700
        await client.connection.send(b"\x00\x01")
        assert (await client.closed())[0] == 1003


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that a turn waits for."""
    os.mkfifo(tmp_path / "go")
    return tmp_path / "go"


async def begun(client: Client, pipe: Path) -> tuple[Json, int]:
    """A session whose turn is running, and the number of the request that runs it."""
    named = {"session_id": (await client.call("session.create"))["session_id"]}
    number = await client.begin("session.send", {**named, "content": f"wait {pipe}"})
    await client.eventually("session.get", named, lambda told: told["status"] == "running")
    return named, number


async def test_requests_on_one_socket_run_side_by_side(server: Server, pipe: Path) -> None:
    async with server.socket() as client:
        _, number = await begun(client, pipe)
        go(pipe)
        assert (await client.answer(number))["result"]["message"]["content"] == "Waiting. Done."


async def test_a_request_can_be_called_off(server: Server, pipe: Path) -> None:
    async with server.socket() as client:
        named, number = await begun(client, pipe)
        called_off = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}}
        await client.send(json.dumps(called_off))
        assert (await client.answer(number))["error"]["code"] == -32800
        assert (await client.call("session.get", named))["status"] == "idle"
