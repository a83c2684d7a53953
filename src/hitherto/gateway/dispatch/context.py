"""The context of a request: the token with its rights, and what this server offers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from hitherto.engine import Engine
from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.uploads import Uploads
from hitherto.model import Json, Principal, Session, Token
from hitherto.service import OpenSession, Sessions
from hitherto.updates import Update
from hitherto.values.keys import DmScopes


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


class Held:
    """What only an open connection can do: receive notifications before a response, and upload long arguments."""

    def __init__(self, tell: Callable[[str, Json], Awaitable[None]], uploads: Uploads) -> None:
        self.tell, self._uploads = tell, uploads

    def hand_over(self, token: Token, name: str, data: bytes) -> int:
        """Add a piece of an upload; returns its size so far."""
        return self._uploads.add(self, token.id, name, data)

    def taken(self, name: str) -> bytes | None:
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


def ignore_updates(session_id: str, update: Update) -> None:
    """Ignore updates of a turn: they are stored, and the change feed shows them."""


Beside = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
"""Starts a task that outlives its request."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The context of one request. Its rights are those of `token`, as the server's record has them now.

    `subscriptions` and `held` are None where nothing can be told later, as over plain HTTP. `emit` is told what happens in a turn
    at once, for those who are connected to this very process. `models` are those that may be chosen here, if not any.
    What is done `beside` goes on when its request is answered.
    """

    sessions: Sessions
    token: Token
    engine: Engine | None = None
    models: tuple[str, ...] | None = None
    dm_scopes: DmScopes = field(default_factory=DmScopes)
    turns: Turns = field(default_factory=Turns)
    subscriptions: Subscriptions | None = None
    held: Held | None = None
    emit: Callable[[str, Update], None] = ignore_updates
    beside: Beside = asyncio.create_task

    def offered(self, model: str) -> str:
        """The model, if this server offers it: the operator pays for it. Raises `InvalidInput`."""
        if self.models is not None and model not in self.models:
            raise InvalidInput(f"this server does not offer the model {model!r:.100}")
        return model

    @property
    def who(self) -> Principal:
        """The owner on whose behalf the request runs."""
        return Principal(owner=self.token.owner, local="commands" in self.token.scopes)
