"""Subscribing to events: the connection's subscriptions are made and ended here, and served by the connection."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hitherto.errors import InvalidInput, NotFound
from hitherto.gateway.dispatch.connection import SubscriptionRequest, Subscriptions
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, Params

Event = Literal["created", "updated", "deleted", "compacted", "moved", "entries", "delta"]
EVENTS: tuple[Event, ...] = ("created", "updated", "deleted", "compacted", "moved", "entries", "delta")


class Subscribe(Named, frozen=True, kw_only=True):
    """Of one session or of all; which events; and the cursor after which to begin, else what happens from now on."""

    events: Annotated[tuple[Event, ...], Meta(min_length=1, max_length=len(EVENTS))] = EVENTS
    cursor: str | None = None


class Unsubscribe(Params, frozen=True, kw_only=True):
    """Which subscription."""

    subscription_id: str


class Subscribed(Answer, frozen=True, kw_only=True):
    """The subscription, and the cursor at which it begins."""

    subscription_id: str
    cursor: str


class Unsubscribed(Answer, frozen=True, kw_only=True):
    """It is over."""

    subscription_id: str
    unsubscribed: bool


async def subscribe(call: Call[Subscribe]) -> Subscribed:
    """Receive the events of one session, or of all, on this connection: in order, starting from a cursor."""
    given = call.params
    request = SubscriptionRequest(
        session=call.found, events=tuple(dict.fromkeys(given.events)), after=given.cursor
    )
    made = await _subscriptions(call).add(request)
    return Subscribed(subscription_id=made.id, cursor=made.cursor)


async def unsubscribe(call: Call[Unsubscribe]) -> Unsubscribed:
    """End a subscription."""
    name = call.params.subscription_id
    if not await _subscriptions(call).drop(name):
        raise NotFound(f"this connection has no subscription {name!r:.200}")
    return Unsubscribed(subscription_id=name, unsubscribed=True)


def _subscriptions(call: Call[object]) -> Subscriptions:
    if call.context.subscriptions is None:
        raise InvalidInput("subscriptions need an open connection: use the WebSocket /ws")
    return call.context.subscriptions
