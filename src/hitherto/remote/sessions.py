"""The service, over there: whoever has it calls it as if it were here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, cast

from msgspec.structs import replace

from hitherto.engine import Engine, McpServer
from hitherto.errors import InvalidInput
from hitherto.model import HistoryPage, Json, Principal, Value, decode_entry
from hitherto.ports import PackedCopy, RawCopy, Store
from hitherto.remote.address import Address, parse_address
from hitherto.remote.calls import CALLS
from hitherto.remote.connection import Line, connected
from hitherto.remote.turns import RemoteEngine, RemoteTurns
from hitherto.service import OpenSession, Sessions
from hitherto.service.transfer.synced import Imported, Taken

HERE = "this is done at the store itself: run it on the machine of the server, with the server's own --store"


class About(Value, frozen=True):
    """A store as the server tells of it: a name for it, and who the token is."""

    id: str
    owner: str
    scopes: tuple[str, ...] = ()


class Elsewhere:
    """The place of a store that is not here: whoever wants it is told so."""

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(HERE)


class RemoteSessions(Sessions):
    """The sessions of the token's owner, on a server. The calls of the table are answered there; those that the
    service makes of them work as they are, and those that need the store itself say so.

    Whoever is said to call, it is the token's owner who does.
    """

    def __init__(self, line: Line, address: Address, there: About) -> None:
        super().__init__(cast("Store", Elsewhere()))
        self._line, self._address, self._there = line, address, there
        self.engine: Engine | None = RemoteEngine(line)

    @property
    def store_id(self) -> str:
        return self._there.id

    async def about(self) -> Json:
        return {"kind": "server", "address": self._address.shown, "owner": self._there.owner}

    async def trim_raw(self, who: Principal, budget: int) -> int:  # noqa: ARG002
        """Nothing: how much is kept there is the server's to decide."""
        return 0

    async def take_packed(
        self,
        who: Principal,
        imported: Imported,
        payloads: Sequence[bytes],
        *,
        raw: Sequence[PackedCopy] = (),
        **how: Any,
    ) -> Taken:
        """See `Sessions`; sent unpacked, so that the server packs what it keeps itself."""
        copies = [RawCopy(copy.name, copy.data) for copy in raw]
        return await self.take_in(who, imported, [*map(decode_entry, payloads)], raw=copies, **how)

    async def await_change(self, who: Principal, *, after: int, seconds: float = 0) -> int:  # noqa: ARG002
        """See `Sessions`; the server says when it is time to ask again."""
        changed: int = await self._line.told("await_change", {"after": after}, int)
        return changed

    async def history(
        self,
        who: Principal,  # noqa: ARG002 - the token says who
        session_id: str,
        *,
        limit: int = 100,
        **asked: Any,
    ) -> HistoryPage:
        """See `Sessions`; a page that is too long for one answer comes in several."""
        asked.pop("max_bytes", None)
        page: HistoryPage = await self._line.call("history", session_id, {**asked, "limit": limit})
        backwards = bool(asked.get("last")) or asked.get("before") is not None
        anchors = {"after": None, "before": None, "last": False}
        while asked.get("around") is None and page.raw and (more := limit - len(page.raw)) > 0:
            edge = page.previous if backwards else page.next
            if edge is None:
                break
            side = {**anchors, "before" if backwards else "after": edge, "limit": more}
            further = await self._line.call("history", session_id, {**asked, **side})
            page = joined(further, page) if backwards else joined(page, further)
        return page

    async def export_file(
        self,
        who: Principal,  # noqa: ARG002 - likewise
        session_id: str,
        format: str = "json",
        *,
        raw: bool = False,
    ) -> AsyncIterator[bytes]:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(1)

        async def ask() -> None:
            try:
                params = {"session_id": session_id, "format": format, "raw": raw}
                await self._line.stream("export_file", params, pieces.put)
            finally:
                await pieces.put(None)

        asking = asyncio.create_task(ask())
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await asking
        finally:
            asking.cancel()

    @asynccontextmanager
    async def opened(
        self,
        who: Principal,
        session_id: str,
        engine: Engine,  # noqa: ARG002 - the server has its own
        *,
        mcp_servers: Sequence[McpServer] = (),
        **_: Any,
    ) -> AsyncIterator[OpenSession]:
        """See `Sessions`; turns run on the server, with what it has."""
        if mcp_servers:
            raise InvalidInput("servers of tools are not started for a turn that runs on another server")
        session = await self.get(who, session_id)
        opened = RemoteTurns(self._line, self, who, session.id)
        try:
            yield opened
        finally:
            await opened.settle()


def joined(first: HistoryPage, second: HistoryPage) -> HistoryPage:
    """Two pages that follow one another as one."""
    marks = (*first.marks, *(len(first.raw) + mark for mark in second.marks))
    return replace(first, raw=(*first.raw, *second.raw), marks=marks, next=second.next)


def _over_the_line(name: str) -> Callable[..., Awaitable[Any]]:
    """The call of this name, made over there."""
    call = getattr(Sessions, name)
    shape = signature(call)

    @wraps(call)
    async def ask(self: RemoteSessions, *given: Any, **named: Any) -> Any:
        arguments = dict(shape.bind(self, *given, **named).arguments)
        del arguments["self"], arguments["who"]
        about = arguments.pop("session_id") if CALLS[name].about == "session" else None
        return await self._line.call(name, about, arguments)

    return ask


for _name in CALLS.keys() - vars(RemoteSessions).keys():
    setattr(RemoteSessions, _name, _over_the_line(_name))


@asynccontextmanager
async def open(url: str) -> AsyncIterator[Sessions]:
    """The sessions of a server, which is given by its address. The token is looked for in the environment and files."""
    address = parse_address(url)
    async with connected(address) as line:
        yield RemoteSessions(line, address, await line.told("about", {}, About))
