"""The application: its routes, behind a guard that every request passes first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hitherto.gateway import health, metrics
from hitherto.gateway.connection import serve_methods, unknown
from hitherto.gateway.desk import Agent, Desk
from hitherto.gateway.guard import Guard, Places
from hitherto.gateway.history import History
from hitherto.gateway.http import Rpc
from hitherto.gateway.page.routes import routes as page_routes
from hitherto.gateway.replies import JSON, Headers, Refusal, forbidden, refuse, reply
from hitherto.gateway.sockets import Endpoint, Socket

AGENT_NEEDS = ("read", "write", "run")
"""What a token needs for the agent, whose protocol has methods of all these kinds."""


class Page(NamedTuple):
    """What a plain GET is answered with."""

    body: bytes
    status: int = 200
    kind: bytes = JSON
    headers: Headers = ()


def application(desk: Desk, known: Places) -> ASGIApp:
    """Everything that is served at one address."""
    routes: list[BaseRoute] = [
        Route("/rpc", Rpc(desk), methods=["POST"]),
        WebSocketRoute("/ws", Endpoint(desk, partial(serve_methods, desk), refusing=unknown)),
        Route("/mcp", History(desk), methods=["GET", "POST", "DELETE"]),
        *(Route(path, Got(desk, work), methods=["GET"]) for path, work in PAGES.items()),
        *page_routes(desk),
    ]
    if desk.agent is not None:
        serve = partial(_serve_agent, desk.agent)
        routes.append(WebSocketRoute("/acp", Endpoint(desk, serve, needs=AGENT_NEEDS)))
    return Guard(Router(routes, redirect_slashes=False), known)


class Got:
    """An endpoint that answers GET with a page."""

    def __init__(self, desk: Desk, work: Callable[[Desk, Scope], Awaitable[Page]]) -> None:
        self._desk, self._work = desk, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        try:
            page = await self._work(self._desk, scope)
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        else:
            await reply(scope, send, page.status, page.body, page.headers, page.kind)


async def _healthy(desk: Desk, scope: Scope) -> Page:
    desk.greet(scope, "health")
    return Page(health.HEALTHY)


async def _ready(desk: Desk, scope: Scope) -> Page:
    desk.greet(scope, "health")
    status, body = await health.readiness(desk.sessions, ending=desk.ending)
    return Page(body, status)


async def _counted(desk: Desk, scope: Scope) -> Page:
    caller = await desk.admit(scope)
    if not caller.may("admin"):
        raise forbidden("admin")
    return Page(desk.metrics.text(), kind=metrics.KIND)


PAGES = {"/health": _healthy, "/ready": _ready, "/metrics": _counted}


async def _serve_agent(agent: Agent, socket: Socket) -> None:
    await agent(socket, socket.caller)
