"""The service on a server, with the same interface as the local one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from hitherto.engine import Engine
from hitherto.ports import Store
from hitherto.remote.address import Address, parse_address
from hitherto.remote.connection import ServerConnection, open_connection
from hitherto.remote.rooms import REMOTE, About, RemoteStore
from hitherto.remote.turns import RemoteEngine
from hitherto.service import Sessions
from hitherto.service.core import Core, Room

P = ParamSpec("P")
R = TypeVar("R", bound=Room)


class RemoteSessions(Sessions):
    """The sessions of the token's owner on a server. The caller is always the token's owner, whatever `who` says."""

    is_here = False

    def __init__(
        self,
        connection: ServerConnection,
        address: Address,
        about: About,
        *,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(cast("Store", RemoteStore(connection, address, about)), close=close)
        self.engine: Engine | None = RemoteEngine(connection)

    def _room(self, kind: Callable[Concatenate[Core, P], R], *needs: P.args, **named: P.kwargs) -> R:
        there = cast("Callable[Concatenate[Core, P], R]", REMOTE.get(cast("Any", kind), kind))
        return super()._room(there, *needs, **named)


@asynccontextmanager
async def open(url: str) -> AsyncIterator[Sessions]:
    """The sessions of the server at this address. The token comes from the environment or a file."""
    address = parse_address(url)
    async with AsyncExitStack() as opened:
        connection = await opened.enter_async_context(open_connection(address))
        about = await connection.call_value("about", {}, About)
        yield RemoteSessions(connection, address, about, close=opened.aclose)
