"""Where servers of callers from outside may be: nowhere but on the public internet."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest

from hitherto.engine import HttpServer, Notice
from hitherto.engines.mcp import McpServers
from hitherto.engines.mcp.http import PublicTransport
from hitherto.engines.mcp.public_addresses import NotPublic, Resolve, is_public, resolve_addresses
from tests.support.waits import LIMIT, NEVER

PUBLIC = ("1.1.1.1", "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2a00:1450:4001:81b::200e")
PRIVATE = {
    "unspecified": ("0.0.0.0", "0.1.2.3", "::"),  # noqa: S104 - not a place to listen at
    "loopback": ("127.0.0.1", "127.255.255.254", "::1"),
    "private": ("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1", "fec0::1"),
    "shared by carriers": ("100.64.0.1", "100.100.100.200"),
    "link-local": ("169.254.169.254", "fe80::1", "fe80::1%eth0", "2606:2800::1%1"),
    "multicast": ("224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"),
    "reserved": ("240.0.0.1", "255.255.255.255", "4000::1", "100::1", "5f00::1"),
    "documentation and tests": (
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "2001:db8::1",
        "3fff::1",
    ),
    "protocol assignments": ("192.0.0.1", "192.0.0.9", "192.88.99.1", "2001::1", "2001:1::1", "2001:20::1"),
    "IPv4 inside of IPv6": (
        "::ffff:1.1.1.1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::101:101",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:53aa:64c:0:0:80ff:fffe",
    ),
    "a cloud's inner service": ("168.63.129.16",),
    "no address": ("", "localhost", "127.1", "0x7f000001", "2130706433", "1.1.1.1 "),
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("kind", PRIVATE)
def test_whatever_is_not_public_is_not(kind: str) -> None:
    assert [address for address in PRIVATE[kind] if is_public(address)] == []


SPELLINGS = ("localhost", "127.1", "0x7f000001", "2130706433", "::ffff:127.0.0.1")


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_of_loopback_resolves_to_something_public(host: str) -> None:
    found = await resolve_addresses(host, 80)
    assert found
    assert not any(map(is_public, found))


# What is connected to is what was checked


@asynccontextmanager
async def answering(answer: Callable[[str], bytes]) -> AsyncIterator[tuple[int, list[str]]]:
    """A server on loopback that answers each request by what it begins with; gives its port and what it heard."""
    heard: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        heard.append(request)
        writer.write(answer(request))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


def fine(_: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine"


def resolving(*answers: Sequence[str]) -> Resolve:
    """A resolver that gives one answer after the other, whatever it is asked."""
    left = iter(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        return next(left)

    return resolve


def only_first_loopback(address: str) -> bool:
    """Stands in for what is public: tests do not leave this machine."""
    return address == "127.0.0.1"


async def test_a_request_goes_to_the_checked_address_under_the_name_of_its_host() -> None:
    transport = PublicTransport(resolving(["127.0.0.1"]), only_first_loopback)
    async with (
        answering(fine) as (port, heard),
        httpx2.AsyncClient(transport=transport, timeout=LIMIT) as client,
    ):
        answer = await client.get(f"http://mcp.invalid:{port}/x")
    assert answer.text == "fine"
    assert f"Host: mcp.invalid:{port}".lower() in heard[0].lower()


async def test_a_certificate_is_asked_for_by_the_name_of_the_host() -> None:
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: named.append(name)
    transport = PublicTransport(resolving(["127.0.0.1"]), only_first_loopback)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    async with server, httpx2.AsyncClient(transport=transport, timeout=LIMIT) as client:
        with pytest.raises(httpx2.ConnectError):  # it has no certificate to show
            await client.get(f"https://mcp.invalid:{server.sockets[0].getsockname()[1]}/")
    assert named == ["mcp.invalid"]


async def test_a_name_that_means_another_address_later_is_refused_then() -> None:
    transport = PublicTransport(resolving(["127.0.0.1"], ["127.0.0.2"]), only_first_loopback)
    async with (
        answering(fine) as (port, heard),
        httpx2.AsyncClient(transport=transport, timeout=LIMIT) as client,
    ):
        await client.get(f"http://mcp.invalid:{port}/")
        with pytest.raises(NotPublic):
            await client.get(f"http://mcp.invalid:{port}/")
    assert len(heard) == 1


@pytest.mark.parametrize("addresses", [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], []])
async def test_a_name_is_refused_unless_all_its_addresses_are_public(addresses: list[str]) -> None:
    transport = PublicTransport(resolving(addresses), only_first_loopback)
    async with (
        answering(fine) as (port, heard),
        httpx2.AsyncClient(transport=transport, timeout=LIMIT) as client,
    ):
        with pytest.raises(NotPublic):
            await client.get(f"http://mcp.invalid:{port}/")
    assert heard == []


async def test_the_next_address_is_tried_when_one_cannot_be_reached() -> None:
    transport = PublicTransport(resolving(["127.0.0.2", "127.0.0.1"]), lambda _: True)
    async with (
        answering(fine) as (port, heard),
        httpx2.AsyncClient(transport=transport, timeout=LIMIT) as client,
    ):
        await client.post(f"http://mcp.invalid:{port}/", json={"a": 1})
    assert len(heard) == 1


async def test_a_redirect_does_not_lead_out() -> None:
    def elsewhere(request: str) -> bytes:
        port = request.lower().partition("host: mcp.invalid:")[2].split()[0]
        lead = f"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.2:{port}/\r\nContent-Length: 0\r\nConnection: close\r\n"
        return lead.encode() + b"\r\n"

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "mcp.invalid" else await resolve_addresses(host, port)

    transport = PublicTransport(resolve, only_first_loopback)
    following = httpx2.AsyncClient(transport=transport, timeout=LIMIT, follow_redirects=True)
    async with answering(elsewhere) as (port, heard), following as client:
        with pytest.raises(NotPublic):
            await client.get(f"http://mcp.invalid:{port}/")
    assert len(heard) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"])
async def test_a_public_name_with_a_private_address_is_reported(address: str) -> None:
    notices: list[Notice] = []
    server = HttpServer(name="x", url="http://mcp.invalid/mcp")
    servers = McpServers(
        (server,),
        cwd=None,
        local=False,
        report=notices.append,
        resolve=resolving(["1.1.1.1", address]),
        start_seconds=NEVER,
    )
    async with servers:
        assert await servers.tools() == ()
    text = "The MCP server 'x' did not start: its address is not on the public internet."
    assert notices == [Notice(text=text, severity="error")]


# Answers have an end


ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + b" " * (9 << 20)
PACKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
EVENT = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: " + b" " * (
    9 << 20
)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ENDLESS, "it sent more than 8388608 bytes at once"),
        (PACKED, "it compresses its answers though it was asked not to"),
        (
            EVENT,
            "the connection was interrupted: SSE stream failed: Server-sent event exceeded the 8388608 byte limit",
        ),
    ],
    ids=["endless", "compressed", "one endless event"],
)
async def test_an_answer_without_bounds_is_not_read_to_its_end(answer: bytes, reason: str) -> None:
    notices: list[Notice] = []
    async with answering(lambda _: answer) as (port, _):
        server = HttpServer(name="x", url=f"http://127.0.0.1:{port}/mcp")
        opening = McpServers((server,), cwd=None, local=True, report=notices.append, start_seconds=NEVER)
        async with opening as servers:
            assert await servers.tools() == ()
    assert [notice.text for notice in notices] == [f"The MCP server 'x' did not start: {reason}."]
