"""The editor's end: what is answered here comes in as from any transport, everything else goes on to the agent."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from hitherto.acp.pipes import Pipes
from hitherto.acp.proxy.agent_process import Left, Life
from hitherto.acp.proxy.connection import ProxyDoor
from hitherto.acp.proxy.frames import (
    Members,
    joined,
    line,
    members_of,
    object_of,
    text_of,
    with_session,
    written,
)
from hitherto.acp.proxy.methods import NOTIFICATIONS, REQUESTS
from hitherto.acp.proxy.relay import CANCEL
from hitherto.errors import HithertoError
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, OVERLOADED, Failure, failure_of
from hitherto.rpc.frames import BadFrame, Frame
from hitherto.rpc.transport import Transport

MOST_FORWARDED = 256


class Front:
    """See `rpc.transport.Transport`."""

    def __init__(self, transport: Transport, door: ProxyDoor) -> None:
        self._transport, self._door = transport, door

    async def receive(self) -> bytes | None:
        while True:
            data = await self._transport.receive()
            if data is None or not await self._passed_on(data):
                return data

    async def send(self, data: bytes) -> None:
        await self._transport.send(data)

    def send_now(self, data: bytes) -> bool:
        """Send this if nobody is sending anything else, and the transport can; False if not."""
        pipes = self._transport
        return isinstance(pipes, Pipes) and not self._door.peer.sending and pipes.send_now(data)

    async def _passed_on(self, data: bytes) -> bool:
        """Whether this was for the agent, which has it now. What is no message is answered here."""
        try:
            frame = frames.read_frame(data)
        except BadFrame:
            return False
        message = members_of(data)
        if message is None or frame.method in (REQUESTS if frames.has_id(frame) else NOTIFICATIONS):
            return False
        if frame.method is None:
            await self._door.relay.answer(message)
            return True
        if frame.method == CANCEL:
            return await self._called_off(message)
        await self._forwarded(frame, message)
        return True

    async def _called_off(self, message: Members) -> bool:
        """Whether a request was meant that the agent has."""
        life, params = self._door.agent.alive, object_of(message, "params")
        number = None if life is None or "requestId" not in params else life.numbered(params["requestId"])
        if life is None or number is None:
            return False
        ours = joined({**params, "requestId": Raw(b"%d" % number)})
        await self._given(life, {**message, "params": Raw(ours)})
        return True

    async def _forwarded(self, frame: Frame, message: Members) -> None:
        """Pass it on, at once if the agent is there with the session that it is about; else when it is."""
        named = text_of(object_of(message, "params"), "sessionId")
        proxied, seat, life = self._door.proxied(named), self._door.seat(named), self._door.agent.alive
        if self._door.client is None:
            await self._refuse(frame, Failure(INVALID_REQUEST, "initialize comes first"))
        elif life is not None and len(life.forwarded) >= MOST_FORWARDED and frames.has_id(frame):
            told = f"at most {MOST_FORWARDED} requests of this kind may run at once"
            await self._refuse(frame, Failure(OVERLOADED, told))
        elif life is not None and seat is not None:
            await self._give(frame, life, with_session(message, written(seat.behind)))
        elif life is not None and proxied is None:
            await self._give(frame, life, message)
        else:
            self._door.start(self._later(frame, message, named))

    async def _later(self, frame: Frame, message: Members, named: str | None) -> None:
        try:
            proxied = self._door.proxied(named)
            if proxied is None:
                await self._give(frame, await self._door.agent.ready(), message)
            else:
                seat = await proxied.seated()
                await self._give(frame, seat.life, with_session(message, written(seat.behind)))
        except HithertoError as error:
            await self._refuse(frame, failure_of(error))
        except Failure as failure:
            await self._refuse(frame, failure)

    async def _give(self, frame: Frame, life: Life, message: Members) -> None:
        if not frames.has_id(frame):
            await self._given(life, message)
            return
        try:
            await life.forward(message)
        except Left as left:
            if life.left:  # else whoever follows it tells
                await self._refuse(frame, failure_of(left))

    async def _given(self, life: Life, message: Members) -> None:
        try:
            await life.send(line(message))
        except Left:
            return  # a notification is answered by nothing

    async def _refuse(self, frame: Frame, failure: Failure) -> None:
        if frames.has_id(frame):
            data: Any = failure.data
            await self._door.peer.send(frames.refusal(frame.id, failure.code, failure.message, data))
