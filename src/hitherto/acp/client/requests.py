"""Requests to an agent, and the updates that arrive while they run. The base of all client calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import nullcontext
from typing import Any

import msgspec

from hitherto.acp.client.callbacks import Abilities, ClientCallbacks, notifications, requests
from hitherto.acp.client.capabilities import AgentInfo, check_method
from hitherto.acp.client.updates import Inbox, PausableTransport
from hitherto.acp.client.values import OpenedSession, Update, table
from hitherto.errors import EngineError, SessionNotFound
from hitherto.model import Json
from hitherto.rpc.errors import NOT_FOUND, Gone, Refused
from hitherto.rpc.peer import Peer
from hitherto.rpc.transport import Transport

CANCEL_SECONDS = 5.0
Leave = Callable[[], Awaitable[None]]


class AgentRefused(EngineError):
    """The agent has answered with an error; `number` is its JSON-RPC code, `data` what it says besides."""

    def __init__(self, number: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.number = number
        self.data = data


class AgentLeft(EngineError):
    """The agent has exited or closed the connection: the request is never answered."""

    def __init__(self) -> None:
        super().__init__("the agent has exited or closed the connection")


class Requests:
    """See the module. `agent` is what it said of itself when it was greeted."""

    agent: AgentInfo

    def __init__(self, transport: Transport, abilities: Abilities) -> None:
        self._flow = PausableTransport(transport)
        self._inbox = Inbox(self._flow, abilities.update)
        self._callbacks = ClientCallbacks(abilities, self._inbox)
        self._peer: Peer[ClientCallbacks] = Peer(
            self._flow, requests(abilities), notifications(abilities), self._callbacks
        )
        self._opened: dict[str, OpenedSession] = {}

    async def _notify(self, method: str, params: Json) -> None:
        try:
            await self._peer.notify(method, params)
        except Gone:
            raise AgentLeft from None

    async def _ask(self, method: str, params: Json, meta: Json | None = None) -> Json:
        """Make a request, if the agent offers it, and return the result: what is no object counts as an empty one."""
        check_method(self.agent, method)
        return await self._call(method, params, meta)

    async def _call(
        self, method: str, params: Json, meta: Json | None = None, *, streamed: bool = False
    ) -> Json:
        asked = params if meta is None else {**params, "_meta": meta}
        try:
            with nullcontext() if streamed else self._flow.waiting():
                return table(msgspec.json.decode(await self._peer.ask(method, asked)))
        except Gone:
            raise AgentLeft from None
        except Refused as refused:
            if _is_missing(refused) and "sessionId" in params:
                raise SessionNotFound(params["sessionId"]) from refused
            raise AgentRefused(refused.code, refused.message, refused.data) from refused

    async def _stream(
        self, method: str, session_id: str, params: Json, meta: Json | None, *, leave: Leave | None = None
    ) -> AsyncGenerator[Update | Json, None]:
        """The updates of a session until a request is answered, then the result. Leaving early cancels the request, with
        `leave` if given."""
        check_method(self.agent, method)
        asked = {"sessionId": session_id, **params}
        with self._inbox.listening(session_id) as listener:
            asking = asyncio.ensure_future(self._call(method, asked, meta, streamed=True))
            asking.add_done_callback(lambda _: listener.finish())
            try:
                async for update in listener:
                    yield update
                yield await asking
            finally:
                if leave is not None and not asking.done():
                    await leave()
                    with self._flow.waiting():
                        await asyncio.wait([asking], timeout=CANCEL_SECONDS)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)


def _is_missing(refused: Refused) -> bool:
    """Whether it is the session that is not there. Agents that say no more mean that."""
    known = table(refused.data).get("code", SessionNotFound.code)
    return refused.code == NOT_FOUND and known == SessionNotFound.code
