"""Who opens a WebSocket. A program shows its token in the header of the upgrade. A browser cannot do that: it says
`connect` with the token in its first message, which must come soon and be short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from starlette.types import Receive, Scope, Send

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.protocols import SocketLine, received
from hitherto.gateway.transport.responses import (
    Refusal,
    ending,
    forbidden,
    out_of_reach,
    rate_limited,
    unauthenticated,
)
from hitherto.model import Json
from hitherto.rpc import frames
from hitherto.rpc.errors import Failure
from hitherto.rpc.frames import BadFrame, Frame

POLICY = 1008
CONNECT = "connect"
FIRST = "not authenticated: call connect with a token first"


class _Connect(msgspec.Struct, frozen=True):
    token: str


_connects = msgspec.json.Decoder(_Connect)


class Visitor:
    """Somebody at the door of a socket, whose token will need these scopes; `headers` are those of the answer."""

    def __init__(
        self,
        state: ServerState,
        scope: Scope,
        line: SocketLine,
        needs: tuple[str, ...],
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self._state, self._scope, self._line, self._needs = state, scope, line, needs
        self._headers = headers

    async def admitted(self, receive: Receive, send: Send) -> Caller | None:
        """Open the socket and return who it is; None if that did not turn out. Raises `Refusal` before it is open."""
        try:
            caller = await self._shown()
            await receive()
            await send({"type": "websocket.accept", "headers": list(self._headers)})
            return caller or await self._introduced(receive)
        finally:
            self._state.waiting.leave(self._line)

    async def _shown(self) -> Caller | None:
        """Who the header says it is; None for one without such a header, who is let in to say it."""
        if any(name == b"authorization" for name, _ in self._scope["headers"]):
            return self._able(await self._state.authenticate(self._scope))
        self._state.limit_stranger(self._scope, "socket")
        if self._state.ending:
            raise ending()
        if not self._state.waiting.enter(self._line, self._state.peer(self._scope)):
            self._state.metrics.refused.add(reason="strangers")
            raise rate_limited(self._state.limits.stranger_seconds)
        return None

    async def _introduced(self, receive: Receive) -> Caller | None:
        try:
            async with asyncio.timeout(self._state.limits.stranger_seconds):
                data = await received(self._line, receive)
        except TimeoutError:
            data = b""
        if data:
            try:
                return await self._connected(frames.read_frame(data))
            except BadFrame as bad:
                await self._line.say(bad.answer.rstrip())
        self._line.give_up(POLICY, FIRST)
        return None

    async def _connected(self, frame: Frame) -> Caller | None:
        number = frame.id if frames.has_id(frame) else frames.NULL
        try:
            caller = self._able(await self._known(frame))
        except Refusal as refusal:
            why = refusal.why
            await self._line.say(frames.refusal(number, why.code, why.message, why.data).rstrip())
            self._line.give_up(POLICY, FIRST)
            return None
        token = caller.token
        answer: Json = {"owner": token.owner, "role": token.role, "scopes": token.scopes}
        await self._line.say(frames.answer(number, frames.encode(answer)).rstrip())
        return caller

    async def _known(self, frame: Frame) -> Caller:
        try:
            params: _Connect = frames.decode_params(_connects, frames.params_of(frame))
        except Failure:
            params = _Connect("")
        caller = await self._state.caller_of_token(params.token) if frame.method == CONNECT else None
        if caller is None:
            self._state.reject_token(self._scope)
            raise unauthenticated()
        return caller

    def _able(self, caller: Caller) -> Caller:
        if not caller.may(*self._needs):
            raise forbidden(*self._needs)
        if self._needs and caller.is_restricted:
            raise out_of_reach()
        return caller
