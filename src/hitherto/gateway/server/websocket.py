"""WebSockets that are served: messages both ways, one in each text frame, for as long as their token is good."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import uuid4

import msgspec
from msgspec import Raw
from starlette.types import Receive, Scope, Send

from hitherto.errors import HithertoError
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.server.handshake import POLICY, Visitor
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.protocols import LINE, RESTARTING, SocketLine, received
from hitherto.gateway.transport.responses import (
    ENDING,
    Refusal,
    ending,
    rate_limited,
    refuse,
    unauthenticated,
    unavailable,
)
from hitherto.rpc import frames
from hitherto.rpc.errors import Failure, Gone

NORMAL, FAULT = 1000, 1011
REVOKED = "the token was revoked"
NUMBERED = b'{"jsonrpc":"2.0","id":'
"""How every line of ours begins that has an id: answers, and requests of our own."""
RESULT = b',"result":'
LONG_BYTES = 16 * 1024


class _Head(msgspec.Struct):
    """What is known of a message before it is decoded."""

    id: Raw = Raw(b"")
    method: str | None = None

    @property
    def is_request(self) -> bool:
        return self.method is not None and bool(memoryview(self.id))


_heads = msgspec.json.Decoder(_Head)
Refuse = Callable[[str], Failure | None]
"""Says by the name of a method why it is not served at all."""


class Socket:
    """See `rpc.transport.Transport`. Each message of the peer is checked against its token, and against the limits."""

    def __init__(
        self, state: ServerState, line: SocketLine, receive: Receive, caller: Caller, refusing: Refuse
    ) -> None:
        self.caller = caller
        self._state, self._line, self._receive, self._refusing = state, line, receive, refusing
        self._unanswered: Counter[bytes] = Counter()

    async def receive(self) -> bytes | None:
        while (data := await received(self._line, self._receive)) is not None:
            head = _head(data)
            try:
                if not await self.caller.holds():
                    raise unauthenticated()
                self._admit(head)
            except Refusal as refusal:
                await self._refuse(head, refusal.why)
                if refusal.status == 401:
                    self.close(POLICY, REVOKED)
                    return None
            except HithertoError as error:
                await self._refuse(head, unavailable(error).why)
            else:
                self._ask(head)
                return data
        return None

    async def send(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if not line:
                continue
            if len(line) <= LONG_BYTES or not line.startswith(NUMBERED):
                await self._line.say(line)
            else:
                with self._state.outgoing.sending(self.caller.token.id, len(line)):
                    await self._line.say(line)
            if line.startswith(NUMBERED):
                self._answered(_head_of(line))

    def trust(self) -> None:
        """Take long messages from now on."""
        self._line.trust(self.caller.token.id)

    def close(self, code: int, reason: str) -> None:
        """End it, whether the peer reads that or not."""
        self._line.give_up(code, reason)

    async def check(self) -> None:
        if not await self.caller.holds():
            self.close(POLICY, REVOKED)

    def drain(self) -> None:
        self._settle()

    def _ask(self, head: _Head) -> None:
        if head.is_request:
            self._unanswered[bytes(head.id)] += 1

    def _answered(self, head: _Head) -> None:
        if not head.is_request:
            number = bytes(head.id)
            self._unanswered[number] -= 1
            if self._unanswered[number] <= 0:
                del self._unanswered[number]
            self._settle()

    def _settle(self) -> None:
        if self._state.ending and not self._unanswered:
            self.close(RESTARTING, ENDING.message)

    def _admit(self, head: _Head) -> None:
        if wait := self._state.count(self.caller):
            self._state.metrics.refused.add(reason="rate_limited")
            raise rate_limited(wait)
        if head.is_request and self._state.ending:
            raise ending()
        why = self._refusing(head.method) if head.method is not None and head.is_request else None
        if why is not None:
            raise Refusal(400, why)

    async def _refuse(self, head: _Head, why: Failure) -> None:
        """Answer what wants an answer; the rest is left out in silence."""
        if head.is_request:
            self._ask(head)
            await self.send(frames.refusal(_id(head), why.code, why.message, why.data))


Serve = Callable[[Socket], Awaitable[None]]


class Endpoint:
    """Serves each socket until its peer leaves. The caller's token needs these scopes. `names` is the header in which each
    socket gets an id; such sockets ignore frames that are not text."""

    def __init__(
        self,
        state: ServerState,
        serve: Serve,
        *,
        needs: tuple[str, ...] = (),
        refusing: Refuse = lambda _: None,
        names: bytes | None = None,
    ) -> None:
        self._state, self._serve, self._needs, self._refusing = state, serve, needs, refusing
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line: SocketLine = scope["extensions"][LINE][LINE]
        code = FAULT
        try:
            named = [] if self._names is None else [(self._names, uuid4().hex.encode())]
            line.ignores_binary = bool(named)
            visitor = Visitor(self._state, scope, line, self._needs, named)
            caller = await visitor.admitted(receive, send)
            if caller is not None:
                await self._served(Socket(self._state, line, receive, caller, self._refusing))
            code = NORMAL
        except Refusal as refusal:
            await refuse(scope, send, refusal)
        except Gone:
            code = NORMAL
        except asyncio.CancelledError:  # the server ends, and does not wait any longer
            code = RESTARTING
        finally:
            line.give_up(code, "")

    async def _served(self, socket: Socket) -> None:
        socket.trust()
        self._state.sockets.add(socket)
        try:
            await self._serve(socket)
        finally:
            self._state.sockets.discard(socket)


def _head(data: bytes) -> _Head:
    """What a message is; one that cannot be read is nothing, and answered by whoever reads it."""
    try:
        return _heads.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Head()


def _head_of(line: bytes) -> _Head:
    """The same for a line of ours. A long answer is not read through for its id: no text of JSON holds this mark."""
    if len(line) > LONG_BYTES:
        head = _head(line[: line.find(RESULT)] + b"}")
        if memoryview(head.id):
            return head
    return _head(line)


def _id(head: _Head) -> Raw:
    return head.id if memoryview(head.id) else frames.NULL
