"""Live changes, across processes: every reader of the change feed sees what any writer did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

from hitherto.limits import CHANGES_PAGE, LIVE_BYTES, checked_limit, checked_size
from hitherto.model import Change, Principal
from hitherto.ports import Reader, Writer
from hitherto.service.core import Room
from hitherto.service.records import require_session, require_writable
from hitherto.service.validation import checked_owner
from hitherto.values.cursors import open_cursor, seal_cursor
from hitherto.values.positions import BEGINNING, checked_position

T = TypeVar("T")
WAIT_SECONDS = 30.0


class Changes(Room):
    """The change feed and the text of running turns."""

    async def since(self, who: Principal, *, after: str = BEGINNING, limit: int = 100) -> list[Change]:
        """The newest change of each session changed after that position, deletions included.

        Those of one session come in their order. To go on, give the position of the last one.
        """
        owner = checked_owner(who)
        checked_limit(limit, CHANGES_PAGE)
        checked_position(after)
        return await self._store.read(lambda tx: tx.changes(owner, after, limit))

    async def newest(self, who: Principal) -> str:
        """The position after all of the caller's changes: where a watch that wants only what is new begins."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.newest(owner))

    async def wait(self, who: Principal, *, after: str, seconds: float = WAIT_SECONDS) -> str:
        """The position after all of the caller's changes, once there is one after `after` or so many seconds have passed."""
        owner = checked_owner(who)
        checked_position(after)
        return await self._store.wait(owner, after, seconds)

    async def watch(
        self, who: Principal, *, session_id: str | None = None, after: str | None = None
    ) -> AsyncIterator[Change]:
        """Changes as they happen, of one session or of all; ends when the caller stops listening.

        Two quick changes of one session may arrive as one, the newest: a change is a hint to read again.
        """
        position = await self.newest(who) if after is None else after
        while True:
            for change in await self.since(who, after=position, limit=CHANGES_PAGE):
                position = change.position
                if session_id is None or change.session == session_id:
                    yield change
            await self.wait(who, after=position)

    def cursor(self, who: Principal, session_id: str | None, state: object) -> str:
        """A cursor for a subscriber to the changes of one session or of all, who may reconnect."""
        return seal_cursor(self._store.secret, checked_owner(who), ["events", session_id], state)

    def position(self, who: Principal, session_id: str | None, cursor: str, shape: type[T]) -> T:
        """What `cursor` was given. Raises `InvalidCursor`."""
        return open_cursor(self._store.secret, checked_owner(who), ["events", session_id], cursor, shape)

    async def put_live(
        self, who: Principal, session_id: str, data: bytes | None, *, fence: int | None = None
    ) -> None:
        """Show the partial text of a running turn to every watcher; None when the turn's entry is stored."""

        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, fence)
            await tx.put_live(record, None if data is None else checked_size(data, LIVE_BYTES, "a live text"))

        await self._store.write(work)

    async def live(self, who: Principal, session_id: str) -> bytes | None:
        """The partial text of the session's running turn."""

        async def work(tx: Reader) -> bytes | None:
            record = await require_session(tx, who, session_id)
            return await tx.live(record.owner, record.num)

        return await self._store.read(work)
