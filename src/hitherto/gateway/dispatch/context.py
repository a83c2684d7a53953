"""What a request is answered with: who asks, on what rights, and what this server has to answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from hitherto.engine import Engine
from hitherto.errors import InvalidInput
from hitherto.gateway.dispatch.uploads import Arguments
from hitherto.model import Json, Principal, Session, Token
from hitherto.service import OpenSession, Sessions
from hitherto.updates import Update
from hitherto.values.keys import DmScopes


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants to be told: of one session or of all its owner's, which events, and from where on.

    `after` is a cursor that an event or a subscription has told; without one, what happens from now on.
    """

    session: Session | None
    events: tuple[str, ...]
    after: str | None


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription that was made, and the cursor of the moment at which it begins."""

    id: str
    cursor: str


class Subscriptions(Protocol):
    """The subscriptions of one connection; they end with it."""

    async def add(self, wish: Wish) -> Subscribed:
        """Tell what is wished for, from now on. `InvalidCursor` for a cursor that is not one of the owner's."""

    async def drop(self, subscription_id: str) -> bool:
        """Tell it no longer; False if there is no such subscription."""


class Held:
    """What a connection that stays open can do besides: be told more before an answer, and hand over long arguments."""

    def __init__(self, tell: Callable[[str, Json], Awaitable[None]], arguments: Arguments) -> None:
        self.tell, self._arguments = tell, arguments

    def hand_over(self, token: Token, name: str, data: bytes) -> int:
        """More of an argument, under a name that the client gives it; returns how much is there."""
        return self._arguments.add(self, token.id, name, data)

    def taken(self, name: str) -> bytes | None:
        """An argument that was handed over, once; None if there is none."""
        return self._arguments.take(self, name)

    def end(self) -> None:
        """Forget what was handed over and never used."""
        self._arguments.drop(self)


class Turns:
    """The turns that run in this process."""

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
        """End the session's turn that runs here; False if none does."""
        return sum(opened.cancel() for opened in self._opened.get((who.owner, session_id), ())) > 0


def tell_nobody(session_id: str, update: Update) -> None:
    """What happens in a turn is stored and shown by the change feed; nobody has to be told of it besides."""


Beside = Callable[[Coroutine[Any, Any, Any]], "asyncio.Task[Any]"]
"""Has something done beside the request that asks for it."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """One request's. The rights are those of `token`, as the server's record has them at this moment.

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
    emit: Callable[[str, Update], None] = tell_nobody
    beside: Beside = asyncio.create_task

    def offered(self, model: str) -> str:
        """The model, if it may be chosen here: others would be paid for by whoever runs the server."""
        if self.models is not None and model not in self.models:
            raise InvalidInput(f"this server does not offer the model {model!r:.100}")
        return model

    @property
    def who(self) -> Principal:
        """On whose behalf everything is done."""
        return Principal(owner=self.token.owner, local="commands" in self.token.scopes)
