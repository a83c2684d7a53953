"""The change feed of each owner, read once for all listeners in this process.

Most listeners read the same after a change, so that is read once too: an answer of the store is reused until the next
change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from hitherto.limits import HISTORY_PAGE
from hitherto.model import Change, HistoryPage, Principal, Session
from hitherto.service import Sessions

RETRY_SECONDS = 1.0
ANSWERS = 64
PAGE_BYTES = 64 * 1024
"""About as much of a conversation is read at a time; at least one message."""

T = TypeVar("T")
Listener = Callable[[Change], None]
log = logging.getLogger(__name__)


class Feed:
    """The sessions of one owner, as listeners of their changes read them."""

    def __init__(self, sessions: Sessions, who: Principal, position: str) -> None:
        self.sessions, self.who = sessions, who
        self.listeners: set[Listener] = set()
        self._position = position
        self._answers: dict[Hashable, asyncio.Future[Any]] = {}
        self._task = asyncio.create_task(self._follow())

    async def changes(self, after: str, limit: int) -> list[Change]:
        """See `Changes.since`."""
        return await self.once(
            ("changes", after), lambda: self.sessions.changes.since(self.who, after=after, limit=limit)
        )

    async def get(self, session_id: str) -> Session:
        """See `Sessions.get`."""
        return await self.once(("get", session_id), lambda: self.sessions.get(self.who, session_id))

    async def live(self, session_id: str) -> bytes | None:
        """See `Changes.live`."""
        return await self.once(("live", session_id), lambda: self.sessions.changes.live(self.who, session_id))

    async def entries(self, session_id: str, after: str | None) -> HistoryPage:
        """Some of the conversation after a message."""

        async def read() -> HistoryPage:
            return await self.sessions.history(
                self.who,
                session_id,
                view="conversation",
                after=after,
                limit=HISTORY_PAGE,
                max_bytes=PAGE_BYTES,
            )

        return await self.once(("entries", session_id, after), read)

    async def last_entry(self, session_id: str) -> str | None:
        """The last message of the conversation."""

        async def read() -> str | None:
            page = await self.sessions.history(self.who, session_id, view="conversation", last=True, limit=1)
            return page.entries[-1].id if page.raw else None

        return await self.once(("last", session_id), read)

    async def once(self, question: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The result of `read`, reused for the same question until the next change."""
        asked = self._answers.get(question)
        if asked is None:
            if len(self._answers) >= ANSWERS:
                self._answers.clear()
            asked = self._answers[question] = asyncio.ensure_future(read())
            asked.add_done_callback(lambda done: self._keep(question, done))
        answer: T = await asyncio.shield(asked)
        return answer

    def _keep(self, question: Hashable, done: asyncio.Future[Any]) -> None:
        """Do not reuse a failure."""
        failed = done.cancelled() or done.exception() is not None
        if failed and self._answers.get(question) is done:
            del self._answers[question]

    def forget(self) -> None:
        """Drop all reused answers."""
        self._answers.clear()

    def end(self) -> None:
        """Stop following the feed."""
        self._task.cancel()

    async def _follow(self) -> None:
        while True:
            try:
                async for change in self.sessions.watch(self.who, after=self._position):
                    self._position = change.position
                    self.forget()
                    for listener in tuple(self.listeners):
                        listener(change)
            except Exception as error:  # noqa: BLE001 - everybody who listens depends on it
                log.warning("cannot read the change feed, retrying: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


class Feeds:
    """The feeds with listeners. A feed is followed as long as it has one."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[Sessions, str], Feed] = {}

    async def join(self, sessions: Sessions, who: Principal, listener: Listener) -> Feed:
        """Add a listener to the owner's feed. It gets each change from now on, and possibly some earlier ones."""
        name = (sessions, who.owner)
        if name not in self._feeds:
            position = await sessions.changes.newest(who)
            if name not in self._feeds:  # nobody else was quicker
                self._feeds[name] = Feed(sessions, who, position)
        feed = self._feeds[name]
        feed.listeners.add(listener)
        feed.forget()
        return feed

    def leave(self, sessions: Sessions, who: Principal, listener: Listener) -> None:
        """Remove the listener."""
        feed = self._feeds.get((sessions, who.owner))
        if feed is not None:
            feed.listeners.discard(listener)
            if not feed.listeners:
                feed.end()
                del self._feeds[sessions, who.owner]

    def __len__(self) -> int:
        return sum(len(feed.listeners) for feed in self._feeds.values())
