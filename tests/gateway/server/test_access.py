"""Who may call: a token on every transport, rights from the server's record, and an end when it is revoked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hitherto
from hitherto.gateway.app import AGENT_NEEDS
from hitherto.gateway.auth.cookies import OWN_HEADER
from tests.gateway.servers import Server, Token, serving

OPEN = ("/", "/health", "/ready")
SOCKETS = ("/ws", "/acp")
STRANGE = "hth_" + "A" * 43


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('access') / 'hitherto.db'}"


@pytest.fixture(scope="module")
def server(store: str) -> Iterator[Server]:
    with serving(store, limits={"stranger_burst": 10_000}) as running:
        yield running


def bad_headers(server: Server) -> dict[str, list[tuple[str, str]]]:
    good = server.tokens["ann"].secret
    return {
        "none": [],
        "empty": [("Authorization", "")],
        "no scheme": [("Authorization", good)],
        "another scheme": [("Authorization", f"Basic {good}")],
        "only the scheme": [("Authorization", "Bearer")],
        "unknown": [("Authorization", f"Bearer {STRANGE}")],
        "almost": [("Authorization", f"Bearer {good[:-1]}")],
        "more": [("Authorization", f"Bearer {good}x")],
        "two": [("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {good}")],
        "two in one": [("Authorization", f"Bearer {good} {good}")],
        "another header": [("X-Authorization", f"Bearer {good}"), ("Cookie", f"token={good}")],
    }


CASES = (
    "none", "empty", "no scheme", "another scheme", "only the scheme", "unknown", "almost", "more", "two",
    "two in one", "another header",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_without_a_good_token_nothing_is_answered(server: Server, case: str) -> None:
    headers = bad_headers(server)[case]
    asked = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'
    told = [*headers, ("Content-Type", "application/json")]
    replies = [
        server.request("POST", "/rpc", told, asked),
        server.request("POST", f"/rpc?token={server.tokens['ann'].secret}", told, asked),
        server.request("GET", "/metrics", headers),
    ]
    if any(name == "Authorization" for name, _ in headers):
        replies += [server.upgrade(path, headers) for path in SOCKETS]
    for reply in replies:
        assert (reply.status, reply.json["error"]["data"]) == (401, {"code": "unauthenticated"})
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert reply.json["error"]["code"] == -32000


def test_what_needs_no_token_tells_nothing_of_anybody(server: Server) -> None:
    for path in OPEN:
        reply = server.request("GET", path)
        assert reply.status == 200
        assert b"ann" not in reply.body.lower()
    assert server.request("GET", "/health").json == {"status": "ok"}
    assert server.request("GET", "/ready").json == {"status": "ready"}


def test_no_answer_is_guessed_at_told_on_or_kept(server: Server) -> None:
    for path in (*OPEN, "/metrics", "/rpc", "/nowhere"):
        headers = server.request("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_the_first_page_runs_nothing_of_others(server: Server) -> None:
    policy = server.request("GET", "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy


def test_rights_are_those_of_the_record_whatever_the_caller_claims(server: Server) -> None:
    claims = {"X-Scopes": "admin", "X-Forwarded-User": "ann", "X-Hitherto-Scopes": "write"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {"name": "x"}}
    reply = server.post(json.dumps(asked).encode(), "ann-reads", **claims)
    assert reply.json["error"]["data"] == {"code": "forbidden", "scope": "write"}
    asked["params"] = {"name": "x", "scopes": ["write"]}
    reply = server.post(json.dumps(asked).encode(), "ann-reads")
    assert reply.json["error"]["data"]["code"] == "forbidden"


def test_the_numbers_of_the_whole_server_need_the_scope_for_it(server: Server) -> None:
    assert server.request("GET", "/metrics", server.bearer("ann-runs")).status == 403
    reply = server.request("GET", "/metrics", server.bearer("ann"))
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_numbers_never_hold_what_a_caller_wrote(server: Server) -> None:
    server.rpc("canary.method.of.mine", {"canary": "value"})
    server.call("session.create", {"title": "canary title"})
    text = server.request("GET", "/metrics", server.bearer("ann")).body.decode()
    assert "canary" not in text
    assert 'hitherto_requests_total{method="other",outcome="method_not_found"}' in text
    assert 'hitherto_requests_total{method="session.create",outcome="ok"}' in text
    assert 'hitherto_request_seconds_bucket{way="http",le="+Inf"}' in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2


def test_the_agent_needs_all_scopes_of_what_it_can_do(server: Server) -> None:
    reply = server.upgrade("/acp", list(server.bearer("ann-reads").items()))
    assert (reply.status, reply.json["error"]["data"]["scope"]) == (403, " ".join(AGENT_NEEDS))


@pytest.mark.parametrize("path", SOCKETS)
async def test_a_socket_may_show_its_token_in_the_first_message(server: Server, path: str) -> None:
    async with server.socket(None, path) as client:
        told = await client.call("connect", {"token": server.tokens["ann-runs"].secret})
        assert told == {"owner": "ann", "role": "owner", "scopes": ["read", "write", "run"]}
        answer = await client.rpc("initialize", {"protocolVersion": 1})
        assert ("result" in answer) == (path == "/acp")


FIRST = {
    "a request": ('{"jsonrpc":"2.0","id":7,"method":"session.list"}', 7),
    "a bad token": (f'{{"jsonrpc":"2.0","id":7,"method":"connect","params":{{"token":"{STRANGE}"}}}}', 7),
    "no token": ('{"jsonrpc":"2.0","id":7,"method":"connect"}', 7),
    "a number": ('{"jsonrpc":"2.0","id":7,"method":"connect","params":{"token":7}}', 7),
    "no id": ('{"jsonrpc":"2.0","method":"session.list"}', None),
    "no JSON": ("hello", None),
    "a batch": ("[]", None),
}


@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize("case", FIRST)
async def test_a_first_message_without_a_good_token_is_the_last(server: Server, path: str, case: str) -> None:
    text, number = FIRST[case]
    async with server.socket(None, path) as client:
        await client.send(text)
        answer = await client.receive()
        assert answer["id"] == number
        assert answer["error"]["code"] in (-32000, -32700, -32600)
        assert (await client.closed())[0] == 1008


async def test_a_socket_that_says_nothing_is_closed_soon(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'r.db'}", limits={"stranger_seconds": 0.3}) as hasty:
        for path in SOCKETS:
            async with hasty.socket(None, path) as client:
                assert (await client.closed())[0] == 1008


async def test_the_first_message_must_have_the_scopes_too(server: Server) -> None:
    async with server.socket(None, "/acp") as client:
        answer = await client.rpc("connect", {"token": server.tokens["ann-reads"].secret})
        assert answer["error"]["data"]["code"] == "forbidden"
        assert (await client.closed())[0] == 1008


@pytest.mark.parametrize("path", SOCKETS)
async def test_a_revoked_token_closes_its_sockets_and_no_others(
    store: str, server: Server, path: str
) -> None:
    async with hitherto.open(store) as sessions:
        token, secret = await sessions.tokens.create("ann")
        async with server.socket(None, path) as closing, server.socket("ann", path) as staying:
            await closing.call("connect", {"token": secret})
            assert await sessions.tokens.revoke(token.id)
            assert await closing.closed() == (1008, "the token was revoked")
            assert (await staying.rpc("initialize", {"protocolVersion": 1}))["id"] == 1
        headers = {"Authorization": f"Bearer {secret}"}
        assert server.request("GET", "/metrics", headers).status == 401
        assert server.upgrade(path, list(headers.items())).status == 401


async def test_nothing_is_told_on_a_token_that_was_revoked(store: str, server: Server) -> None:
    async with hitherto.open(store) as sessions:
        token, secret = await sessions.tokens.create("ann")
        async with server.socket(None) as client:
            await client.call("connect", {"token": secret})
            await client.call("session.subscribe")
            await sessions.tokens.revoke(token.id)
            made = server.call("session.create")
            await client.closed()
            assert made["session_id"] not in json.dumps(client.events)


async def test_a_request_after_the_revocation_is_not_answered(store: str, server: Server) -> None:
    async with hitherto.open(store) as sessions:
        token, secret = await sessions.tokens.create("ann")
        async with server.socket(None) as client:
            await client.call("connect", {"token": secret})
            await sessions.tokens.revoke(token.id)
            await client.begin("session.list")
            await client.closed()
            assert all("error" in answer for answer in client._answers.values())


async def test_a_revoked_token_ends_a_request_over_http_at_once(store: str, server: Server) -> None:
    async with hitherto.open(store) as sessions:
        token, secret = await sessions.tokens.create("ann")
        headers = {"Authorization": f"Bearer {secret}"}
        assert server.request("GET", "/metrics", headers).status == 200
        await sessions.tokens.revoke(token.id)
        assert server.request("GET", "/metrics", headers).status == 401


async def test_a_restricted_token_opens_the_methods_of_the_gateway_only_and_sees_its_part(
    server: Server,
) -> None:
    for channel in ("irc", "sms"):
        said = {"messages": [{"role": "user", "content": channel}], "create": True}
        server.call("session.append", {"session_key": f"agent:main:{channel}:dm:u", **said}, "bob")
    scopes = ["read", "write", "run"]
    made = server.call("token.create", {"scopes": scopes, "reach": {"channels": ["irc"]}}, "bob")
    limited = Server(server.process, server.port, {"irc": Token("", made["secret"], "bob")})
    told = limited.bearer("irc")
    assert [row["channel"] for row in limited.call("session.list", name="irc")["sessions"]] == ["irc"]
    async with limited.socket("irc") as client:
        asked = {"session_key": "agent:main:sms:dm:u"}
        assert (await client.rpc("session.get", asked))["error"]["data"]["code"] == "session_not_found"
        asked = {"session_key": "agent:main:irc:dm:u"}
        assert (await client.call("session.get", asked))["channel"] == "irc"
        rotated = server.call("token.rotate", {"token_id": made["token"]["token_id"]}, "bob")
        assert (await client.closed())[0] == 1008
    assert server.request("GET", "/mcp", told).status == 401  # by the old secret
    told = {"Authorization": f"Bearer {rotated['secret']}"}
    ours = {OWN_HEADER.decode(): "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    secrets = (rotated["secret"], server.tokens["bob"].secret)
    signed_in = [
        server.request("POST", "/signin", ours, json.dumps({"token": each}).encode()) for each in secrets
    ]
    assert [reply.status for reply in signed_in] == [401, 200]
    assert server.request("GET", "/mcp", told).json["error"]["data"]["code"] == "out_of_reach"
    assert server.upgrade("/acp", list(told.items())).json["error"]["data"]["code"] == "out_of_reach"


def test_one_owner_never_sees_anothers_sessions(server: Server) -> None:
    made = server.call("session.create", {"name": "ann's"}, "ann")
    asked = {"session_key": made["session_key"]}
    foreign = server.rpc("session.get", asked, "bob")
    missing = server.rpc("session.get", {"session_key": "00000000-0000-7000-8000-000000000000"}, "bob")
    told = json.dumps(missing).replace("00000000-0000-7000-8000-000000000000", made["session_key"])
    assert json.dumps(foreign) == told
    assert made["session_id"] not in json.dumps(server.rpc("session.list", {}, "bob"))


def test_a_store_file_is_for_its_user_alone(store: str, server: Server) -> None:
    assert server.request("GET", "/ready").status == 200
    folder = Path(store.removeprefix("sqlite:///")).parent
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
