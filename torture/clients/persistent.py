"""A client that does not give up: what was not acknowledged it says again, with the same key, here or elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from bench.workloads.websocket import Wire, request
from torture.clients.acknowledged import UNFORESEEN, Pages, code_of, mark_for

Json = dict[str, Any]
PATIENCE = 4.0
"""So long it waits for an answer, in seconds."""
LONGEST = 300.0
"""So long a trial waits for what must come, in seconds; then it has failed."""
PAUSE = 0.05
WORDS = "said under load"
DENIED = ("invalid_input", "session_not_found", "idempotency_conflict", *UNFORESEEN)
"""Answers that no repetition makes better, or that must not be given whatever has failed."""


class Connection(NamedTuple):
    """A server as a client knows it."""

    port: int
    token: str


class Refused(Exception):
    """A server answered what it must not."""


class Stubborn:
    """Speaks to one server at a time, and to the next when that one fails."""

    def __init__(self, doors: Sequence[Connection], first: int = 0) -> None:
        self._doors, self._at = doors, first
        self._wire: Wire | None = None
        self.failures: Counter[str] = Counter()

    async def ask(self, method: str, params: Json) -> Any:
        """The result of a request, asked again until there is one."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._once(method, params)
            except (OSError, TimeoutError, AssertionError) as error:
                self.failures[type(error).__name__] += 1
                self.turn_away()
            await asyncio.sleep(PAUSE)

    async def wire(self) -> Wire:
        """The connection that it has now."""
        if self._wire is None:
            door = self._doors[self._at % len(self._doors)]
            self._wire = await Wire.open(*door)
        return self._wire

    def turn_away(self) -> None:
        """Leave this server."""
        self.close()
        self._at += 1

    def close(self) -> None:
        """Hang up."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    async def _once(self, method: str, params: Json) -> Any:
        wire = await self.wire()
        wire.send(request(method, params))
        answer: Json = msgspec.json.decode(await wire.receive())
        code = code_of(answer)
        if code is None:
            return answer["result"]
        if code in DENIED:
            raise Refused(f"{method}: {answer['error']}")
        self.failures[code] += 1
        raise TimeoutError(code)


class Writer:
    """Says one message after the other in a session of its own, and notes what was acknowledged and when."""

    def __init__(self, doors: Sequence[Connection], name: str, first: int = 0) -> None:
        self.client, self._name = Stubborn(doors, first), name
        self.pages = Pages("")
        self.last = 0.0
        """When something was acknowledged last."""
        self._news = asyncio.Condition()
        self._over, self._rests = False, asyncio.Event()

    async def begin(self) -> None:
        """Make the session."""
        key = f"{self._name}-session"
        made = await self.client.ask("session.create", {"idempotency_key": key})
        self.pages.session_id = made["session_id"]

    async def work(self) -> None:
        """Say messages until it is told to rest; the last one is acknowledged too."""
        while not self._over:
            mark = mark_for(f"{self._name}n{len(self.pages.acknowledged)}", WORDS)
            given = {
                "session_id": self.pages.session_id,
                "messages": [{"role": "user", "content": f"{mark} {WORDS}"}],
                "idempotency_key": mark,
            }
            await self.client.ask("session.append", given)
            async with self._news:
                self.pages.acknowledged.append(mark)
                self.last = time.monotonic()
                self._news.notify_all()
        self.client.close()
        self._rests.set()

    async def rest(self) -> None:
        """Say no more; returns when the last message is acknowledged."""
        self._over = True
        await self._rests.wait()

    async def after(self, moment: float) -> float:
        """When something was acknowledged for the first time since this moment."""
        async with asyncio.timeout(LONGEST), self._news:
            await self._news.wait_for(lambda: self.last > moment)
            return self.last

    async def more(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        wanted = len(self.pages.acknowledged) + count
        async with asyncio.timeout(LONGEST), self._news:
            await self._news.wait_for(lambda: len(self.pages.acknowledged) >= wanted)


async def at_work(writers: Sequence[Writer], trial: Callable[[], Awaitable[None]]) -> None:
    """Do this while they are at work; it ends, and with it the trial, if one of them meets what it must not."""
    for writer in writers:
        await writer.begin()
    async with asyncio.TaskGroup() as tasks:
        for writer in writers:
            tasks.create_task(writer.work())
        await trial()
        for writer in writers:
            await writer.rest()
