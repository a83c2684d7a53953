"""Scheduled maintenance while the server runs, if configured: old sessions are pruned, chats are reset.

A clock that is set wrong must not make everything old at once. So nothing grows older than by the time that has passed
since the server was started, whatever the clock says then.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from hitherto.errors import HithertoError
from hitherto.holders import new_holder
from hitherto.ids import now_ms
from hitherto.model import Filter, Principal
from hitherto.service import Policy, ResetPolicy, Sessions
from hitherto.values.days import DAY_MS

EVERY_SECONDS = 3_600.0
RESET_SECONDS = 60.0
USAGE_SECONDS = 30.0
SHORTEST_DUTY_MS = 30_000
Clock = Callable[[], int]
"""The time in ms."""

log = logging.getLogger(__name__)


def running_time() -> float:
    """Seconds that no setting of the clock changes; seconds in which the machine slept count where the system reports them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def steady(clock: Clock, passed: Callable[[], float] = running_time) -> Clock:
    """The clock, which from here on goes ahead by no more than the time that passes."""
    began, at = clock(), passed()
    return lambda: min(clock(), began + int((passed() - at) * 1_000))


class ClockCheck:
    """Whether this clock can be trusted with deleting, compared with the newest time that a server has written.

    If that lies ahead, the clock is behind, and nothing is deleted. If it lay more than a day behind when the server was
    started, the clock may be ahead, and deleting waits for a day of running time.
    """

    def __init__(self, sessions: Sessions, passed: Callable[[], float] = running_time) -> None:
        self._sessions, self._passed, self._started = sessions, passed, passed()
        self._waits: bool | None = None
        self._told = ""

    async def may_delete(self, now: int) -> bool:
        """Whether something may be deleted for its age at this time. Why not is logged once."""
        newest = await self._newest()
        if self._waits is None:
            self._waits = newest is not None and now - newest > DAY_MS
        if newest is not None and newest > now:
            return self._refuse("the newest session was written at a time ahead of this clock: set the clock")
        if self._waits and (self._passed() - self._started) * 1_000 < DAY_MS:
            return self._refuse(
                "this clock is more than a day ahead of the newest session: deleting waits until the server has run for a day"
            )
        return True

    async def _newest(self) -> int | None:
        times = []
        for owner in await self._sessions.admin.owners():
            page = await self._sessions.find(Principal(owner=owner), Filter(archived="include"), limit=1)
            times += [session.updated_at for session in page.sessions]
        return max(times, default=None)

    def _refuse(self, why: str) -> bool:
        if self._told != why:
            self._told = why
            log.warning("nothing is deleted: %s", why)
        return False


class Duty:
    """What one of several servers of a store does at a time, again and again. Another takes over when it has not been heard
    of for twice as long as it takes until the next time."""

    def __init__(self, sessions: Sessions, name: str, every: float) -> None:
        self._sessions, self._name = sessions, name
        self._holder, self._ms = new_holder(), max(round(every * 2_000), SHORTEST_DUTY_MS)
        self._asked = -math.inf

    async def is_mine(self) -> bool:
        """Whether it is this server's, now and for the next while."""
        self._asked = running_time()
        return await self._sessions.admin.take_duty(self._name, self._holder, self._ms)

    async def is_still_mine(self) -> bool:
        """The same between two pieces of work, where it was this server's before: asked only when some time has passed."""
        return (running_time() - self._asked) * 4_000 < self._ms or await self.is_mine()


async def forget_regularly(
    sessions: Sessions,
    every: float = EVERY_SECONDS,
    clock: Clock | None = None,
    check: ClockCheck | None = None,
) -> None:
    """Forget old idempotency keys and other notes, at once and then again and again, on one server at a time."""
    now, trust = clock or steady(now_ms), check or ClockCheck(sessions)

    async def forget() -> None:
        at = now()
        if await trust.may_delete(at):
            await sessions.admin.forget_notes(at)

    await repeat(Duty(sessions, "notes", every), forget, every)


async def prune_regularly(
    policy: Policy,
    sessions: Sessions,
    every: float = EVERY_SECONDS,
    clock: Clock | None = None,
    check: ClockCheck | None = None,
) -> None:
    """Apply the policy to every owner's sessions, at once and then again and again, on one server at a time."""
    now, trust = clock or steady(now_ms), check or ClockCheck(sessions)
    duty = Duty(sessions, "delete" if policy.delete else "archive", every)

    async def prune_all() -> None:
        at = now()
        if policy.delete and not await trust.may_delete(at):
            return
        for owner in await sessions.admin.owners():
            with _log_failure():
                if not await duty.is_still_mine():
                    return
                gone = await sessions.admin.prune(Principal(owner=owner), policy, dry_run=False, now=at)
                if gone:
                    log.warning("%s %d old sessions", "deleted" if policy.delete else "archived", len(gone))

    await repeat(duty, prune_all, every)


async def reset_chats(
    policy: ResetPolicy, sessions: Sessions, every: float = RESET_SECONDS, clock: Clock | None = None
) -> None:
    """Reset every owner's chats when they are due, on one server at a time. Returns at once if the policy is off."""
    now, duty = clock or steady(now_ms), Duty(sessions, "resets", every)

    async def reset() -> None:
        async for done in sessions.resets.sweep(policy, now=now()):
            if done:
                log.info("reset %d chats", len(done))
            if not await duty.is_still_mine():
                return

    if policy:
        await repeat(duty, reset, every)


async def count_usage(sessions: Sessions, every: float = USAGE_SECONDS) -> None:
    """Count what every owner's sessions used, behind what is written, on one server at a time."""
    duty = Duty(sessions, "usage", every)

    async def count_all() -> None:
        for owner in await sessions.admin.owners():
            with _log_failure():
                if not await duty.is_still_mine():
                    return
                await sessions.spending.count(Principal(owner=owner), seconds=every)

    await repeat(duty, count_all, every)


async def repeat(duty: Duty, work: Callable[[], Awaitable[None]], every: float) -> None:
    """Repeat the work while the duty is this server's; a failure is retried next time."""
    while not _is_cancelled():
        with _log_failure():
            if await duty.is_mine():
                await work()
        await asyncio.sleep(every)


def _is_cancelled() -> bool:
    """Whether the server has ended this: a store that is interrupted may report that as its own failure."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextmanager
def _log_failure() -> Iterator[None]:
    try:
        yield
    except HithertoError as error:
        log.warning("scheduled maintenance failed and will be retried: %s", error.message)
    except Exception:
        log.exception("scheduled maintenance failed")
