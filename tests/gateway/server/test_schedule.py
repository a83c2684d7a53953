"""What the server does now and then: chats start anew when their time has come."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitherto.errors import SessionNotFound, StoreUnavailable
from hitherto.gateway.server.schedule import (
    ClockCheck,
    Duty,
    forget_regularly,
    prune_regularly,
    repeat,
    reset_chats,
    steady,
)
from hitherto.model import Principal
from hitherto.service import Policy, PrunedSession, ResetPolicy, Sessions, parse_resets
from hitherto.service.admin.maintenance import Admin
from hitherto.values.days import DAY_MS
from hitherto.values.positions import BEGINNING
from tests.gateway.methods.asker import KEY, Asker
from tests.support.conversations import told
from tests.support.homes import Clock, Home
from tests.support.waits import arrives, until, within


async def test_chats_of_all_owners_start_anew_while_the_server_runs(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    made = {who: (await Asker(sessions, who.owner).say("one"))["session_id"] for who in (ann, bob)}
    clock.advance(3_600_001)
    policy = parse_resets("idle@1h")
    running = [asyncio.create_task(reset_chats(policy, each, 0.01, clock)) for each in (sessions, other)]
    try:
        for who, session_id in made.items():
            async with within("the chat to start anew"):
                async for _ in other.watch(who, session_id=session_id, after=BEGINNING):
                    if await told(other, who, session_id) == []:
                        break
            assert len(await other.checkpoints(who, session_id)) == 1
        asker = Asker(sessions, ann.owner)
        await asker.say("two")
        assert (await asker.ask("session.get", session_key=KEY))["session_id"] == made[ann]
        assert not any(task.done() for task in running)
    finally:
        for task in running:
            task.cancel()
        await arrives(asyncio.wait(running), "the end of what runs")
    assert await told(other, ann, made[ann]) == ["two"]


OLD = Policy(older_than_ms=DAY_MS, spare_read_ms=0, delete=True)
WORKS: dict[str, Callable[[Sessions, Callable[[], int]], Coroutine[None, None, None]]] = {
    "sessions are deleted": lambda sessions, now: prune_regularly(OLD, sessions, 0, now),
    "chats start anew": lambda sessions, now: reset_chats(parse_resets("idle@1d"), sessions, 0, now),
}


@pytest.mark.parametrize("work", WORKS)
async def test_a_clock_that_jumps_ahead_makes_nothing_old(
    sessions: Sessions, ann: Principal, clock: Clock, work: str
) -> None:
    async def left() -> list[int]:
        return [found.message_count for found in (await sessions.find(ann)).sessions]

    await Asker(sessions, ann.owner).say("one")
    seconds = [0.0]
    running = asyncio.create_task(WORKS[work](sessions, steady(clock, lambda: seconds[0])))
    try:
        for jump in (5 * DAY_MS, 12 * 365 * DAY_MS):
            clock.advance(jump)
            for _ in range(20):
                assert await left() == [1]
                await asyncio.sleep(0)
        seconds[0] += 2 * DAY_MS / 1_000

        async def done() -> bool:
            return await left() != [1]

        await until(done, work)
    finally:
        running.cancel()
        await arrives(asyncio.wait([running]), "the end of what runs")


async def gone(sessions: Sessions, who: Principal) -> bool:
    return not (await sessions.find(who)).sessions


@asynccontextmanager
async def deleting(sessions: Sessions, clock: Clock, seconds: list[float]) -> AsyncIterator[None]:
    """A server that was started now deletes what is a day old."""

    def passed() -> float:
        return seconds[0]

    check = ClockCheck(sessions, passed)
    running = asyncio.create_task(prune_regularly(OLD, sessions, 0, steady(clock, passed), check))
    try:
        yield
    finally:
        running.cancel()
        await arrives(asyncio.wait([running]), "the end of what runs")


async def test_a_server_that_starts_with_a_clock_far_ahead_waits_for_a_day_before_it_deletes(
    sessions: Sessions, ann: Principal, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await sessions.create(ann)
    clock.advance(200 * DAY_MS)
    seconds = [0.0]
    async with deleting(sessions, clock, seconds):

        async def noted() -> bool:
            return "waits until the server has run for a day" in caplog.text

        await until(noted, "the reason why nothing is deleted")
        for at in (0.0, DAY_MS / 1_000 - 1):
            seconds[0] = at
            for _ in range(20):
                assert not await gone(sessions, ann)
                await asyncio.sleep(0)
        seconds[0] = DAY_MS / 1_000
        await until(lambda: gone(sessions, ann), "the deletion after a day")
    assert caplog.text.count("nothing is deleted") == 1


async def test_nothing_is_deleted_by_a_clock_that_is_behind_the_newest_session(
    sessions: Sessions, ann: Principal, bob: Principal, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await sessions.create(ann)
    clock.advance(3 * DAY_MS)
    await sessions.create(bob)
    clock.advance(-1)
    seconds = [0.0]
    async with deleting(sessions, clock, seconds):

        async def noted() -> bool:
            return "ahead of this clock" in caplog.text

        await until(noted, "the reason why nothing is deleted")
        for _ in range(20):
            assert not await gone(sessions, ann)
            await asyncio.sleep(0)
        clock.advance(1)
        seconds[0] += 1
        await until(lambda: gone(sessions, ann), "the deletion, now that the clock is right")
    assert not await gone(sessions, bob)


async def test_a_server_forgets_old_idempotency_keys_by_itself(
    sessions: Sessions, ann: Principal, clock: Clock, home: Home
) -> None:
    def notes() -> int:
        return sum(count for table, count in home.rows().items() if table.startswith("memo"))

    await sessions.create(ann, idempotency_key="old")
    clock.advance(8 * DAY_MS)
    await sessions.create(ann, idempotency_key="new")
    assert notes() == 2
    running = asyncio.create_task(forget_regularly(sessions, 0, clock))
    try:

        async def forgotten() -> bool:
            return notes() == 1

        await until(forgotten, "the old key to be forgotten")
    finally:
        running.cancel()
        await arrives(asyncio.wait([running]), "the end of what runs")


@pytest.mark.parametrize("fault", [SessionNotFound("gone"), ValueError("unforeseen")])
async def test_what_fails_is_tried_again(
    sessions: Sessions, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []
    twice = asyncio.Event()

    async def work() -> None:
        done.append(1)
        if len(done) == 2:
            twice.set()
        raise fault

    running = asyncio.create_task(repeat(Duty(sessions, "a duty", 0), work, 0))
    await arrives(twice.wait(), "the work to be done twice")
    running.cancel()
    await arrives(asyncio.wait([running]), "the end of what runs")
    assert len(caplog.records) >= 2


async def test_a_session_that_cannot_be_pruned_keeps_no_other_owner_waiting(
    sessions: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    for who in (ann, bob):
        await sessions.create(who)

    class Broken(Admin):
        async def prune(self, who: Principal, *given: Any, **more: Any) -> list[PrunedSession]:
            if who == ann:
                raise StoreUnavailable("not now")
            return await super().prune(who, *given, **more)

    class WithBroken(Sessions):
        @property
        def admin(self) -> Admin:
            return Broken(self.core, self.catalog, self.leases)

    clock.advance(2 * DAY_MS)
    server = WithBroken(sessions.core.store, now=clock)
    running = asyncio.create_task(prune_regularly(Policy(older_than_ms=DAY_MS), server, 0, clock))
    try:
        await until(lambda: gone(sessions, bob), "the archiving for the other owner")
    finally:
        running.cancel()
        await arrives(asyncio.wait([running]), "the end of what runs")
    assert not await gone(sessions, ann)


async def test_it_ends_when_it_is_told_to_whatever_the_store_makes_of_that(sessions: Sessions) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise StoreUnavailable("the connection was cut") from None

    running = asyncio.create_task(repeat(Duty(sessions, "a duty", 0), work, 0))
    await arrives(begun.wait(), "the work to begin")
    running.cancel()
    await arrives(asyncio.wait([running]), "the end of what runs")


async def test_one_server_at_a_time_has_a_duty_and_another_takes_over(
    sessions: Sessions, other: Sessions, clock: Clock
) -> None:
    one, two = Duty(sessions, "resets", 60), Duty(other, "resets", 60)
    assert await one.is_mine()
    assert not await two.is_mine()
    assert await Duty(other, "notes", 60).is_mine()
    clock.advance(119_999)
    assert not await two.is_mine()
    assert await one.is_mine()  # asking again keeps it
    clock.advance(119_999)
    assert not await two.is_mine()
    clock.advance(1)
    assert await two.is_mine()
    assert not await one.is_mine()


async def test_the_duty_of_a_process_that_has_ended_passes_on_at_once(sessions: Sessions) -> None:
    code = "from hitherto.holders import new_holder; print(new_holder())"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    printed, _ = await arrives(child.communicate(), "the name of a process")
    holder = printed.decode().strip()
    assert await sessions.admin.take_duty("resets", holder, 3_600_000)
    assert await sessions.admin.take_duty("resets", "somebody", 3_600_000)
    assert not await sessions.admin.take_duty("resets", "somebody else", 3_600_000)


async def test_what_is_not_this_server_s_duty_is_left_to_the_other(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id = (await Asker(sessions, ann.owner).say("one"))["session_id"]
    assert await Duty(other, "resets", 3_600).is_mine()
    clock.advance(3_600_001)
    running = asyncio.create_task(reset_chats(parse_resets("idle@1h"), sessions, 0, clock))
    try:
        for _ in range(20):
            assert await told(other, ann, session_id) == ["one"]
            await asyncio.sleep(0)
        clock.advance(7_200_000)

        async def empty() -> bool:
            return await told(other, ann, session_id) == []

        await until(empty, "the chat to start anew once the duty is free")
    finally:
        running.cancel()
        await arrives(asyncio.wait([running]), "the end of what runs")


async def test_without_a_policy_there_is_nothing_to_do(sessions: Sessions) -> None:
    await arrives(reset_chats(ResetPolicy(), sessions), "the end of what has nothing to do")
