"""Signing in and out, in a browser and past it."""

from __future__ import annotations

import json
import re

import pytest
import websockets.asyncio.client
from playwright.async_api import Browser, expect

from hitherto.gateway.auth.cookies import ZONE
from hitherto.model import Principal, Token
from hitherto.service import Sessions
from tests.gateway.page.browser import context_of
from tests.gateway.page.conftest import Enter
from tests.gateway.page.visitor import Visitor, leave, watched
from tests.gateway.servers import Client, Reply, Server
from tests.support.waits import LIMIT

OWN = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.list"}).encode()


def post(server: Server, path: str, body: object, **headers: str) -> Reply:
    return server.request("POST", path, {**OWN, **headers}, json.dumps(body).encode())


async def cookie_of(kept: Sessions, server: Server, token: Token) -> str:
    reply = post(server, "/signin", {"code": await kept.signin.invite(token)})
    assert reply.status == 200
    return reply.headers["set-cookie"].partition(";")[0]


async def test_the_address_signs_in_and_leaves_no_code_behind(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await kept.create(ann, title="Mine")
    visitor = await enter()
    await expect(visitor.page.get_by_role("link", name="Mine")).to_be_visible()
    assert visitor.page.url == f"{visitor.base}/"
    cookies = await visitor.cookies()
    assert [(each["httpOnly"], each["sameSite"], each["path"]) for each in cookies] == [(True, "Strict", "/")]
    assert await visitor.page.evaluate("document.cookie.split('=')[0]") == ZONE
    assert cookies[0]["value"] not in await visitor.page.evaluate("document.cookie")
    source = await visitor.page.content()
    assert cookies[0]["value"] not in source


async def test_somebody_without_a_code_is_told_how_to_get_one_and_can_show_a_token(
    browser: Browser, server: Server, kept: Sessions, ann: Principal
) -> None:
    token, secret = await kept.tokens.create(ann.owner)
    context = await context_of(browser)
    visitor = Visitor(server, kept, token, await context.new_page())
    await watched(visitor)
    await visitor.go("/")
    await expect(visitor.page.get_by_text("hitherto page")).to_be_visible()
    # In the page that is open already, the address that was printed only changes the fragment.
    await visitor.go(f"/#code={await kept.signin.invite(token)}")
    await visitor.is_in()
    await leave(visitor.page)
    await visitor.page.get_by_label("A token").fill(secret)
    await visitor.page.get_by_role("button", name="Sign in").click()
    await visitor.is_in()
    visitor.is_calm()
    await context.close()


async def test_a_code_that_was_used_says_so(enter: Enter, browser: Browser) -> None:
    visitor = await enter()
    used = await visitor.kept.signin.invite(visitor.token)
    assert post(visitor.server, "/signin", {"code": used}).status == 200
    context = await context_of(browser)
    page = await context.new_page()
    await page.goto(f"{visitor.base}/#code={used}")
    await expect(page.get_by_role("status").first).to_contain_text("already used")
    await expect(page).not_to_have_url(re.compile("code"))
    await context.close()


async def test_signing_out_takes_the_cookie_back(enter: Enter) -> None:
    visitor = await enter()
    (cookie,) = await visitor.cookies()
    assert await visitor.kept.signin.visitor(cookie["value"]) is not None
    await leave(visitor.page)
    await expect(visitor.page.get_by_label("A token")).to_be_visible()
    assert await visitor.cookies() == []
    assert await visitor.kept.signin.visitor(cookie["value"]) is None


async def test_a_page_whose_token_is_revoked_says_that_one_is_signed_out(enter: Enter) -> None:
    visitor = await enter()
    await visitor.kept.tokens.revoke(visitor.token.id)
    await expect(visitor.page.get_by_text("You were signed out.")).to_be_visible()
    await visitor.page.get_by_role("button", name="Sign in again").click()
    await expect(visitor.page.get_by_label("A token")).to_be_visible()
    # The browser itself notes the refusal of the request that waited.
    visitor.complaints = [each for each in visitor.complaints if "401" not in each]


async def test_a_code_works_once_whoever_comes_first(kept: Sessions, server: Server, token: Token) -> None:
    code = await kept.signin.invite(token)
    statuses = [post(server, "/signin", {"code": code}).status for _ in range(3)]
    assert statuses == [200, 401, 401]


@pytest.mark.parametrize(
    "code",
    ["", "x", "ann.", "ann." + "A" * 43, "." + "A" * 43, "%00." + "A" * 43, "bob%2." + "A" * 43, "a" * 9_000],
)
def test_what_is_no_code_is_refused(server: Server, code: str) -> None:
    assert post(server, "/signin", {"code": code}).status in (401, 413)
    assert post(server, "/signin", {"token": code}).status in (401, 413)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"code":1}', b'"x"', b"\xff"])
def test_what_is_no_request_signs_nobody_in(server: Server, body: bytes) -> None:
    reply = server.request("POST", "/signin", OWN, body)
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


async def test_only_our_own_page_signs_in(kept: Sessions, server: Server, token: Token) -> None:
    code = await kept.signin.invite(token)
    body = json.dumps({"code": code}).encode()
    plain = {"Content-Type": "application/json"}
    for headers in (
        plain,
        {**plain, "X-Hitherto": "1"},
        {**plain, "Sec-Fetch-Site": "same-origin"},
        {**plain, "X-Hitherto": "1", "Sec-Fetch-Site": "same-site"},
        {**OWN, "Origin": "https://evil.example"},
        {**OWN, "Origin": f"http://127.0.0.1:{server.port + 1}"},
        {**OWN, "Host": "evil.example"},
    ):
        assert server.request("POST", "/signin", headers, body).status in (403, 421)
    assert post(server, "/signin", {"code": code}).status == 200


async def test_the_cookie_counts_for_our_own_requests_and_for_pages_that_are_opened(
    kept: Sessions, server: Server, token: Token
) -> None:
    cookie = {"Cookie": await cookie_of(kept, server, token)}
    assert server.request("POST", "/rpc", {**OWN, **cookie}, LIST).json["result"]["total"] == 0
    assert b'id="rows"' in server.request("GET", "/", {**OPENED, **cookie}).body
    assert server.request("GET", "/s/x", {**OPENED, **cookie}).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hitherto": "1"},
        {"X-Hitherto": "2", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "same-origin"},
        {"X-Hitherto": "1", "Sec-Fetch-Site": "same-site"},
        {"X-Hitherto": "1", "Sec-Fetch-Site": "none"},
        OPENED,
    ],
)
async def test_the_cookie_alone_changes_nothing(
    kept: Sessions, server: Server, token: Token, ann: Principal, headers: dict[str, str]
) -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {}}).encode()
    given = {"Content-Type": "application/json", "Cookie": await cookie_of(kept, server, token), **headers}
    assert server.request("POST", "/rpc", given, asked).status == 401
    assert await kept.count(ann) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Mode": "cors"},
    ],
)
async def test_a_page_that_another_one_loads_shows_nothing(
    kept: Sessions, server: Server, token: Token, ann: Principal, changes: dict[str, str]
) -> None:
    await kept.create(ann, title="Hidden", session_id=f"hidden-{ann.owner}")
    cookie = {"Cookie": await cookie_of(kept, server, token)}
    for path in ("/", f"/s/hidden-{ann.owner}", "/live?after=0"):
        reply = server.request("GET", path, {**OPENED, **cookie, **changes})
        assert b"Hidden" not in reply.body
        assert f"hidden-{ann.owner}".encode() not in reply.body


async def test_the_cookie_opens_no_socket(kept: Sessions, server: Server, token: Token) -> None:
    headers = {**OWN, "Cookie": await cookie_of(kept, server, token)}
    address = f"ws://{server.host}/ws"
    async with websockets.asyncio.client.connect(
        address, additional_headers=headers, proxy=None, open_timeout=LIMIT, ping_interval=None
    ) as connection:
        client = Client(connection)
        await client.send(LIST.decode())
        assert (await client.receive())["error"]["data"] == {"code": "unauthenticated"}
        assert (await client.closed())[0] == 1008


async def test_two_cookies_of_one_name_are_none(kept: Sessions, server: Server, token: Token) -> None:
    cookie = await cookie_of(kept, server, token)
    twice = {**OWN, "Cookie": f"{cookie}; {cookie}"}
    assert server.request("POST", "/rpc", twice, LIST).status == 401


async def test_a_pass_has_the_rights_of_its_token(kept: Sessions, server: Server, ann: Principal) -> None:
    reader, _ = await kept.tokens.create(ann.owner, scopes=("read",))
    cookie = {"Cookie": await cookie_of(kept, server, reader)}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session.create", "params": {}}).encode()
    reply = server.request("POST", "/rpc", {**OWN, **cookie}, asked)
    assert reply.json["error"]["data"]["code"] == "forbidden"
    assert b"Rename" not in server.request("GET", "/", {**OPENED, **cookie}).body


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/s/x",
        "/message?session=x&id=y",
        "/find?session=x&q=yy",
        "/jump?session=x&kind=user",
        "/live?after=0",
        "/compaction?session=x",
        "/checkpoints?session=x",
        "/checkpoint?session=x&id=y",
        "/compare?a=x",
        "/compare?a=x&b=y",
        "/export?session=x",
        "/resume?session=x",
        "/static/x/page.css",
    ],
)
async def test_no_other_name_and_no_other_origin_reaches_the_page(
    kept: Sessions, server: Server, token: Token, ann: Principal, path: str
) -> None:
    await kept.create(ann)  # so that there is news, which need not be waited for
    held = {**OPENED, "Cookie": await cookie_of(kept, server, token)}
    assert server.request("GET", path, {**held, "Host": "evil.example"}).status == 421
    assert server.request("GET", path, {**held, "Origin": "https://evil.example"}).status == 403
    reply = server.request("GET", path, held)
    assert reply.status in (200, 404)
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"):
        assert name in reply.headers
    assert not [name for name in reply.headers if name.startswith("access-control")]
