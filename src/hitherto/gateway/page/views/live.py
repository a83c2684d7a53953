"""`/live`: a long poll for changes since the page was rendered.

A change is a hint to read again. The page sends the position that it has come to, which means the same to
every server on the store; so it misses nothing, whichever server answers and however long the page was hidden.
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


class LiveChanges(msgspec.Struct, frozen=True):
    """The changed and the deleted sessions, and the position to send next."""

    after: str
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class Waiter:
    """A waiting request; see `ServedSocket`. It wakes up to check whether its token is still valid."""

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

    async def wait(self, deadline: float) -> None:
        """Wait until there may be a change, or until the deadline."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()


async def changes_since(
    state: ServerState, caller: Caller, after: str | None, session: str | None, seconds: float = WAIT_SECONDS
) -> LiveChanges:
    """The changes after a position, waiting some seconds for the first. Without `after`, from now on.

    Raises `Refusal` if the sign-in was revoked.
    """
    home = caller.sessions if session is None else caller.sessions.at(session)
    deadline = asyncio.get_running_loop().time() + seconds
    if after is None:
        after = await home.changes.newest(caller.who)
    async with _listening(state, home, caller, Waiter(session)) as waiting:
        while True:
            changes = await home.changes.since(caller.who, after=after, limit=CHANGES)
            after = changes[-1].position if changes else after
            relevant = [change for change in changes if waiting.concerns(change)]
            late = asyncio.get_running_loop().time() >= deadline
            if relevant or late or state.ending:
                return _live_changes(after, relevant)
            if len(changes) < CHANGES:
                await waiting.wait(deadline)
            if not await caller.holds():
                raise unauthenticated()


@asynccontextmanager
async def _listening(
    state: ServerState, home: Sessions, caller: Caller, waiting: Waiter
) -> AsyncIterator[Waiter]:
    state.sockets.add(waiting)
    try:
        await state.feeds.join(home, caller.who, waiting.heard)
        try:
            yield waiting
        finally:
            state.feeds.leave(home, caller.who, waiting.heard)
    finally:
        state.sockets.discard(waiting)


def _live_changes(after: str, changes: list[Change]) -> LiveChanges:
    return LiveChanges(
        after,
        tuple(change.session for change in changes if change.revision is not None),
        tuple(change.session for change in changes if change.revision is None),
    )
