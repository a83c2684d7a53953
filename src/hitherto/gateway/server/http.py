"""`POST /rpc`: one JSON-RPC request in each body, answered from the table of methods."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope, Send

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.dispatch.errors import failure
from hitherto.gateway.methods import METHODS
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.limits import MESSAGE_BYTES
from hitherto.gateway.transport.responses import JSON, Refusal, ending, refuse, reply, unreadable
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, Failure
from hitherto.rpc.frames import BadFrame

TOO_MUCH = failure(
    "rate_limited",
    "too many bytes are being received: send fewer long requests at a time",
    retry_after_ms=1_000,
)
SLOWEST = 100_000
"""Bytes per second: a long body may take longer than a short one."""


class Rpc:
    """The endpoint. Nothing of a body is read before it is known whose it is."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = self._state
        try:
            caller = await state.authenticate(scope)
            body = await body_of_caller(state, caller, scope, receive)
            line = None if body is None else await _answer(state, caller, body)
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        except asyncio.CancelledError:  # the server ends, and does not wait any longer
            await refuse(scope, send, ending())
        else:
            if line is not None:  # else the client has left
                with state.outgoing.sending(caller.token.id, len(line)):
                    await reply(scope, send, 200 if line else 204, line)


async def _answer(state: ServerState, caller: Caller, body: bytes) -> bytes:
    """The answer; nothing for a notification, which is done all the same unless it would take long."""
    try:
        frame = frames.read_frame(body)
    except BadFrame as bad:
        return bad.answer
    if frame.method is None:
        return frames.refusal(frame.id, INVALID_REQUEST, "the method is missing: send a request")
    asked = frames.has_id(frame)
    if not asked and (frame.method not in METHODS or METHODS[frame.method].waits):
        return b""
    try:
        answering = state.call(state.context(caller), frame.method, frames.params_of(frame), "http")
        lasts = frame.method in METHODS and METHODS[frame.method].lasts
        result = await (state.background.run(caller, answering) if lasts else answering)
    except Failure as failure:
        return frames.refusal(frame.id, failure.code, failure.message, failure.data) if asked else b""
    return frames.answer(frame.id, result) if asked else b""


async def body_of_caller(state: ServerState, caller: Caller, scope: Scope, receive: Receive) -> bytes | None:
    """All of the body of a known caller, counted while it is being received."""
    taken, token = 0, caller.token.id

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        size = len(message.get("body", b""))
        if not state.incoming.take(token, size):
            raise Refusal(429, TOO_MUCH, ((b"retry-after", b"1"),))
        taken += size
        return message

    try:
        return await body_of(scope, counted, state.limits.body_seconds)
    finally:
        state.incoming.free(token, taken)


async def body_of(scope: Scope, receive: Receive, seconds: float, most: int = MESSAGE_BYTES) -> bytes | None:
    """All of the body, which is JSON; None if the client leaves meanwhile. Raises `Refusal`."""
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    if len(kinds) != 1 or kinds[0].partition(b";")[0].strip().lower() != JSON:
        raise unreadable(415, "the request body must be application/json")
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    if lengths and lengths[0].isdigit() and int(lengths[0]) > most:
        raise _too_long(most)
    body, began = bytearray(), asyncio.get_running_loop().time()
    while True:
        try:
            async with asyncio.timeout_at(began + seconds + len(body) / SLOWEST):
                message = await receive()
        except TimeoutError:
            raise unreadable(408, "timed out waiting for the request body") from None
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise _too_long(most)
        if not message.get("more_body"):
            return bytes(body)


def _too_long(most: int) -> Refusal:
    return unreadable(413, f"the request body must not exceed {most} bytes")
