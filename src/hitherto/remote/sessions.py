"""The service, over there: whoever has it calls it as if it were here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from hitherto.engine import Engine
from hitherto.ports import Store
from hitherto.remote.address import Address, parse_address
from hitherto.remote.connection import Line, connected
from hitherto.remote.rooms import REMOTE, About, Elsewhere
from hitherto.remote.turns import RemoteEngine
from hitherto.service import Sessions
from hitherto.service.core import Core, Room

P = ParamSpec("P")
R = TypeVar("R", bound=Room)


class RemoteSessions(Sessions):
    """The sessions of the token's owner, on a server. Whoever is said to call, it is the token's owner who does."""

    def __init__(
        self,
        line: Line,
        address: Address,
        about: About,
        *,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(cast("Store", Elsewhere(line, address, about)), close=close)
        self.engine: Engine | None = RemoteEngine(line)

    def _room(self, kind: Callable[Concatenate[Core, P], R], *needs: P.args, **named: P.kwargs) -> R:
        there = cast("Callable[Concatenate[Core, P], R]", REMOTE.get(cast("Any", kind), kind))
        return super()._room(there, *needs, **named)


@asynccontextmanager
async def open(url: str) -> AsyncIterator[Sessions]:
    """The sessions of a server, which is given by its address. The token is looked for in the environment and files."""
    address = parse_address(url)
    async with AsyncExitStack() as opened:
        line = await opened.enter_async_context(connected(address))
        about = await line.told("about", {}, About)
        yield RemoteSessions(line, address, about, close=opened.aclose)
