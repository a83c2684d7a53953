"""The page's routes: who may see what, and what is shown to somebody who has not signed in or has lost the way."""

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
from hitherto.gateway.auth.cookies import is_ours
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import signin, templates
from hitherto.gateway.page.list_query import asked
from hitherto.gateway.page.render.window import WindowRequest
from hitherto.gateway.page.responses import AS_TEXT, PLAIN, Shown
from hitherto.gateway.page.views import find, live, session
from hitherto.gateway.page.views.checkpoints import checkpoint, checkpoints
from hitherto.gateway.page.views.compaction import compaction
from hitherto.gateway.page.views.compare import compare
from hitherto.gateway.page.views.export import export, resume
from hitherto.gateway.page.views.list import home
from hitherto.gateway.page.views.overview import looked, overview
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.origin import header
from hitherto.gateway.transport.responses import (
    JSON,
    Refusal,
    ending,
    forbidden,
    refuse,
    reply,
    unauthenticated,
    unreadable,
)
from hitherto.limits import LARGEST_NUMBER
from hitherto.service.search.within import KINDS

READS = "read"
FOR_EVER = ((b"cache-control", b"public, max-age=31536000, immutable"),)
log = logging.getLogger(__name__)


class Visit(NamedTuple):
    """A request of somebody who has signed in."""

    state: ServerState
    caller: Caller
    scope: Scope

    @property
    def asked(self) -> dict[str, str]:
        """What the address says behind its question mark."""
        return dict(
            parse_qsl(self.scope["query_string"].decode("latin-1"), errors="replace", max_num_fields=100)
        )


Work = Callable[[Visit], Awaitable[Shown]]
Open = Callable[[ServerState, Scope, Receive], Awaitable[Shown | None]]


def routes(state: ServerState) -> list[BaseRoute]:
    """All of the page."""
    return [
        Route("/", Endpoint(state, entered(_home, stranger=200)), methods=["GET"]),
        Route("/overview", Endpoint(state, entered(_overview)), methods=["GET"]),
        Route("/s/{session:path}", Endpoint(state, entered(_session)), methods=["GET"]),
        Route("/message", Endpoint(state, entered(_message)), methods=["GET"]),
        Route("/find", Endpoint(state, entered(_find)), methods=["GET"]),
        Route("/jump", Endpoint(state, entered(_jump)), methods=["GET"]),
        Route("/live", Endpoint(state, entered(_live)), methods=["GET"]),
        *(
            Route(path, Endpoint(state, entered(_looked(look))), methods=["GET"])
            for path, look in LOOKS.items()
        ),
        Route("/signin", Endpoint(state, signin.sign_in), methods=["POST"]),
        Route("/signout", Endpoint(state, signin.sign_out), methods=["POST"]),
        Route("/static/{stamp}/{name}", Endpoint(state, _asset), methods=["GET"]),
    ]


class Endpoint:
    """A route of the page. What goes wrong is a page too, for whoever opened one."""

    def __init__(self, state: ServerState, work: Open) -> None:
        self._state, self._work = state, work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            shown = await self._work(self._state, scope, receive)
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        except asyncio.CancelledError:  # the server ends, and does not wait any longer
            await refuse(scope, send, ending())
        else:
            if shown is not None:  # else the client has left
                await reply(scope, send, shown.status, shown.body, shown.told(), shown.kind)


def entered(work: Work, stranger: int = 401) -> Open:
    """A route for those who have signed in; others are told how, with this status."""

    async def answer(state: ServerState, scope: Scope, _: Receive) -> Shown:
        caller = await state.caller_of_cookie(scope)
        if caller is None:
            state.limit_stranger(scope)
            if is_ours(scope):
                raise unauthenticated()
            return Shown(templates.page("signin.html", elsewhere=_from_elsewhere(scope)), stranger)
        state.refuse_if_limited(state.count(caller))
        if not caller.may(READS):
            raise forbidden(READS)
        return await _answered(work, Visit(state, caller, scope))

    return answer


def _from_elsewhere(scope: Scope) -> bool:
    """Whether somebody has followed a link from another site: then the browser shows us no cookie, and may have one."""
    return (
        header(scope, b"sec-fetch-site") in (["cross-site"], ["same-site"])
        and b"in=1" not in scope["query_string"]
    )


async def _answered(work: Work, visit: Visit) -> Shown:
    try:
        return await work(visit)
    except NotFound:
        return _sorry(404, "Not found", "No session of yours has this address. It may have been deleted.")
    except InvalidInput as error:
        return _sorry(400, "Invalid request", f"{error.message[:1].upper()}{error.message[1:]}.")
    except HithertoError as error:
        log.warning("cannot render a page: %s", error.message)
        return _sorry(
            503, "The store is unavailable", f"Reload the page to try again. Details: {error.message}"
        )


def _sorry(status: int, title: str, told: str) -> Shown:
    return Shown(templates.page("sorry.html", title=title, told=told), status)


async def _home(visit: Visit) -> Shown:
    wanted = asked(visit.scope["query_string"])
    return Shown(await home(visit.caller, wanted, in_parts=is_ours(visit.scope)))


async def _overview(visit: Visit) -> Shown:
    return Shown(await overview(visit.caller, looked(visit.asked)))


async def _session(visit: Visit) -> Shown:
    request = WindowRequest(
        session=visit.scope["path_params"]["session"],
        at=visit.asked.get("at"),
        before=visit.asked.get("before"),
        after=visit.asked.get("after"),
        first="first" in visit.asked,
        find=visit.asked.get("find", ""),
        glance="glance" in visit.asked,
    )
    answers = visit.state.engine is not None
    return Shown(await session.session_page(visit.caller, request, answers=answers))


def _looked(look: Look) -> Work:
    async def shown(visit: Visit) -> Shown:
        return Shown(await look(visit.caller, visit.asked, visit.state.engine is not None))

    return shown


async def _message(visit: Visit) -> Shown:
    """One message by itself: as it is kept, or as Markdown. Plain text, whatever it says."""
    told = visit.asked
    body = await session.message(
        visit.caller, told.get("session", ""), told.get("id", ""), told.get("as", "json")
    )
    return Shown(body, kind=PLAIN, headers=AS_TEXT)


async def _find(visit: Visit) -> Shown:
    told = visit.asked
    found = await find.find(visit.caller, told.get("session", ""), told.get("q", ""))
    return Shown(msgspec.json.encode(found), kind=JSON)


async def _jump(visit: Visit) -> Shown:
    told = visit.asked
    if told.get("kind") not in KINDS:
        raise unreadable(400, f"kind must be one of {', '.join(KINDS)}")
    target = await find.jump(
        visit.caller, told.get("session", ""), told.get("from"), told["kind"], back="back" in told
    )
    return Shown(msgspec.json.encode(target), kind=JSON)


async def _live(visit: Visit) -> Shown:
    number = visit.asked.get("after")
    if number is not None and (not number.isdecimal() or int(number) > LARGEST_NUMBER):
        raise unreadable(400, "after must be the number of a change")
    after = None if number is None else int(number)
    seconds = 0.0 if "now" in visit.asked else live.WAIT_SECONDS
    told = await live.news(visit.state, visit.caller, after, visit.asked.get("session"), seconds)
    return Shown(msgspec.json.encode(told), kind=JSON)


async def _asset(state: ServerState, scope: Scope, _: Receive) -> Shown:
    found = templates.assets().get(scope["path_params"]["name"])
    if found is None or scope["path_params"]["stamp"] != templates.stamp():
        state.limit_stranger(scope)
        return _sorry(404, "Not found", "Reload the page.")
    return Shown(found.body, kind=found.kind, headers=FOR_EVER)


Look = Callable[[Caller, Mapping[str, str], bool], Awaitable[bytes]]
"""A page, for what its address says; the last tells whether there is something that answers prompts."""

LOOKS: dict[str, Look] = {
    "/compaction": compaction,
    "/checkpoints": checkpoints,
    "/checkpoint": checkpoint,
    "/compare": compare,
    "/export": export,
    "/resume": resume,
}
