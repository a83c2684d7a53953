"""Answers of HTTP: refusals, for requests and for sockets that are not opened; and what is for nobody any more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Message, Receive, Scope, Send

from hitherto.errors import HithertoError
from hitherto.gateway.dispatch.errors import failure, failure_of
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, Failure
from hitherto.tasks import cancel_all

T = TypeVar("T")
CHALLENGE = ((b"www-authenticate", b'Bearer realm="hitherto"'),)

SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer that does not set them itself: no content sniffing, no referrer, no caching."""
JSON = b"application/json"
PIECE_BYTES = 256 * 1024
ENDING = failure("ending", "the server is shutting down: retry, or use another server")

Headers = tuple[tuple[bytes, bytes], ...]


class Refusal(Exception):
    """Why a request does not reach a method: for HTTP a status, for JSON-RPC an error."""

    def __init__(self, status: int, why: Failure, headers: Headers = ()) -> None:
        super().__init__(why.message)
        self.status, self.why, self.headers = status, why, headers

    def line(self) -> bytes:
        """The error that answers no request in particular."""
        return frames.refusal(frames.NULL, self.why.code, self.why.message, self.why.data)


def unauthenticated() -> Refusal:
    """There is no good token."""
    message = "a token is required: send the header `Authorization: Bearer TOKEN`"
    return Refusal(401, failure("unauthenticated", message), CHALLENGE)


def rate_limited(seconds: float) -> Refusal:
    """There were too many requests."""
    wait = min(seconds, 3_600.0)
    why = failure(
        "rate_limited", "too many requests: wait before you retry", retry_after_ms=math.ceil(wait * 1_000)
    )
    return Refusal(429, why, ((b"retry-after", b"%d" % math.ceil(wait)),))


def out_of_reach() -> Refusal:
    """A way in that a restricted token does not open."""
    return Refusal(
        403, failure("out_of_reach", "a restricted token is good for the methods of the gateway only")
    )


def forbidden(*scopes: str) -> Refusal:
    """The token is good for other things."""
    message = f"this needs a token with the scopes: {', '.join(scopes)}"
    return Refusal(403, failure("forbidden", message, scope=" ".join(scopes)))


def unavailable(error: HithertoError) -> Refusal:
    """The store did not answer."""
    return Refusal(503, failure_of(error))


def ending() -> Refusal:
    """The server takes nothing new."""
    return Refusal(503, ENDING, ((b"retry-after", b"1"),))


def unreadable(status: int, message: str) -> Refusal:
    """What was sent is no request, whatever is in it."""
    return Refusal(status, Failure(INVALID_REQUEST, message))


async def refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer with a refusal and close the connection, whatever else was to come on it."""
    headers = (*refusal.headers, (b"connection", b"close"))
    await reply(scope, send, refusal.status, refusal.line(), headers)


async def reply(
    scope: Scope, send: Send, status: int, body: bytes = b"", headers: Headers = (), kind: bytes = JSON
) -> None:
    """Answer with a body of this kind."""
    prefix = "websocket." if scope["type"] == "websocket" else ""
    all_headers = [(b"content-length", b"%d" % len(body)), *headers]
    if body:
        all_headers.append((b"content-type", kind))
    await send({"type": f"{prefix}http.response.start", "status": status, "headers": all_headers})
    last = max(len(body) - 1, 0) // PIECE_BYTES * PIECE_BYTES
    for start in range(0, last, PIECE_BYTES):  # each waits until the peer has taken most of the one before
        piece = body[start : start + PIECE_BYTES]
        await send({"type": f"{prefix}http.response.body", "body": piece, "more_body": True})
    await send({"type": f"{prefix}http.response.body", "body": body[last:]})


async def unless_left(receive: Receive, responding: Coroutine[Any, Any, T]) -> T | None:
    """The response; None if the client leaves first: then the work for it ends."""
    work, leaving = asyncio.create_task(responding), asyncio.create_task(_left(receive))
    try:
        await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        await cancel_all((work, leaving))


async def _left(receive: Receive) -> None:
    while (await receive())["type"] == "http.request":
        pass


def safely(send: Send) -> Send:
    """The same, with the headers that every answer has."""

    async def sending(message: Message) -> None:
        if message["type"].endswith("http.response.start"):
            own = [*message.get("headers", ())]
            said = {name for name, _ in own}
            message["headers"] = [*own, *(pair for pair in SAFE if pair[0] not in said)]
        await send(message)

    return sending
