"""What subscribers are pending_events of sessions that are deleted, and of keys that pass from one session to another."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.gateway.events.cursors import OwnerEvents, SessionEvents
from hitherto.gateway.events.feeds import Feed, Feeds
from hitherto.model import Change, Json
from hitherto.service import Sessions
from hitherto.stores import connector
from tests.gateway.methods.asker import KEY, Asker


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    async with connector("memory:")("memory:", None) as store:
        yield Asker(Sessions(store))


@pytest.fixture
async def feed(asker: Asker) -> AsyncIterator[Feed]:
    feeds, (sessions, who) = Feeds(), (asker.context.sessions, asker.context.who)

    def heard(_: Change) -> None:
        pass

    joined = await feeds.join(sessions, who, heard)
    yield joined
    feeds.leave(sessions, who, heard)


async def pending_events(events: OwnerEvents | SessionEvents, feed: Feed) -> list[Json]:
    feed.forget()
    return [event async for event in events.pending()]


async def test_a_deleted_session_is_told_by_its_key_also_to_whoever_never_saw_it(
    asker: Asker, feed: Feed
) -> None:
    made = (await asker.say("one"))["session_id"]
    keyless = (await asker.ask("session.create"))["session_id"]
    events = await OwnerEvents.begin(feed, None)
    for session in (made, keyless):
        await asker.ask("session.delete", session_id=session)
    assert await pending_events(events, feed) == [
        {"event": "deleted", "session_key": KEY, "session_id": made},
        {"event": "deleted", "session_key": keyless, "session_id": keyless},
    ]


async def test_whoever_follows_a_key_is_told_which_session_has_it_now(asker: Asker, feed: Feed) -> None:
    made = (await asker.say("one"))["session_id"]
    events = await SessionEvents.begin(feed, made, None)
    fresh = (await asker.ask("sessions.new", session_key=KEY))["session_id"]
    moved, updated = await pending_events(events, feed)
    assert moved == {"event": "moved", "session_key": KEY, "session_id": made, "new_session_id": fresh}
    assert (updated["event"], updated["session_key"]) == ("updated", made)
    await asker.ask("session.append", session_id=made, messages=[{"role": "user", "content": "two"}])
    assert [(event["event"], event["session_key"]) for event in await pending_events(events, feed)] == [
        ("entries", made),
        ("updated", made),
    ]
