"""The routes of the page: who may see what, the sign-in page, and error pages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from hitherto.errors import HithertoError, InvalidInput, NotFound
from hitherto.gateway.auth.cookies import is_ours, zone_of
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import signin, templates
from hitherto.gateway.page.list_query import parse_query
from hitherto.gateway.page.render.window import WindowRequest
from hitherto.gateway.page.responses import AS_TEXT, PLAIN, PageResponse
from hitherto.gateway.page.views import find, live, session
from hitherto.gateway.page.views.changes import changes
from hitherto.gateway.page.views.checkpoints import checkpoint, checkpoints
from hitherto.gateway.page.views.compaction import compaction
from hitherto.gateway.page.views.compare import compare
from hitherto.gateway.page.views.export import export, resume
from hitherto.gateway.page.views.inbox import inbox, waiting
from hitherto.gateway.page.views.list import home
from hitherto.gateway.page.views.usage import parse_usage_query, usage_csv, usage_page
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.server.workers import Run, WorkTooSlow
from hitherto.gateway.transport.origin import header
from hitherto.gateway.transport.responses import (
    JSON,
    Refusal,
    ending,
    forbidden,
    refuse,
    reply,
    unauthenticated,
    unless_left,
    unreadable,
)
from hitherto.service.admin.spending import checked_zone
from hitherto.service.search.within import KINDS

READS = "read"
CSV = b"text/csv; charset=utf-8"
AS_FILE = ((b"content-disposition", b'attachment; filename="usage.csv"'),)
FOR_EVER = ((b"cache-control", b"public, max-age=31536000, immutable"),)
log = logging.getLogger(__name__)


class PageRequest(NamedTuple):
    """A request of a signed-in caller."""

    state: ServerState
    caller: Caller
    scope: Scope

    @property
    def query(self) -> dict[str, str]:
        """The query part of the address."""
        return dict(
            parse_qsl(self.scope["query_string"].decode("latin-1"), errors="replace", max_num_fields=100)
        )

    @property
    def zone(self) -> str:
        """The time zone of the browser, which it says in a cookie; UTC if that is none."""
        try:
            found = zone_of(self.scope)
            checked_zone(found)
        except InvalidInput:
            return "UTC"
        return found


Handler = Callable[[PageRequest], Awaitable[PageResponse]]
RawHandler = Callable[[ServerState, Scope, Receive], Awaitable[PageResponse | None]]


def routes(state: ServerState) -> list[BaseRoute]:
    """All routes of the page."""
    return [
        Route("/", Endpoint(state, signed_in(_home, status=200)), methods=["GET"]),
        Route("/usage", Endpoint(state, signed_in(_usage)), methods=["GET"]),
        Route("/usage.csv", Endpoint(state, signed_in(_usage_csv)), methods=["GET"]),
        Route("/s/{session:path}", Endpoint(state, signed_in(_session)), methods=["GET"]),
        Route("/message", Endpoint(state, signed_in(_message)), methods=["GET"]),
        Route("/find", Endpoint(state, signed_in(_find)), methods=["GET"]),
        Route("/jump", Endpoint(state, signed_in(_jump)), methods=["GET"]),
        Route("/waiting", Endpoint(state, signed_in(_waiting)), methods=["GET"]),
        Route("/live", Endpoint(state, signed_in(_live)), methods=["GET"]),
        *(
            Route(path, Endpoint(state, signed_in(_handler_of(view))), methods=["GET"])
            for path, view in VIEWS.items()
        ),
        Route("/signin", Endpoint(state, signin.sign_in), methods=["POST"]),
        Route("/signout", Endpoint(state, signin.sign_out), methods=["POST"]),
        Route("/static/{stamp}/{name}", Endpoint(state, _asset), methods=["GET"]),
    ]


class Endpoint:
    """A route of the page. Errors are rendered as pages too."""

    def __init__(self, state: ServerState, handler: RawHandler) -> None:
        self._state, self._handler = state, handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._handler(self._state, scope, receive)
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        except asyncio.CancelledError:  # the server is shutting down
            await refuse(scope, send, ending())
        else:
            if response is not None:  # else the client disconnected
                await reply(
                    scope, send, response.status, response.body, response.all_headers(), response.kind
                )


def signed_in(handler: Handler, status: int = 401) -> RawHandler:
    """A route for signed-in callers; others get the sign-in page with this status."""

    async def answer(state: ServerState, scope: Scope, receive: Receive) -> PageResponse | None:
        caller = await state.caller_of_cookie(scope)
        if caller is None:
            state.limit_stranger(scope)
            if is_ours(scope):
                raise unauthenticated()
            return PageResponse(templates.page("signin.html", elsewhere=_from_elsewhere(scope)), status)
        state.refuse_if_limited(state.count(caller))
        if not caller.may(READS):
            raise forbidden(READS)
        return await unless_left(receive, _respond(handler, PageRequest(state, caller, scope)))

    return answer


def _from_elsewhere(scope: Scope) -> bool:
    """Whether this request follows a link on another site: then the browser withholds a cookie that it may have."""
    return (
        header(scope, b"sec-fetch-site") in (["cross-site"], ["same-site"])
        and b"in=1" not in scope["query_string"]
    )


async def _respond(handler: Handler, request: PageRequest) -> PageResponse:
    try:
        return await handler(request)
    except NotFound:
        return _error_page(
            404, "Not found", "No session of yours has this address. It may have been deleted."
        )
    except InvalidInput as error:
        return _error_page(400, "Invalid request", f"{error.message[:1].upper()}{error.message[1:]}.")
    except WorkTooSlow:
        return _error_page(
            503,
            "This takes too long to show",
            "Read it as text instead: `hitherto show` does, and so do exports.",
        )
    except HithertoError as error:
        log.warning("cannot render a page: %s", error.message)
        return _error_page(
            503, "The store is unavailable", f"Reload the page to try again. Details: {error.message}"
        )


def _error_page(status: int, title: str, text: str) -> PageResponse:
    return PageResponse(templates.page("error.html", title=title, text=text), status)


async def _home(request: PageRequest) -> PageResponse:
    wanted = parse_query(request.scope["query_string"], request.zone)
    in_parts, bare = is_ours(request.scope), "bare" in request.query
    return PageResponse(await home(request.caller, wanted, in_parts=in_parts, bare=in_parts and bare))


async def _usage(request: PageRequest) -> PageResponse:
    wanted = parse_usage_query(request.query, request.zone)
    return PageResponse(await usage_page(request.caller, wanted))


async def _usage_csv(request: PageRequest) -> PageResponse:
    wanted = parse_usage_query(request.query, request.zone)
    return PageResponse(await usage_csv(request.caller, wanted), kind=CSV, headers=AS_FILE)


async def _session(request: PageRequest) -> PageResponse:
    window = WindowRequest(
        session=request.scope["path_params"]["session"],
        at=request.query.get("at"),
        before=request.query.get("before"),
        after=request.query.get("after"),
        first="first" in request.query,
        find=request.query.get("find", ""),
        glance="glance" in request.query,
        steps="steps" in request.query,
    )
    answers = request.state.engine is not None
    async with request.state.workers.turn(request.caller.who.owner) as run:
        return PageResponse(await session.session_page(request.caller, window, run, answers=answers))


def _handler_of(view: View) -> Handler:
    async def handle(request: PageRequest) -> PageResponse:
        answers = request.state.engine is not None
        async with request.state.workers.turn(request.caller.who.owner) as run:
            return PageResponse(await view(request.caller, request.query, run, answers))

    return handle


async def _message(request: PageRequest) -> PageResponse:
    """One message, as stored or as Markdown; always as plain text."""
    query = request.query
    async with request.state.workers.turn(request.caller.who.owner) as run:
        body = await session.message(
            request.caller, query.get("session", ""), query.get("id", ""), query.get("as", "json"), run
        )
    return PageResponse(body, kind=PLAIN, headers=AS_TEXT)


async def _find(request: PageRequest) -> PageResponse:
    query = request.query
    found = await find.find(request.caller, query.get("session", ""), query.get("q", ""))
    return PageResponse(msgspec.json.encode(found), kind=JSON)


async def _jump(request: PageRequest) -> PageResponse:
    query = request.query
    if query.get("kind") not in KINDS:
        raise unreadable(400, f"kind must be one of {', '.join(KINDS)}")
    target = await find.jump(
        request.caller, query.get("session", ""), query.get("from"), query["kind"], back="back" in query
    )
    return PageResponse(msgspec.json.encode(target), kind=JSON)


async def _waiting(request: PageRequest) -> PageResponse:
    return PageResponse(msgspec.json.encode(await waiting(request.caller)), kind=JSON)


async def _live(request: PageRequest) -> PageResponse:
    after = request.query.get("after")
    seconds = 0.0 if "now" in request.query else live.WAIT_SECONDS
    changes = await live.changes_since(
        request.state, request.caller, after, request.query.get("session"), seconds
    )
    return PageResponse(msgspec.json.encode(changes), kind=JSON)


async def _asset(state: ServerState, scope: Scope, _: Receive) -> PageResponse:
    found = templates.assets().get(scope["path_params"]["name"])
    if found is None or scope["path_params"]["stamp"] != templates.stamp():
        state.limit_stranger(scope)
        return _error_page(404, "Not found", "Reload the page.")
    return PageResponse(found.body, kind=found.kind, headers=FOR_EVER)


View = Callable[[Caller, Mapping[str, str], Run, bool], Awaitable[bytes]]
"""Renders a page from the caller, the query, a worker and whether the server has an engine."""

VIEWS: dict[str, View] = {
    "/changes": changes,
    "/compaction": compaction,
    "/checkpoints": checkpoints,
    "/checkpoint": checkpoint,
    "/compare": compare,
    "/export": export,
    "/resume": resume,
    "/inbox": inbox,
}
