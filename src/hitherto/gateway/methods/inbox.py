"""What waits for the running turn of a session."""

from __future__ import annotations

from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Message, Named, NamedWriting, Number, key_of, message
from hitherto.model import Pending, QueueMode
from hitherto.service import Sessions


class Withdraw(NamedWriting, frozen=True, kw_only=True):
    """Which message."""

    message_id: str


class Move(NamedWriting, frozen=True, kw_only=True):
    """Which message, and its new place, from 1 on; beyond the end is the end."""

    message_id: str
    place: Number


class WaitingMessages(Answer, frozen=True, kw_only=True):
    """What was sent together, and its place. `queue_mode` is null if no turn has to answer it."""

    place: int
    queue_mode: QueueMode | None
    messages: tuple[Message, ...]


class InboxOf(Answer, frozen=True, kw_only=True):
    """All that waits, in order."""

    session_key: str
    waiting: tuple[WaitingMessages, ...]


class Withdrawn(Answer, frozen=True, kw_only=True):
    """Whether the message was waiting."""

    session_key: str
    cancelled: bool


class Moved(Answer, frozen=True, kw_only=True):
    """The place that the message has now."""

    session_key: str
    message_id: str
    place: int


async def list_inbox(call: Call[Named]) -> InboxOf:
    """List the messages that wait for the running turn."""
    return _inbox(call, await call.sessions.inbox.waiting(call.who, call.session.id))


async def cancel(call: Call[Withdraw]) -> Withdrawn:
    """Remove a waiting message for good, with those sent in the same request. A prompt's request ends as `cancelled`."""

    def result(was_waiting: bool) -> Withdrawn:
        return Withdrawn(session_key=key_of(call.session), cancelled=was_waiting)

    async def withdraw(sessions: Sessions) -> bool:
        return await sessions.inbox.cancel(call.who, call.session.id, call.params.message_id)

    return await call.once(withdraw, result)


async def move(call: Call[Move]) -> Moved:
    """Move a waiting message, with those sent in the same request, to another place."""
    given = call.params

    async def moved(sessions: Sessions) -> int:
        return await sessions.inbox.move(call.who, call.session.id, given.message_id, given.place)

    def result(place: int) -> Moved:
        return Moved(session_key=key_of(call.session), message_id=given.message_id, place=place)

    return await call.once(moved, result)


def _inbox(call: Call[Named], rows: tuple[Pending, ...]) -> InboxOf:
    waiting = tuple(
        WaitingMessages(place=place, queue_mode=row.mode, messages=tuple(map(message, row.entries)))
        for place, row in enumerate(rows, 1)
    )
    return InboxOf(session_key=key_of(call.session), waiting=waiting)
