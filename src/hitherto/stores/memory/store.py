"""The store itself: transactions that run in one go, and waiting for changes."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from hitherto.errors import StoreError
from hitherto.model import Json
from hitherto.ports import Ahead, Health, Mode, Now, Reader, Store, Writer
from hitherto.stores.memory.check import CHECKED, problems
from hitherto.stores.memory.read_tx import MemoryReader
from hitherto.stores.memory.tables import Journal, Tables
from hitherto.stores.memory.write_tx import MemoryWriter
from hitherto.values.positions import numbers_of, position_of

T = TypeVar("T")
SCHEME = "memory:"


class Shared:
    """What all connections of one name have in common."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.secret = secrets.token_bytes(32)
        self.tables = Tables()
        self.sleepers: set[asyncio.Event] = set()
        self.connections = 0


_named: dict[str, Shared] = {}


@asynccontextmanager
async def connect(url: str, now: Now | None = None, mode: Mode = "make") -> AsyncIterator[Store]:  # noqa: ARG001
    """Open `memory:`, a store of one's own, or `memory:NAME`, one shared in this process as long as it is open.

    It is always there: at first it is empty.
    """
    name = url.removeprefix(SCHEME)
    shared = _named.setdefault(name, Shared(name)) if name else Shared(name)
    shared.connections += 1
    try:
        yield MemoryStore(shared, now or _now)
    finally:
        shared.connections -= 1
        if not shared.connections:
            _named.pop(name, None)


class MemoryStore:
    """A connection to a store in this process's memory."""

    def __init__(self, shared: Shared, now: Now) -> None:
        self._shared = shared
        self._now = now
        self.secret = shared.secret

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:
        return _run(work(MemoryReader(self._shared.tables, self._now)))

    async def write(
        self,
        work: Callable[[Writer], Awaitable[T]],
        about: str | None = None,
    ) -> T:
        journal = Journal()
        try:
            result = _run(work(MemoryWriter(self._shared.tables, self._now, journal)))
        except BaseException:
            journal.undo()
            raise
        if journal:
            for sleeper in self._shared.sleepers:
                sleeper.set()
        return result

    async def wait(self, owner: str, after: str, seconds: float) -> str:
        (known,) = numbers_of(after, 1)
        newest = self._shared.tables.newest
        bell = asyncio.Event()
        self._shared.sleepers.add(bell)
        try:
            async with asyncio.timeout(seconds):
                while newest.get(owner, 0) <= known:
                    await bell.wait()
                    bell.clear()
        except TimeoutError:
            pass
        finally:
            self._shared.sleepers.discard(bell)
        return position_of([newest.get(owner, 0)])

    async def unordered(self) -> int:
        return 0

    async def owners(self) -> list[str]:
        return sorted(owner for owner, own in self._shared.tables.owners.items() if own.sessions)

    async def backup(self, target: str) -> None:
        raise StoreError(f"a store in memory has no file to copy to {target!r}: export its sessions instead")

    async def distribute(self) -> tuple[str, ...]:
        raise StoreError("a store in memory has no nodes: only PostgreSQL with Citus can be distributed")

    async def check(self, *, repair: bool) -> Health:
        return Health(checked=CHECKED, problems=tuple(problems(self._shared.tables)))

    async def clean(self, *, thoroughly: bool = False) -> None:
        """There is neither log nor free space."""

    async def about(self) -> Json:
        owners = self._shared.tables.owners.values()
        logs = [log for own in owners for log in own.logs.values()]
        return {
            "kind": "memory",
            "name": self._shared.name or None,
            "sessions": sum(len(own.sessions) for own in owners),
            "entries": sum(len(log.entries) for log in logs),
            "bytes": sum(len(kept.payload) for log in logs for kept in log.entries.values()),
        }


def _now() -> int:
    return time.time_ns() // 1_000_000


def _run(transaction: Awaitable[T]) -> T:
    """The result of a transaction, run here and now: it awaits only itself, so it never has to wait."""
    steps = transaction.__await__()
    try:
        next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    steps.close()
    raise RuntimeError("a transaction may only await itself")
