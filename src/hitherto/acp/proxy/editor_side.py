"""The editor's side: messages for Hitherto are received as from any transport, all others are forwarded to the agent."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from hitherto.acp.pipes import Pipes
from hitherto.acp.proxy.agent_process import AgentExited, AgentProcess
from hitherto.acp.proxy.connection import ProxyConnection
from hitherto.acp.proxy.frames import (
    Members,
    join_members,
    line,
    members_of,
    object_of,
    raw_json,
    text_of,
    with_session,
)
from hitherto.acp.proxy.methods import NOTIFICATIONS, REQUESTS
from hitherto.acp.proxy.relay import CANCEL
from hitherto.errors import HithertoError
from hitherto.rpc import frames
from hitherto.rpc.errors import INVALID_REQUEST, OVERLOADED, Failure, failure_of
from hitherto.rpc.frames import BadFrame, Frame
from hitherto.rpc.transport import Transport

MOST_FORWARDED = 256


class EditorTransport:
    """See `rpc.transport.Transport`."""

    def __init__(self, transport: Transport, connection: ProxyConnection) -> None:
        self._transport, self._connection = transport, connection

    async def receive(self) -> bytes | None:
        while True:
            data = await self._transport.receive()
            if data is None or not await self._pass_on(data):
                return data

    async def send(self, data: bytes) -> None:
        await self._transport.send(data)

    def send_now(self, data: bytes) -> bool:
        """Send this if nobody is sending anything else, and the transport can; False if not."""
        pipes = self._transport
        return isinstance(pipes, Pipes) and not self._connection.peer.sending and pipes.send_now(data)

    async def _pass_on(self, data: bytes) -> bool:
        """Forward this to the agent, if it is for the agent. Returns False otherwise; invalid messages are answered here."""
        try:
            frame = frames.read_frame(data)
        except BadFrame:
            return False
        message = members_of(data)
        if message is None or frame.method in (REQUESTS if frames.has_id(frame) else NOTIFICATIONS):
            return False
        if frame.method is None:
            await self._connection.relay.answer(message)
            return True
        if frame.method == CANCEL:
            return await self._pass_on_cancel(message)
        await self._forward(frame, message)
        return True

    async def _pass_on_cancel(self, message: Members) -> bool:
        """Forward the cancellation of a request that the agent has. Returns False if it has no such request."""
        process, params = self._connection.agent.running, object_of(message, "params")
        number = (
            None if process is None or "requestId" not in params else process.number_of(params["requestId"])
        )
        if process is None or number is None:
            return False
        ours = join_members({**params, "requestId": Raw(b"%d" % number)})
        await self._notify(process, {**message, "params": Raw(ours)})
        return True

    async def _forward(self, frame: Frame, message: Members) -> None:
        """Forward a message: at once if the agent runs and has the session open, else as soon as it does."""
        named = text_of(object_of(message, "params"), "sessionId")
        proxied, agent_session, process = (
            self._connection.proxied(named),
            self._connection.agent_session(named),
            self._connection.agent.running,
        )
        if self._connection.client is None:
            await self._refuse(frame, Failure(INVALID_REQUEST, "call initialize first"))
        elif process is not None and len(process.forwarded) >= MOST_FORWARDED and frames.has_id(frame):
            text = f"too many requests at once: at most {MOST_FORWARDED} may be forwarded to the agent"
            await self._refuse(frame, Failure(OVERLOADED, text))
        elif process is not None and agent_session is not None:
            await self._forward_to(
                frame, process, with_session(message, raw_json(agent_session.agent_session_id))
            )
        elif process is not None and proxied is None:
            await self._forward_to(frame, process, message)
        else:
            self._connection.start(self._forward_later(frame, message, named))

    async def _forward_later(self, frame: Frame, message: Members, named: str | None) -> None:
        try:
            proxied = self._connection.proxied(named)
            if proxied is None:
                await self._forward_to(frame, await self._connection.agent.ready(), message)
            else:
                agent_session = await proxied.ensure_bound()
                await self._forward_to(
                    frame,
                    agent_session.process,
                    with_session(message, raw_json(agent_session.agent_session_id)),
                )
        except HithertoError as error:
            await self._refuse(frame, failure_of(error))
        except Failure as failure:
            await self._refuse(frame, failure)

    async def _forward_to(self, frame: Frame, process: AgentProcess, message: Members) -> None:
        if not frames.has_id(frame):
            await self._notify(process, message)
            return
        try:
            await process.forward(message)
        except AgentExited as left:
            if process.exited:  # else `Relay.follow` answers it
                await self._refuse(frame, failure_of(left))

    async def _notify(self, process: AgentProcess, message: Members) -> None:
        try:
            await process.send(line(message))
        except AgentExited:
            return  # notifications have no answer

    async def _refuse(self, frame: Frame, failure: Failure) -> None:
        if frames.has_id(frame):
            data: Any = failure.data
            await self._connection.peer.send(frames.refusal(frame.id, failure.code, failure.message, data))
