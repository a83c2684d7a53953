"""Waiting for changes: of this process at once, of others by NOTIFY, and by asking once a second in any case.

A notice carries only a mark of the owner: it is a hint to read again, and a lost one costs a second. It is sent after
the commit that it announces, because inside a transaction NOTIFY makes all committing writers of a database queue up
behind each other; and at most fifty times a second, however much is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator

import psycopg

from hitherto.errors import StoreUnavailable
from hitherto.stores.postgres.rows import LANES
from hitherto.stores.postgres.search import mark
from hitherto.stores.postgres.transactions import Connection, Pool, opened
from hitherto.values.positions import covers, numbers_of

LISTEN = "LISTEN hitherto_change"
# A notice need not survive a crash.
NOTIFY = """
SELECT set_config('synchronous_commit', 'off', true), pg_notify('hitherto_change', mark)
FROM unnest(%s::text[]) mark
"""
# Every change raises it.
SUMS = "SELECT owner, sum(change)::bigint FROM lane WHERE owner = ANY(%s::text[]) GROUP BY owner"

POLL_SECONDS = 1.0
PAUSE_SECONDS = 0.02
AGAIN_SECONDS = 0.2


class _Sleeper(asyncio.Event):
    """Somebody who waits, and the sum of the numbers that they have seen."""

    seen: int | None = None


class ChangeNotifier:
    """Wakes those who wait for an owner's changes, here and in other processes."""

    def __init__(self, url: str, connections: Pool) -> None:
        self._url = url
        self._pool = connections
        self._sleepers: defaultdict[str, set[_Sleeper]] = defaultdict(set)
        self._pending: set[str] = set()
        self._has_pending = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ring(self, owners: Iterable[str]) -> None:
        """Notify everybody that these owners' sessions have changed."""
        for owner in owners:
            self._wake(owner)
            self._pending.add(mark(owner))
        if self._pending:
            self._has_pending.set()
            self._keep_running("notify", self._notify_loop)

    async def wait(self, newest: Callable[[], Awaitable[str]], owner: str, after: str, seconds: float) -> str:
        """Return the `newest` position of an owner once there is a change after `after`, or what it is when time is over."""
        deadline = asyncio.get_running_loop().time() + seconds
        with self._sleeper(owner) as sleeper:
            while True:
                sleeper.clear()
                position = await newest()
                sleeper.seen = sum(numbers_of(position, LANES))
                if not covers(after, position):
                    return position
                self._keep_running("listen", self._listen)
                try:
                    async with asyncio.timeout_at(deadline):
                        await sleeper.wait()
                except TimeoutError:
                    return position

    async def close(self) -> None:
        """Stop listening, and send the pending notices."""
        while running := [task for task in self._tasks.values() if not task.done()]:
            for task in running:
                task.cancel()
            # Again until they end: the driver may lose a cancellation that comes together with an answer.
            await asyncio.wait(running, timeout=AGAIN_SECONDS)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._notify()

    def _keep_running(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        if name not in self._tasks or self._tasks[name].done():
            self._tasks[name] = asyncio.ensure_future(work())

    @contextlib.contextmanager
    def _sleeper(self, owner: str) -> Iterator[_Sleeper]:
        sleeper = _Sleeper()
        self._sleepers[owner].add(sleeper)
        try:
            yield sleeper
        finally:
            self._sleepers[owner].discard(sleeper)
            if not self._sleepers[owner]:
                del self._sleepers[owner]

    def _wake(self, owner: str) -> None:
        for sleeper in self._sleepers.get(owner, ()):
            sleeper.set()

    async def _notify_loop(self) -> None:
        while True:
            await self._has_pending.wait()
            await self._notify()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _notify(self) -> None:
        self._has_pending.clear()
        marks, self._pending = list(self._pending), set()
        if marks:
            # Nothing is lost with a notice: whoever waits asks once a second.
            with contextlib.suppress(psycopg.Error):
                async with self._pool.connection() as connection:
                    await connection.execute(NOTIFY, (marks,))

    async def _listen(self) -> None:
        while True:
            try:
                async with await opened(self._url) as connection:
                    # Not every database that speaks PostgreSQL's language knows the word: there, asking alone must do.
                    with contextlib.suppress(psycopg.NotSupportedError, psycopg.ProgrammingError):
                        await connection.execute(LISTEN)
                    await self._wake_on_notices(connection)
            except (psycopg.Error, StoreUnavailable):
                await asyncio.sleep(POLL_SECONDS)

    async def _wake_on_notices(self, connection: Connection) -> None:
        """Wake who is waiting, by what is heard and by what is seen; ends when the connection does."""
        looked = -math.inf  # the clock may just have begun
        while True:
            if time.monotonic() - looked >= POLL_SECONDS:
                await self._wake_on_changes(connection)
                looked = time.monotonic()
            heard = {
                notice.payload async for notice in connection.notifies(timeout=POLL_SECONDS, stop_after=1)
            }
            for owner in [owner for owner in self._sleepers if mark(owner) in heard]:
                self._wake(owner)

    async def _wake_on_changes(self, connection: Connection) -> None:
        """Wake those whose owner has other changes than they have seen, each by what they have seen themselves."""
        if not self._sleepers:
            return
        answer = await connection.execute(SUMS, (list(self._sleepers),))
        for owner, newest in await answer.fetchall():
            for sleeper in self._sleepers.get(owner, ()):
                if sleeper.seen != newest:
                    sleeper.set()
