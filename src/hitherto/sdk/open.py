"""All that an open session stands on: its store, the session in it, and what answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from hitherto import composition
from hitherto.engine import Notice
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, Session
from hitherto.sdk.messages import SDKSystemMessage
from hitherto.sdk.options import Options
from hitherto.sdk.resume import StartedSession
from hitherto.service import Sessions
from hitherto.service.catalog.metadata import folders_of
from hitherto.service.turns.open_session import OpenSession

StartSession = Callable[[Sessions], Awaitable[StartedSession]]
"""Makes or finds the session."""


class OpenedSession(NamedTuple):
    """An open session; `init` is what each of its turns begins with."""

    turns: OpenSession
    init: SDKSystemMessage


@asynccontextmanager
async def open_session(
    start: StartSession, options: Options, *, report: Callable[[Notice], None], improve_titles: bool
) -> AsyncIterator[OpenedSession]:
    """Open everything, and close it with the block."""
    async with composition.open(options.store) as sessions:
        started = await start(sessions)
        for notice in started.notices:
            report(notice)
        async with sessions.opened(
            LOCAL,
            started.session.id,
            options.engine or composition.engine(options.model),
            mcp_servers=options.mcp_servers,
            improve_titles=improve_titles,
            report=report,
        ) as turns:
            yield OpenedSession(turns, _init(started, options))


def _init(started: StartedSession, options: Options) -> SDKSystemMessage:
    return SDKSystemMessage(
        session_id=started.session.id,
        model=options.model,
        cwd=started.session.cwd,
        tools=_tools(started.session) if options.engine is None else (),
        mcp_servers=tuple({"name": each.name, "type": _kind(each)} for each in options.mcp_servers),
        permission_mode=options.permission_mode,
        forked_from=started.resumed_from,
    )


def _tools(session: Session) -> tuple[str, ...]:
    """The tools that a model has on this machine; those of servers are known when these are ready."""
    from hitherto.engines.tools.toolset import local_tools  # here: another engine has its own

    return tuple(tool.name for tool in local_tools(folders_of(session), None))


def _kind(server: msgspec.Struct) -> str:
    return str(server.__struct_config__.tag)


T = TypeVar("T")
_OWNERS: set[asyncio.Task[Any]] = set()
"""The loop itself holds tasks only weakly; these must live until they are done."""


class LazyResource(Generic[T]):
    """Opens at the first `get`, holds until `close`. If opening fails, each `get` raises."""

    def __init__(self, open_session: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open = open_session
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[T] | None = None
        self._owner: asyncio.Task[None] | None = None

    async def get(self) -> T:
        """What is open; it is opened if it is not yet. Raises `InvalidInput` if it is closed, or is so meanwhile."""
        self._check_open()
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._hold_open(self._ready), name="session")
            _OWNERS.add(self._owner)
            self._owner.add_done_callback(_OWNERS.discard)
        value = await asyncio.shield(self._ready)
        self._check_open()
        return value

    async def close(self) -> None:
        """Close it, if it is open; from then on it cannot be opened."""
        self._closing.set()
        if self._owner is not None:
            await asyncio.wait([self._owner])
            if not self._owner.cancelled():
                self._owner.result()

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise InvalidInput("the session is closed; resume it to continue")

    async def _hold_open(self, ready: asyncio.Future[T]) -> None:
        try:
            async with self._open() as value:
                ready.set_result(value)
                await self._closing.wait()
        except BaseException as error:
            if ready.done() or not isinstance(error, Exception):
                ready.cancel()
                raise
            ready.set_exception(error)
