"""The application: its routes, behind a guard that every request passes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import NamedTuple

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hitherto.errors import HithertoError
from hitherto.gateway import app
from hitherto.gateway.page.routes import routes as page_routes
from hitherto.gateway.server.http import Rpc, body_of_caller
from hitherto.gateway.server.rpc_socket import serve_methods, unknown
from hitherto.gateway.server.state import Agent, ServerState
from hitherto.gateway.server.websocket import Endpoint, Socket
from hitherto.gateway.transport import metrics
from hitherto.gateway.transport.origin import Guard, Places
from hitherto.gateway.transport.responses import (
    JSON,
    Headers,
    Refusal,
    ending,
    forbidden,
    out_of_reach,
    refuse,
    reply,
    unless_left,
)
from hitherto.limits import ENTRY_BYTES
from hitherto.recall.tools import READ_BYTES, Recall
from hitherto.service import Sessions
from hitherto.tasks import in_thread

AGENT_NEEDS = ("read", "write", "run")
"""What a token needs for the agent, whose protocol has methods of all these kinds."""


class Page(NamedTuple):
    """The response to a plain GET."""

    body: bytes
    status: int = 200
    kind: bytes = JSON
    headers: Headers = ()


def application(state: ServerState, known: Places) -> ASGIApp:
    """The application with all its routes."""
    routes: list[BaseRoute] = [
        Route("/rpc", Rpc(state), methods=["POST"]),
        WebSocketRoute("/ws", Endpoint(state, partial(serve_methods, state), refusing=unknown)),
        Route("/mcp", History(state), methods=["GET", "POST", "DELETE"]),
        *(Route(path, Got(state, work), methods=["GET"]) for path, work in PAGES.items()),
        *page_routes(state),
    ]
    if state.agent is not None:
        serve = partial(_serve_agent, state.agent)
        routes.append(
            WebSocketRoute("/acp", Endpoint(state, serve, needs=AGENT_NEEDS, names=b"acp-connection-id"))
        )
    return Guard(Router(routes, redirect_slashes=False), known)


class Got:
    """An endpoint that answers GET with a page."""

    def __init__(self, state: ServerState, work: Callable[[ServerState, Scope], Awaitable[Page]]) -> None:
        self._state, self._work = state, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        try:
            page = await self._work(self._state, scope)
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        else:
            await reply(scope, send, page.status, page.body, page.headers, page.kind)


async def _healthy(state: ServerState, scope: Scope) -> Page:
    state.limit_stranger(scope, "health")
    return Page(app.HEALTHY)


async def _ready(state: ServerState, scope: Scope) -> Page:
    state.limit_stranger(scope, "health")
    status, body = await app.readiness(state.sessions, ending=state.ending)
    return Page(body, status)


async def _counted(state: ServerState, scope: Scope) -> Page:
    caller = await state.authenticate(scope)
    if not caller.may("admin"):
        raise forbidden("admin")
    return Page(state.metrics.text(), kind=metrics.KIND)


PAGES = {"/health": _healthy, "/ready": _ready, "/metrics": _counted}


async def _serve_agent(agent: Agent, socket: Socket) -> None:
    await agent(socket, socket.caller)


READY_SECONDS = 2.0
HEALTHY = b'{"status":"ok"}'
READY = b'{"status":"ready"}'
ORDERING = b'{"status":"ready","search":"being put in the order of time"}'
ENDING = b'{"status":"ending"}'
NO_STORE = b'{"status":"the store does not respond"}'


async def readiness(sessions: Sessions, *, ending: bool) -> tuple[int, bytes]:
    """A status and what to say: whether the store answers, and nothing about what is in it."""
    if ending:
        return 503, ENDING
    try:
        async with asyncio.timeout(READY_SECONDS):
            await sessions.tokens.generation()
            ordering = await sessions.admin.unordered() > 0
    except (HithertoError, TimeoutError):
        return 503, NO_STORE
    return 200, ORDERING if ordering else READY


class History:
    """The endpoint. Each request is answered by itself, with the rights that its token has then."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = self._state
        try:
            caller = await state.authenticate(scope)
            if not caller.may("read"):
                raise forbidden("read")
            if caller.is_restricted:
                raise out_of_reach()
            body = await body_of_caller(state, caller, scope, receive) if scope["method"] == "POST" else b""
        except Refusal as refusal:
            await refuse(scope, send, refusal)
            return
        if body is None:
            return
        # The SDK is heavy, and most servers have no such guest.
        server = await in_thread(partial(import_module, "hitherto.recall.server"))
        beside = partial(state.workers.make, caller.who.owner)
        recall = Recall(state.sessions, caller.who, _page(scope), beside, caller.token.role)
        most = READ_BYTES + ENTRY_BYTES if scope["method"] == "POST" else 0
        try:
            async with state.outgoing.making(caller.token.id, most):
                await unless_left(receive, server.serve_request(recall, scope, _again(body), send))
        except asyncio.CancelledError:  # the server ends, and does not wait any longer
            await refuse(scope, send, ending())


def _again(body: bytes) -> Receive:
    """What gives a body that was received already, and then nothing more."""
    left = [body]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await asyncio.Future()

    return receive


def _page(scope: Scope) -> str:
    """Where the page is, as this caller reaches it; the guard has looked at the name."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope.get('scheme', 'http')}://{host.decode('latin-1')}"
