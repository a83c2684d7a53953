"""One editor's connection to an agent through the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, cast

from hitherto.acp.agent.connection import Connection, Offer
from hitherto.acp.proxy.agent_process import Agent
from hitherto.acp.proxy.agent_session import AgentSession
from hitherto.acp.proxy.frames import text_of
from hitherto.acp.proxy.relay import Relay
from hitherto.acp.proxy.session import ProxiedSession, ProxyDisplay
from hitherto.engine import Event, Turn, answering
from hitherto.errors import EngineError, HithertoError
from hitherto.model import Principal, Session
from hitherto.rpc.errors import Failure, failure_of
from hitherto.service import Sessions
from hitherto.values.mcp_servers import McpServer


class ProxyConnection(Connection):
    """See the module. `agent` is the proxied agent, `relay` passes its messages on."""

    leaving = False
    session_type = ProxiedSession
    display_type = ProxyDisplay

    def __init__(
        self,
        sessions: Sessions | HithertoError,
        who: Principal,
        command: Sequence[str],
        tasks: asyncio.TaskGroup,
        *,
        offer: Offer,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sessions, who, _no_engine, tasks, offer=offer)
        self.agent = Agent(command, self.start, env)
        self.send_now: Callable[[bytes], bool] = lambda _: False
        self.relay = Relay(lambda data: self.peer.send(data), lambda data: self.send_now(data))
        self.agent.follow = self.relay.follow

    def proxied(self, session_id: str | None) -> ProxiedSession | None:
        """The open session of this id."""
        return cast("ProxiedSession | None", self.attached.get(session_id or ""))

    def agent_session(self, session_id: str | None) -> AgentSession | None:
        """The agent's session of an open one, if the agent process that has it still runs."""
        proxied = self.proxied(session_id)
        agent_session = None if proxied is None else proxied.agent_session
        return None if agent_session is None or agent_session.process.exited else agent_session

    async def attach(
        self, session: Session, cwd: str | None, directories: Sequence[str], servers: Sequence[McpServer]
    ) -> ProxiedSession:
        proxied = cast("ProxiedSession", await super().attach(session, cwd, directories, servers))
        proxied.connection = self
        return proxied

    async def close(self) -> None:
        self.leaving = True
        await super().close()

    async def ensure_open(self, session_id: str) -> ProxiedSession:
        return cast("ProxiedSession", await super().ensure_open(session_id))


@answering
async def _no_engine(_: Turn) -> AsyncIterator[Event]:
    """Never used: the agent answers."""
    raise EngineError("there is no agent")
    yield


def to_failure(error: HithertoError, params: Any) -> Failure:
    """An error of the program as a protocol error; it names the session of the request."""
    failure = failure_of(error)
    named = text_of(params, "sessionId") if isinstance(params, dict) else None
    if named is not None and failure.data is not None:
        failure.data = {**failure.data, "sessionId": named}
    return failure
