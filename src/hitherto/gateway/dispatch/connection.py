"""What requests of one connection share: its subscriptions, its uploads, and the turns that run in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import msgspec

from hitherto.gateway.dispatch.uploads import Uploads
from hitherto.model import Json, Principal, Session, Token
from hitherto.service import OpenSession


class SubscriptionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription to make: to one session or to all of the owner's, which events, and from where.

    `after` is a cursor from an event or a subscription; without one, events start now.
    """

    session: Session | None
    events: tuple[str, ...]
    after: str | None


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    """A new subscription, and the cursor at which it starts."""

    id: str
    cursor: str


class Subscriptions(Protocol):
    """The subscriptions of one connection; they end with it."""

    async def add(self, request: SubscriptionRequest) -> Subscribed:
        """Add a subscription. Raises `InvalidCursor` for a cursor of another owner."""

    async def drop(self, subscription_id: str) -> bool:
        """End a subscription; False if there is none with this id."""


class OpenConnection:
    """What only an open connection can do: receive notifications before a response, and upload long arguments."""

    def __init__(self, notify: Callable[[str, Json], Awaitable[None]], uploads: Uploads) -> None:
        self.notify, self._uploads = notify, uploads

    def upload(self, token: Token, name: str, data: bytes) -> int:
        """Add a piece of an upload; returns its size so far."""
        return self._uploads.add(self, token.id, name, data)

    def take_upload(self, name: str) -> bytes | None:
        """Take an upload, once; None if there is none of this name."""
        return self._uploads.take(self, name)

    def end(self) -> None:
        """Discard unused uploads."""
        self._uploads.drop(self)


class Turns:
    """The running turns of this process."""

    def __init__(self) -> None:
        self._opened: dict[tuple[str, str], list[OpenSession]] = {}

    @contextmanager
    def running(self, who: Principal, opened: OpenSession) -> Iterator[None]:
        """The session's turns can be cancelled while the block runs."""
        name = (who.owner, opened.session_id)
        self._opened.setdefault(name, []).append(opened)
        try:
            yield
        finally:
            self._opened[name].remove(opened)
            if not self._opened[name]:
                del self._opened[name]

    def cancel(self, who: Principal, session_id: str) -> bool:
        """Cancel the session's turn in this process; False if none runs."""
        return sum(opened.cancel() for opened in self._opened.get((who.owner, session_id), ())) > 0
