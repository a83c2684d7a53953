"""From where a request may come: every route is asked under names that are not ours and by pages that are not ours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from starlette.routing import Route, Router, WebSocketRoute

from hitherto.gateway.app import application
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.origin import Guard, places
from tests.gateway.servers import Reply, Server, serving
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

OWN = "127.0.0.1:{port}"
HOSTS = (
    OWN, "evil.example", "evil.example:{port}", "localhost.evil.example:{port}", "127.0.0.1.evil.example:{port}",
    "127.0.0.1:{other}", "localhost.:{port}", "127.0.0.2:{port}", "[::ffff:127.0.0.1]:{port}", "2130706433:{port}",
)  # fmt: skip
"""The first is ours: under it a request is refused for its origin alone."""
FOREIGN = HOSTS[1:]
"""Under these it is refused without any origin too: so asks a page whose own name was made to lead here."""
ORIGINS = (
    "https://evil.example", "http://evil.example:{port}", "null", "", "file://", "http://localhost.evil.example",
    "http://127.0.0.1.evil.example:{port}", "http://127.0.0.1", "http://localhost", "http://127.0.0.1:{other}",
    "https://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:{port}", "127.0.0.1:{port}",
    "http://127.0.0.1:{port}/", "http://127.0.0.1:{port}.evil.example", "http://user@127.0.0.1:{port}",
    "chrome-extension://abcdef", "http://127.0.0.1:{port} http://evil.example", "http://127.0.0.1:{port}, null",
)  # fmt: skip
MISDIRECTED, FORBIDDEN = 421, 403
LIST = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'
FILLED = {"{session:path}": "x", "{stamp}": "x", "{name}": "x"}


class Way(NamedTuple):
    """A route, with the method by which it is asked; no method is a socket."""

    path: str
    method: str | None


def ways() -> list[Way]:
    """Every route of the application, by every method that it takes."""

    async def agent(*_: object) -> None:
        raise NotImplementedError

    guard = cast("Guard", application(ServerState(cast("Any", None), agent=agent), places(1)))
    found: list[Way] = []
    for route in cast("Router", guard._app).routes:
        assert isinstance(route, Route | WebSocketRoute)
        path = route.path
        for name, value in FILLED.items():
            path = path.replace(name, value)
        methods = sorted(route.methods or ()) if isinstance(route, Route) else [None]
        found += [Way(path, method) for method in methods]
    return found


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Ask each route under each pair of a name and an origin, always with a good token."""
    asked = refused = 0
    limits = {"stranger_burst": 1_000_000}
    with serving(
        store_in(setting.folder), limits=limits, environment=environment, noisy=bool(environment)
    ) as server:
        known = ways()
        pairs = list(itertools.product(HOSTS, ORIGINS))
        for way in known:
            dice = setting.dice(f"pairs {way}")
            few: list[tuple[str, str | None]] = [*dice.sample(pairs, setting.of(short=12, full=len(pairs)))]
            few += [(host, None) for host in dice.sample(FOREIGN, setting.of(short=2, full=len(FOREIGN)))]
            for host, origin in few:
                named = [("Host", host)] if origin is None else [("Host", host), ("Origin", origin)]
                reply = ask(server, way, named)
                asked += 1
                refused += (reply.status, reply.body) == (FORBIDDEN if host == OWN else MISDIRECTED, b"")
        welcome = [ask(server, way, [("Host", OWN), ("Origin", f"http://{OWN}")]) for way in known]
    shut_out = sum(reply.status in (FORBIDDEN, MISDIRECTED) and not reply.body for reply in welcome)
    figure = (
        f"{refused:,} of {asked:,} refused ({len(ORIGINS)} origins × {len(HOSTS)} hosts, and {len(FOREIGN)} hosts without an"
        f" origin, × {len(known)} routes and methods{', a sample' if setting.short else ''}); our own page refused by {shut_out}"
    )
    sums = {"inputs": asked, "leaked": asked - refused}
    return Outcome(met=refused == asked and not shut_out, figure=figure, counts=sums)


def ask(server: Server, way: Way, headers: Sequence[tuple[str, str]]) -> Reply:
    """One request, with a good token."""
    filled = [(name, value.format(port=server.port, other=server.port + 1)) for name, value in headers]
    known = [*server.bearer("ann").items(), *filled]
    if way.method is None:
        return server.upgrade(way.path, known)
    if way.method == "POST":
        return server.request("POST", way.path, [*known, ("Content-Type", "application/json")], LIST)
    return server.request(way.method, f"{way.path}?now=1", known)
