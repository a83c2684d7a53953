"""From where a request may come: Host × Origin × route, sockets included, each with a good token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hitherto.errors import InvalidInput
from hitherto.gateway.auth.cookies import kept
from hitherto.gateway.serve import ListenAddress, address
from hitherto.gateway.transport.origin import checked_origin, places, verdict
from tests.gateway.servers import Reply, Server, serving

PROXY = "https://hitherto.example.org"
ROUTES = ("/", "/health", "/ready", "/metrics", "/rpc", "/nowhere", "/ws", "/acp")
SOCKETS = ("/ws", "/acp")
NOWHERE = 404
FOREIGN_HOSTS = (
    "evil.example", "evil.example:{port}", "localhost.evil.example:{port}", "127.0.0.1.evil.example:{port}",
    "127.0.0.1", "localhost", "127.0.0.1:{other}", "localhost:{other}", "[::1]:{other}", "localhost.:{port}",
    "127.0.0.2:{port}", "0.0.0.0:{port}", "127.1:{port}", "2130706433:{port}", "[::ffff:127.0.0.1]:{port}",
    "127.0.0.1:{port}@evil.example", "evil.example#127.0.0.1:{port}", "127.0.0.1:{port}, evil.example", "",
    "hitherto.example.org:444", "hitherto.example.org.evil.example",
)  # fmt: skip
FOREIGN_ORIGINS = (
    "https://evil.example", "http://evil.example:{port}", "null", "", "file://", "http://localhost.evil.example",
    "http://127.0.0.1.evil.example:{port}", "http://127.0.0.1", "http://localhost", "http://127.0.0.1:{other}",
    "https://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:{port}", "127.0.0.1:{port}",
    "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}.evil.example", "http://user@127.0.0.1:{port}",
    "chrome-extension://abcdef", "tauri://localhost", "http://hitherto.example.org", "https://hitherto.example.org:8443",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("places")
    limits = {"stranger_burst": 100_000}
    with serving(f"sqlite:///{folder / 'r.db'}", where={"origins": [PROXY]}, limits=limits) as running:
        yield running


def filled(server: Server, text: str) -> str:
    return text.format(port=server.port, other=server.port + 1)


def ask(server: Server, route: str, headers: Sequence[tuple[str, str]]) -> Reply:
    known = [*server.bearer("ann").items(), *headers]
    if route in SOCKETS:
        return server.upgrade(route, known)
    if route == "/rpc":
        body = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'
        return server.request("POST", route, [*known, ("Content-Type", "application/json")], body)
    return server.request("GET", route, known)


def passed(route: str) -> int:
    return 101 if route in SOCKETS else NOWHERE if route == "/nowhere" else 200


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_name_that_is_not_ours_is_refused_everywhere(server: Server, route: str, host: str) -> None:
    reply = ask(server, route, [("Host", filled(server, host))])
    assert (reply.status, reply.body) == (421, b"")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_a_page_of_another_origin_is_refused_everywhere(server: Server, route: str, origin: str) -> None:
    reply = ask(server, route, [("Origin", filled(server, origin))])
    assert (reply.status, reply.body) == (403, b"")


@pytest.mark.parametrize("route", ROUTES)
def test_two_of_what_must_be_one_are_refused(server: Server, route: str) -> None:
    own = ("Host", server.host)
    assert ask(server, route, [own, own]).status in (400, 421)
    assert ask(server, route, [own, ("Host", "evil.example")]).status in (400, 421)
    same = ("Origin", f"http://{server.host}")
    assert ask(server, route, [same, same]).status in (400, 403)


@pytest.mark.parametrize("route", ROUTES)
def test_our_own_names_pass_with_their_own_origin_or_none(server: Server, route: str) -> None:
    for host in ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"):
        own = filled(server, host)
        assert ask(server, route, [("Host", own)]).status == passed(route)
        assert ask(server, route, [("Host", own), ("Origin", f"http://{own.lower()}")]).status == passed(
            route
        )


@pytest.mark.parametrize("route", ROUTES)
def test_a_declared_proxy_passes_under_either_name(server: Server, route: str) -> None:
    for headers in (
        [("Host", "hitherto.example.org"), ("Origin", PROXY)],
        [("Host", server.host), ("Origin", PROXY)],
        [("Host", "hitherto.example.org")],
    ):
        assert ask(server, route, headers).status == passed(route)


@pytest.mark.parametrize("route", ROUTES)
def test_what_a_browser_marks_as_another_sites_is_refused(server: Server, route: str) -> None:
    cross = ("Sec-Fetch-Site", "cross-site")
    assert ask(server, route, [cross]).status == 403
    assert ask(server, route, [cross, ("Sec-Fetch-Mode", "no-cors")]).status == 403
    followed = ask(server, route, [cross, ("Sec-Fetch-Mode", "navigate")]).status
    assert followed == (403 if route in ("/rpc", *SOCKETS) else passed(route))


def test_no_answer_invites_another_origin(server: Server) -> None:
    preflight = [("Origin", f"http://{server.host}"), ("Access-Control-Request-Method", "POST")]
    replies = [server.request("OPTIONS", route, preflight) for route in ROUTES]
    replies += [ask(server, route, []) for route in ROUTES]
    for reply in replies:
        assert not [name for name in reply.headers if name.startswith("access-control")]
    assert {reply.status for reply in replies[: len(ROUTES)]} == {404, 405}


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Hitherto.Example.org/", "https://hitherto.example.org"),
        ("https://hitherto.example.org:443", "https://hitherto.example.org"),
        ("http://hitherto.example.org:443", "http://hitherto.example.org:443"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_is_declared_as_browsers_write_it(text: str, origin: str) -> None:
    assert checked_origin(text) == origin


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hitherto.example.org",
        "ftp://x",
        "https://",
        "https://u@x",
        "https://x/y",
        "https://x?y",
        "https://x:y",
    ],
)
def test_what_is_no_origin_cannot_be_declared(text: str) -> None:
    with pytest.raises(InvalidInput):
        checked_origin(text)


def test_the_usual_port_may_be_left_out() -> None:
    known = places(443, tls=True)
    for host, status in ((b"localhost", 0), (b"localhost:443", 0), (b"localhost:80", 421)):
        scope = {"type": "http", "headers": [(b"host", host)], "server": ("10.0.0.1", 443)}
        assert verdict(known, scope) == status


def test_a_machine_is_called_by_the_names_that_it_was_given() -> None:
    known = places(9000, tls=True, names=["Hitherto.example.org"])
    for host, origin, status in (
        (b"hitherto.example.org:9000", b"https://hitherto.example.org:9000", 0),
        (b"hitherto.example.org:9000", b"https://example.org:9000", 403),
        (b"hitherto.example.org", b"https://hitherto.example.org", 421),
        (b"example.org:9000", b"https://example.org:9000", 421),
    ):
        heads = [(b"host", host), (b"origin", origin)]
        scope = {"type": "http", "headers": heads, "server": ("10.0.0.1", 9000)}
        assert verdict(known, scope) == status, host
    for name in ("", "https://x", "x:1", "x/y", "-x", "a b", "[::1]"):
        with pytest.raises(InvalidInput):
            places(9000, names=[name])


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        (ListenAddress(host="0.0.0.0"), "http://127.0.0.1:9"),  # noqa: S104 - nothing listens
        (ListenAddress(host="::", names=("a.example", "b.example")), "http://a.example:9"),
        (ListenAddress(host="::1"), "http://[::1]:9"),
        (ListenAddress(host="10.0.0.7", tls_cert="c", tls_key="k"), "https://10.0.0.7:9"),
    ],
)
def test_the_address_that_is_printed_is_one_that_is_answered(where: ListenAddress, shown: str) -> None:
    assert address(where, 9) == shown


@pytest.mark.parametrize(
    ("scheme", "origin", "secure"),
    [
        ("https", None, True),
        ("http", b"https://proxy.example", True),
        ("http", b"http://localhost:9", False),
        ("http", None, False),
    ],
)
def test_the_cookie_is_for_tls_only_where_there_is_tls(
    scheme: str, origin: bytes | None, secure: bool
) -> None:
    heads = [(b"host", b"localhost:9"), *([] if origin is None else [(b"origin", origin)])]
    scope = {"type": "http", "scheme": scheme, "headers": heads}
    assert kept(scope, "x").endswith(b"; Secure") == secure


def test_the_address_at_which_it_was_reached_is_its_name() -> None:
    known = places(9000, tls=True)
    for host, status in ((b"10.0.0.1:9000", 0), (b"10.0.0.2:9000", 421), (b"10.0.0.1", 421)):
        scope = {"type": "http", "headers": [(b"host", host)], "server": ("10.0.0.1", 9000)}
        assert verdict(known, scope) == status
