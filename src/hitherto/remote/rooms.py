"""The rooms of the service, over there: the calls of the table are answered by a server.

What a room makes of such calls works as it is, and what needs the store itself says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, cast

from msgspec.structs import replace

from hitherto.engine import Engine, McpServer
from hitherto.errors import InvalidInput
from hitherto.model import HistoryPage, Json, Principal, Value, decode_entry
from hitherto.ports import PackedCopy, RawCopy, Store
from hitherto.remote.address import Address
from hitherto.remote.calls import CALLS
from hitherto.remote.connection import Line
from hitherto.remote.turns import RemoteOpenSession
from hitherto.service import ROOMS, OpenSession
from hitherto.service.admin.maintenance import Admin
from hitherto.service.admin.retention import Policy, PrunedSession
from hitherto.service.changes import Changes
from hitherto.service.core import Room
from hitherto.service.history.entries import Entries
from hitherto.service.transfer.synced import Imported, SyncResult
from hitherto.service.transfer.transfer import Transfer
from hitherto.service.turns.turns import Turns

HERE = "this needs direct access to the store: run it on the server's machine, with the server's own --store"


class About(Value, frozen=True):
    """A store as the server tells of it: a name for it, and who the token is."""

    id: str
    owner: str
    scopes: tuple[str, ...] = ()


class Elsewhere:
    """Stands where the store would, and knows the server that keeps it: whoever wants the store itself is told so."""

    def __init__(self, line: Line, address: Address, about: About) -> None:
        self.line, self.address, self.store_about = line, address, about

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(HERE)


def _server(store: Store) -> Elsewhere:
    """What stands where the store would, of a room that is over there."""
    return cast("Elsewhere", store)


class RemoteEntries(Entries):
    """What was said, over there."""

    async def history(
        self,
        who: Principal,  # noqa: ARG002 - the token says who
        session_id: str,
        *,
        limit: int = 100,
        **asked: Any,
    ) -> HistoryPage:
        """See `Entries`; a page that is too long for one answer comes in several."""
        line = _server(self._store).line
        asked.pop("max_bytes", None)
        page: HistoryPage = await line.call("history", session_id, {**asked, "limit": limit})
        backwards = bool(asked.get("last")) or asked.get("before") is not None
        anchors = {"after": None, "before": None, "last": False}
        while asked.get("around") is None and page.raw and (more := limit - len(page.raw)) > 0:
            edge = page.previous if backwards else page.next
            if edge is None:
                break
            side = {**anchors, "before" if backwards else "after": edge, "limit": more}
            further = await line.call("history", session_id, {**asked, **side})
            page = joined(further, page) if backwards else joined(page, further)
        return page


def joined(first: HistoryPage, second: HistoryPage) -> HistoryPage:
    """Two pages that follow one another as one."""
    marks = (*first.marks, *(len(first.raw) + mark for mark in second.marks))
    return replace(first, raw=(*first.raw, *second.raw), marks=marks, next=second.next)


class RemoteChanges(Changes):
    """What happens over there."""

    async def wait(self, who: Principal, *, after: int, seconds: float = 0) -> int:  # noqa: ARG002
        """See `Changes`; the server says when it is time to ask again."""
        changed: int = await _server(self._store).line.told("await_change", {"after": after}, int)
        return changed


class RemoteTransfer(Transfer):
    """Sessions that come from over there, and go there."""

    async def export_file(
        self,
        who: Principal,  # noqa: ARG002 - the token says who
        session_id: str,
        format: str = "json",
        *,
        raw: bool = False,
    ) -> AsyncIterator[bytes]:
        """See `Transfer`."""
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(1)

        async def ask() -> None:
            try:
                params = {"session_id": session_id, "format": format, "raw": raw}
                await _server(self._store).line.stream("export_file", params, pieces.put)
            finally:
                await pieces.put(None)

        asking = asyncio.create_task(ask())
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await asking
        finally:
            asking.cancel()

    async def sync_packed(
        self,
        who: Principal,
        imported: Imported,
        payloads: Sequence[bytes],
        *,
        raw: Sequence[PackedCopy] = (),
        **how: Any,
    ) -> SyncResult:
        """See `Transfer`; sent unpacked, so that the server packs what it keeps itself."""
        copies = [RawCopy(copy.name, copy.data) for copy in raw]
        return await self.sync(who, imported, [*map(decode_entry, payloads)], raw=copies, **how)

    async def trim_raw(self, who: Principal, budget: int) -> int:  # noqa: ARG002
        """Nothing: how much is kept there is the server's to decide."""
        return 0


class RemoteTurns(Turns):
    """Turns that run over there."""

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
        """See `Turns`; turns run on the server, with what it has."""
        if mcp_servers:
            raise InvalidInput(
                "MCP servers cannot be used with a remote server: leave out --mcp and --mcp-config"
            )
        session = await self._catalog.get(who, session_id)
        opened = RemoteOpenSession(_server(self._store).line, session.id)
        try:
            yield opened
        finally:
            await opened.settle()


class RemoteAdmin(Admin):
    """A store that somebody else cares for."""

    @property
    def store_id(self) -> str:
        return _server(self._store).store_about.id

    async def about(self) -> Json:
        """The server, and whose sessions these are."""
        server = _server(self._store)
        return {"kind": "server", "address": server.address.shown, "owner": server.store_about.owner}

    async def prune(
        self,
        who: Principal,  # noqa: ARG002
        policy: Policy,  # noqa: ARG002
        *,
        dry_run: bool = True,  # noqa: ARG002
        now: int | None = None,  # noqa: ARG002
    ) -> list[PrunedSession]:
        """Refused, also where there is nothing to prune: the server has a policy of its own."""
        raise InvalidInput(HERE)


WRITTEN: Mapping[type[Room], type[Room]] = {
    Entries: RemoteEntries,
    Changes: RemoteChanges,
    Transfer: RemoteTransfer,
    Turns: RemoteTurns,
    Admin: RemoteAdmin,
}
"""The rooms in which something is done in another way over there, and not only asked for."""


def _over_the_line(name: str) -> Callable[..., Awaitable[Any]]:
    """The call of this name, made over there."""
    offered = CALLS[name]
    shape = signature(offered.function)

    @wraps(offered.function)
    async def ask(self: Room, *given: Any, **named: Any) -> Any:
        arguments = dict(shape.bind(self, *given, **named).arguments)
        del arguments["self"], arguments["who"]
        about = arguments.pop("session_id") if offered.about == "session" else None
        return await _server(self._store).line.call(name, about, arguments)

    return ask


def _remote(kind: type[Room]) -> type[Room]:
    """A room of this kind whose calls are made over there."""
    base = WRITTEN.get(kind, kind)
    calls = {
        offered.method: _over_the_line(name)
        for name, offered in CALLS.items()
        if ROOMS[offered.room] is kind and (base is kind or offered.method not in vars(base))
    }
    return type(base.__name__, (base,), calls)


REMOTE: Mapping[type[Room], type[Room]] = {kind: _remote(kind) for kind in ROOMS.values()}
"""Each room as it is over there."""
