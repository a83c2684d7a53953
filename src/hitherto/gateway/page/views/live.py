"""`/live`: what has changed since the page was made, answered as soon as there is something.

A change is a hint to read again. The page asks with the number that it knows, which means the same to every server on
the store; so nothing is missed, whichever answers and however long the page was away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.server.state import ServerState
from hitherto.gateway.transport.responses import unauthenticated
from hitherto.model import Change
from hitherto.service import Sessions

WAIT_SECONDS = 25.0
CHANGES = 500


class News(msgspec.Struct, frozen=True):
    """The sessions that have changed, those that are gone, and the number to ask with next."""

    after: int
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class Waiting:
    """A request that waits; see `state.ServedSocket`. It is woken to look whether it still may."""

    def __init__(self, session: str | None) -> None:
        self._session, self._woken = session, asyncio.Event()

    async def check(self) -> None:
        self._woken.set()

    def drain(self) -> None:
        self._woken.set()

    def heard(self, change: Change) -> None:
        if self.concerns(change):
            self._woken.set()

    def concerns(self, change: Change) -> bool:
        return self._session is None or change.session == self._session

    async def woken(self, deadline: float) -> None:
        """Return when there may be something, or at that time."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()


async def news(
    state: ServerState, caller: Caller, after: int | None, session: str | None, seconds: float = WAIT_SECONDS
) -> News:
    """What there is, or comes within some seconds; nothing then. Without `after`, from now on.

    Raises `Refusal` for one whose pass was taken.
    """
    home = caller.sessions if session is None else caller.sessions.at(session)
    deadline = asyncio.get_running_loop().time() + seconds
    if after is None:
        after = await home.changes.newest(caller.who)
    async with _listening(state, home, caller, Waiting(session)) as waiting:
        while True:
            changes = await home.changes.since(caller.who, after=after, limit=CHANGES)
            after = changes[-1].number if changes else after
            told = [change for change in changes if waiting.concerns(change)]
            late = asyncio.get_running_loop().time() >= deadline
            if told or late or state.ending:
                return _news(after, told)
            if len(changes) < CHANGES:
                await waiting.woken(deadline)
            if not await caller.holds():
                raise unauthenticated()


@asynccontextmanager
async def _listening(
    state: ServerState, home: Sessions, caller: Caller, waiting: Waiting
) -> AsyncIterator[Waiting]:
    state.sockets.add(waiting)
    try:
        await state.feeds.join(home, caller.who, waiting.heard)
        try:
            yield waiting
        finally:
            state.feeds.leave(home, caller.who, waiting.heard)
    finally:
        state.sockets.discard(waiting)


def _news(after: int, changes: list[Change]) -> News:
    return News(
        after,
        tuple(change.session for change in changes if change.revision is not None),
        tuple(change.session for change in changes if change.revision is None),
    )
