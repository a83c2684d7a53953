"""The subscriptions of one connection: each sends its events in order, when the client has taken the previous ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hitherto.errors import HithertoError, TooLarge
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.dispatch.connection import Subscribed, SubscriptionRequest
from hitherto.gateway.dispatch.schema import key_of
from hitherto.gateway.events.cursors import OwnerEvents, PendingEvents, SessionEvents
from hitherto.gateway.events.feeds import RETRY_SECONDS, Feed, Feeds
from hitherto.gateway.transport.metrics import Metrics
from hitherto.ids import uuid7
from hitherto.model import Change, Json
from hitherto.rpc.errors import Gone
from hitherto.service import Sessions

EVENT = "session.event"

Notify = Callable[[str, Json], Awaitable[None]]
log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Subscription:
    id: str
    home: Sessions
    events: frozenset[str]
    feed: Feed | None = None
    pending: PendingEvents | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def heard(self, change: Change) -> None:
        if self.pending is None or self.pending.concerns(change):
            self.wake.set()


class Subscribing:
    """See `context.Subscriptions`. The token is checked before each event.

    `fail` ends the connection: a client must not rely on a subscription that no longer sends events.
    """

    def __init__(
        self,
        feeds: Feeds,
        caller: Caller,
        most: int,
        metrics: Metrics,
        notify: Notify,
        fail: Callable[[], None],
    ) -> None:
        self._feeds, self._caller, self._most = feeds, caller, most
        self._metrics, self._notify, self._fail = metrics, notify, fail
        self._all: dict[str, _Subscription] = {}

    async def add(self, request: SubscriptionRequest) -> Subscribed:
        """Make a subscription; it sends nothing before `begin`."""
        if len(self._all) >= self._most:
            raise TooLarge(f"a connection can have at most {self._most} subscriptions")
        home, who = self._caller.sessions, self._caller.who
        if request.session is not None:
            home = home.at(key_of(request.session))
        made = _Subscription(uuid7(), home, frozenset(request.events))
        self._all[made.id] = made
        try:
            made.feed = await self._feeds.join(home, who, made.heard)
            if request.session is None:
                made.pending = await OwnerEvents.begin(made.feed, request.after)
            else:
                made.pending = await SessionEvents.begin(made.feed, request.session.id, request.after)
        except BaseException:
            await self.drop(made.id)
            raise
        return Subscribed(id=made.id, cursor=made.pending.cursor())

    async def begin(self) -> None:
        """Start the new subscriptions; called when the client knows their ids."""
        for each in self._all.values():
            if each.task is None and each.pending is not None and each.feed is not None:
                each.task = asyncio.create_task(self._run(each, each.feed, each.pending))

    async def drop(self, subscription_id: str) -> bool:
        """End a subscription."""
        gone = self._all.pop(subscription_id, None)
        if gone is None:
            return False
        self._feeds.leave(gone.home, self._caller.who, gone.heard)
        if gone.task is not None:
            gone.task.cancel()
        return True

    async def end(self) -> None:
        """End all."""
        tasks = [each.task for each in self._all.values() if each.task is not None]
        for name in tuple(self._all):
            await self.drop(name)
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, subscription: _Subscription, feed: Feed, events: PendingEvents) -> None:
        with suppress(Gone):  # the reader of requests notices it too
            while not events.over:
                subscription.wake.clear()
                try:
                    await self._send(subscription, feed, events)
                    if not events.over:
                        await subscription.wake.wait()
                except HithertoError as error:
                    log.warning("cannot send events to a subscriber, retrying: %s", error.message)
                    await asyncio.sleep(RETRY_SECONDS)
                except Gone:
                    raise
                except Exception:
                    log.exception("a subscription failed")
                    self._fail()
                    return

    async def _send(self, subscription: _Subscription, feed: Feed, events: PendingEvents) -> None:
        async for event in events.pending():
            if event["event"] not in subscription.events:
                continue
            if not await feed.once(("token", self._caller.token.id), self._caller.holds):
                raise Gone
            await self._notify(
                EVENT, {"subscription_id": subscription.id, **event, "cursor": events.cursor()}
            )
            self._metrics.events.add(event=event["event"])
