"""A turn is ended from another process, through whichever door it was begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Delta, Event, Turn
from hitherto.errors import Busy, SessionNotFound
from hitherto.model import Principal
from hitherto.service import Sessions
from hitherto.service.turns import runner
from hitherto.updates import Said
from tests.support.conversations import told
from tests.support.scripted_engine import Scripted, Watcher, ask_once, in_background
from tests.support.waits import LIMIT, arrives


async def endless(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
    yield Delta(text="I was about to")
    await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)


async def test_a_turn_ends_when_another_process_calls_it_off(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    theirs = await sessions.create(bob)
    engine = Scripted(endless)
    async with sessions.opened(ann, session.id, engine) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        assert not await other.leases.request_end(bob, theirs.id)
        assert await other.leases.request_end(ann, session.id)
        outcome = await arrives(running, "the end of the turn")
    assert outcome.stop_reason == "cancelled"
    assert await told(other, ann, session.id) == ["Go", "I was about to"]
    assert (await other.get(ann, session.id)).status == "idle"
    assert await other.leases.current(ann, session.id) is None


async def test_what_was_asked_of_one_turn_is_not_asked_of_the_next(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    engine = Scripted(endless)
    async with sessions.opened(ann, session.id, engine) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        await other.leases.request_end(ann, session.id)
        await arrives(running, "the end of the turn")
    assert (await ask_once(sessions, ann, session.id, engine)).stop_reason == "end_turn"


async def test_a_turn_ends_when_its_session_is_deleted_elsewhere(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    async with sessions.opened(ann, session.id, Scripted(endless)) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        await other.delete(ann, session.id)
        with pytest.raises(SessionNotFound):
            await arrives(running, "the end of the turn")
        assert not opened.running


async def test_a_turn_is_ended_and_its_end_waited_for(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    await other.turns.end(ann, session.id)  # none runs
    async with sessions.opened(ann, session.id, Scripted(endless)) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        await other.turns.end(ann, session.id, seconds=LIMIT)
        assert await other.leases.current(ann, session.id) is None
        assert await told(other, ann, session.id) == ["Go", "I was about to"]
        assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"


async def test_who_holds_a_session_and_hears_of_nothing_is_named(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.leases.acquire(ann, session.id, "somebody")
    with pytest.raises(Busy) as busy:
        await other.turns.end(ann, session.id, seconds=0)
    assert busy.value.holder == "somebody"
