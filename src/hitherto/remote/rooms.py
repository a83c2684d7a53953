"""The rooms of the service on a server: the calls of the table become requests.

Code of a room that only uses such calls works unchanged; code that needs the store itself raises `InvalidInput`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, cast

from msgspec.structs import replace

from hitherto.engine import Engine
from hitherto.errors import InvalidInput
from hitherto.model import HistoryPage, Json, Principal, Value, decode_entry
from hitherto.ports import PackedCopy, RawCopy, Store
from hitherto.remote.address import Address
from hitherto.remote.calls import CALLS
from hitherto.remote.connection import ServerConnection
from hitherto.remote.turns import RemoteOpenSession
from hitherto.service import ROOMS, OpenSession
from hitherto.service.admin.maintenance import Admin
from hitherto.service.admin.retention import Policy, PrunedSession
from hitherto.service.changes import Changes
from hitherto.service.core import Room
from hitherto.service.history.entries import Entries
from hitherto.service.transfer.export import Beside, in_export_thread
from hitherto.service.transfer.synced import Imported, SyncResult
from hitherto.service.transfer.transfer import Transfer
from hitherto.service.turns.turns import Turns
from hitherto.values.mcp_servers import McpServer

NEEDS_STORE = (
    "this needs direct access to the store: run it on the server's machine, with the server's own --store"
)


class About(Value, frozen=True):
    """A store as the server describes it: its id, and the token's owner and scopes."""

    id: str
    owner: str
    scopes: tuple[str, ...] = ()


class RemoteStore:
    """Takes the place of the store, and knows the server. Any use of the store itself raises `InvalidInput`."""

    def __init__(self, connection: ServerConnection, address: Address, about: About) -> None:
        self.connection, self.address, self.store_about = connection, address, about

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(NEEDS_STORE)


def _server(store: Store) -> RemoteStore:
    """The server of a remote room."""
    return cast("RemoteStore", store)


class RemoteEntries(Entries):
    """Messages on the server."""

    async def history(
        self,
        who: Principal,  # noqa: ARG002 - the token says who
        session_id: str,
        *,
        limit: int = 100,
        **asked: Any,
    ) -> HistoryPage:
        """See `Entries`. A page that is too long for one answer is put together from several."""
        connection = _server(self._store).connection
        asked.pop("max_bytes", None)
        page: HistoryPage = await connection.call("history", session_id, {**asked, "limit": limit})
        backwards = bool(asked.get("last")) or asked.get("before") is not None
        anchors = {"after": None, "before": None, "last": False}
        while asked.get("around") is None and page.raw and (more := limit - len(page.raw)) > 0:
            edge = page.previous if backwards else page.next
            if edge is None:
                break
            side = {**anchors, "before" if backwards else "after": edge, "limit": more}
            further = await connection.call("history", session_id, {**asked, **side})
            page = joined(further, page) if backwards else joined(page, further)
        return page


def joined(first: HistoryPage, second: HistoryPage) -> HistoryPage:
    """Two consecutive pages as one."""
    marks = (*first.marks, *(len(first.raw) + mark for mark in second.marks))
    return replace(first, raw=(*first.raw, *second.raw), marks=marks, next=second.next)


class RemoteChanges(Changes):
    """Changes on the server."""

    async def wait(self, who: Principal, *, after: str, seconds: float = 0) -> str:  # noqa: ARG002
        """See `Changes`; the server decides how long to wait."""
        changed: str = await _server(self._store).connection.call_value("await_change", {"after": after}, str)
        return changed


class RemoteTransfer(Transfer):
    """Sessions that are exported from the server, or imported into it."""

    async def export_file(
        self,
        who: Principal,  # noqa: ARG002 - the token says who
        session_id: str,
        format: str = "json",
        *,
        raw: bool = False,
        beside: Beside = in_export_thread,  # noqa: ARG002 - the server decides where
    ) -> AsyncIterator[bytes]:
        """See `Transfer`."""
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(1)

        async def ask() -> None:
            try:
                params = {"session_id": session_id, "format": format, "raw": raw}
                await _server(self._store).connection.stream("export_file", params, pieces.put)
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
        words: Sequence[str] = (),  # noqa: ARG002 - the server looks itself
        **how: Any,
    ) -> SyncResult:
        """See `Transfer`; sent unpacked, so that the server packs what it keeps itself."""
        copies = [RawCopy(copy.name, copy.data) for copy in raw]
        return await self.sync(who, imported, [*map(decode_entry, payloads)], raw=copies, **how)

    async def trim_raw(self, who: Principal, budget: int) -> int:  # noqa: ARG002
        """Does nothing: the server decides how much it keeps."""
        return 0


class RemoteTurns(Turns):
    """Turns that run on the server."""

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
        """See `Turns`; turns run on the server, with its model and tools."""
        if mcp_servers:
            raise InvalidInput(
                "MCP servers cannot be used with a remote server: leave out --mcp and --mcp-config"
            )
        session = await self._catalog.get(who, session_id)
        opened = RemoteOpenSession(_server(self._store).connection, session.id)
        try:
            yield opened
        finally:
            await opened.settle()


class RemoteAdmin(Admin):
    """A store that the server maintains."""

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
        """Always refused: the server has a policy of its own."""
        raise InvalidInput(NEEDS_STORE)


OVERRIDDEN: Mapping[type[Room], type[Room]] = {
    Entries: RemoteEntries,
    Changes: RemoteChanges,
    Transfer: RemoteTransfer,
    Turns: RemoteTurns,
    Admin: RemoteAdmin,
}
"""Rooms that do more than send their calls to the server."""


def _remote_call(name: str) -> Callable[..., Awaitable[Any]]:
    """A method that sends this call to the server."""
    call = CALLS[name]
    shape = signature(call.function)

    @wraps(call.function)
    async def ask(self: Room, *given: Any, **named: Any) -> Any:
        arguments = dict(shape.bind(self, *given, **named).arguments)
        del arguments["self"], arguments["who"]
        about = arguments.pop("session_id") if call.about == "session" else None
        return await _server(self._store).connection.call(name, about, arguments)

    return ask


def _remote(kind: type[Room]) -> type[Room]:
    """A room of this kind whose calls go to the server."""
    base = OVERRIDDEN.get(kind, kind)
    calls = {
        call.method: _remote_call(name)
        for name, call in CALLS.items()
        if ROOMS[call.room] is kind and (base is kind or call.method not in vars(base))
    }
    return type(base.__name__, (base,), calls)


REMOTE: Mapping[type[Room], type[Room]] = {kind: _remote(kind) for kind in ROOMS.values()}
"""Each room → its remote version."""
