"""A client of any ACP agent.

    async with Client.start("hitherto", ["acp"]) as client:
        async for row in client.list_sessions(cwd="/home/me/project"):
            print(row.session_id, row.title)
        session = await client.new_session("/home/me/project")
        async for step in client.prompt(session.session_id, "Why does the build fail?"):
            print(step.text if isinstance(step, Update) else step.stop_reason)

What the agent has not offered is refused with `InvalidInput` before anything is sent. What the agent itself refuses is
`AgentRefused`, a session that it does not know `SessionNotFound`; once it has left, everything is `AgentLeft`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from hitherto import __version__
from hitherto.acp.client import process
from hitherto.acp.client.callbacks import Abilities as Abilities
from hitherto.acp.client.callbacks import client_capabilities
from hitherto.acp.client.capabilities import AgentInfo as AgentInfo
from hitherto.acp.client.capabilities import agent_info
from hitherto.acp.client.process import StreamLine, start_agent
from hitherto.acp.client.requests import AgentLeft as AgentLeft
from hitherto.acp.client.requests import AgentRefused as AgentRefused
from hitherto.acp.client.sessions import SessionCalls, TurnCalls
from hitherto.acp.client.values import Ended as Ended
from hitherto.acp.client.values import OpenedSession as OpenedSession
from hitherto.acp.client.values import SessionPage as SessionPage
from hitherto.acp.client.values import SessionRow as SessionRow
from hitherto.acp.client.values import Update as Update
from hitherto.acp.protocol.initialize import PROTOCOL_VERSION
from hitherto.errors import InvalidInput
from hitherto.model import Json
from hitherto.rpc.transport import Transport

NAME = "hitherto"
NO_ABILITIES = Abilities()


class Line(Transport, Protocol):
    """A transport that can be hung up: after that, `receive` gives what is still on its way, and then None."""

    async def hang_up(self) -> None: ...


class Client(SessionCalls, TurnCalls):
    """A connection to an agent that has been greeted; see the module."""

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stderr: int | None = None,
        abilities: Abilities = NO_ABILITIES,
        name: str = NAME,
        version: str = __version__,
    ) -> AsyncIterator[Client]:
        """Start an agent as a child process and greet it. It has this program's environment and stderr unless others
        are given; with the block its input ends, and if it does not leave then it is made to."""
        async with (
            start_agent(command, args, env=env, cwd=cwd, stderr=stderr) as line,
            cls.connect(line, abilities=abilities, name=name, version=version) as client,
        ):
            yield client

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        abilities: Abilities = NO_ABILITIES,
        name: str = NAME,
        version: str = __version__,
    ) -> AsyncIterator[Client]:
        """Greet the agent at the other end of two streams, and close them with the block."""
        line = StreamLine(reader, writer)
        async with cls.connect(line, abilities=abilities, name=name, version=version) as client:
            yield client

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, line: Line, *, abilities: Abilities = NO_ABILITIES, name: str = NAME, version: str = __version__
    ) -> AsyncIterator[Client]:
        """Greet the agent at the other end of a line, and hang up with the block. An agent that does not speak our
        version of the protocol is an `EngineError`."""
        client = cls(line, abilities)
        serving = asyncio.create_task(client._peer.run())
        try:
            asked = {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": client_capabilities(abilities),
                "clientInfo": {"name": name, "version": version},
            }
            client.agent = agent_info(await client._call("initialize", asked))
            yield client
        finally:
            await line.hang_up()
            await asyncio.wait([serving], timeout=process.LEAVE_SECONDS)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def authenticate(self, method_id: str) -> None:
        """Go through one of the ways to authenticate that the agent named."""
        if method_id not in [each["id"] for each in self.agent.auth_methods]:
            raise InvalidInput(f"the agent does not offer the auth method {method_id!r:.100}")
        await self._ask("authenticate", {"methodId": method_id})

    async def logout(self) -> None:
        """Forget who authenticated."""
        await self._ask("logout", {})

    async def request(self, method: str, params: Json) -> Json:
        """Call a method of the agent's own, whose name begins with `_`."""
        return await self._ask(_own(method), params)

    async def notify(self, method: str, params: Json) -> None:
        """Send the agent an extension notification, whose name starts with `_`."""
        await self._notify(_own(method), params)


def _own(method: str) -> str:
    if not method.startswith("_"):
        raise InvalidInput(
            f"the name of an extension method must begin with an underscore, not {method!r:.100}"
        )
    return method
