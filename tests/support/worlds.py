"""The same service over every kind of store, side by side, with the same clock and the same ids."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from hitherto.model import Principal
from hitherto.service import Sessions
from hitherto.stores import connector
from tests.support.homes import Clock, Home, counting
from tests.support.outcomes import outcome

Ask = Callable[[Sessions], Awaitable[Any]]


class Worlds:
    """Stores that must never be told apart. They are opened once; each example has owners of its own."""

    def __init__(self, homes: Sequence[Home]) -> None:
        self._loop = asyncio.new_event_loop()
        self._opened = AsyncExitStack()
        self._examples = 0
        self.clock = Clock()
        self.sessions: dict[str, Sessions] = {}
        self._stores = {
            home.url.partition(":")[0]: self._run(
                self._opened.enter_async_context(connector(home.url)(home.url, self.clock))
            )
            for home in homes
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._opened.aclose())
        self._loop.close()

    def begin(self) -> list[Principal]:
        """Start an example: two owners whom nobody has seen, ids and the clock from the beginning."""
        self._examples += 1
        self.clock.now = Clock().now
        self.sessions = {
            name: Sessions(store, now=self.clock, new_id=counting().__next__)
            for name, store in self._stores.items()
        }
        return [Principal(owner=f"{name}-{self._examples}") for name in ("ann", "bob")]

    def agree(self, ask: Ask) -> Any:
        """Ask every store the same; the answers must be equal."""
        answers = {name: self._run(outcome(ask(sessions))) for name, sessions in self.sessions.items()}
        first, *others = answers
        for other in others:
            if answers[other] != answers[first]:
                raise AssertionError(f"{first} says\n{answers[first]}\n{other} says\n{answers[other]}")
        return answers[first]

    def look(self, ask: Ask) -> Any:
        """Ask only the first, to know what there is."""
        return self._run(outcome(ask(next(iter(self.sessions.values())))))

    def _run(self, work: Awaitable[Any]) -> Any:
        return self._loop.run_until_complete(work)
