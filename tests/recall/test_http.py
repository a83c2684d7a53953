"""The same over HTTP: `/mcp` of a server, for whoever holds a token."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import mcp_types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

import hitherto
from hitherto.model import Principal
from tests.gateway.servers import Server, serving
from tests.support.conversations import started
from tests.support.waits import LIMIT


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('served') / 'x.db'}"


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[Server]:
    with serving(url) as running:
        yield running


async def found(server: Server, secret: str, query: str) -> list[str]:
    """The titles that a search over MCP gives."""
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx2.AsyncClient(headers=headers, timeout=LIMIT) as web:
        transport = streamable_http_client(f"http://{server.host}/mcp", http_client=web)
        async with Client(transport) as agent:
            result = await agent.call_tool("sessions_search", {"query": query})
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    assert not result.is_error, block.text
    return [hit["title"] for hit in json.loads(block.text)["hits"]]


async def test_each_token_looks_up_its_owner_s_sessions_alone(server: Server, url: str) -> None:
    async with hitherto.open(url) as sessions:
        await started(sessions, Principal(owner="ann"), "about quinces", title="Ann's")
        await started(sessions, Principal(owner="bob"), "about quinces", title="Bob's")
    assert await found(server, server.tokens["ann-reads"].secret, "quinces") == ["Ann's"]
    assert await found(server, server.tokens["bob"].secret, "quinces") == ["Bob's"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_without_a_token_or_from_elsewhere_nothing_is_told(server: Server, method: str) -> None:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    kind = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    good = {**kind, "Authorization": f"Bearer {server.tokens['ann'].secret}"}
    assert server.request(method, "/mcp", kind, asked).status == 401
    assert server.request(method, "/mcp", {**kind, "Authorization": "Bearer hth_no"}, asked).status == 401
    assert server.request(method, "/mcp", {**good, "Host": "evil.example"}, asked).status == 421
    assert server.request(method, "/mcp", {**good, "Origin": "https://evil.example"}, asked).status == 403


async def test_a_token_that_may_not_read_looks_nothing_up(server: Server, url: str) -> None:
    async with hitherto.open(url) as sessions:
        _, secret = await sessions.tokens.create("ann", scopes=("write",))
    reply = server.request("POST", "/mcp", {"Authorization": f"Bearer {secret}"}, b"{}")
    assert reply.status == 403
