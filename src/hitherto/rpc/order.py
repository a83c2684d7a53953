"""Requests of one connection that change the same thing are carried out in the order in which they came.

A thing may have several names, and which thing a name stands for may take a look into a store. So a request first waits
until it is known what those before it are about, and then for those that are about the same. The others run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import takewhile


class Order:
    """The requests of one connection that change something, as long as they run. If those before it do not end, a request
    waits for so many seconds."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._places: dict[Place, None] = {}

    def enter(self, name: str | None = None) -> Place:
        """The place of a request that has just come; by name, if the thing that it is about has only one."""
        place = Place(self._places, name, self._seconds)
        self._places[place] = None
        return place


class Place:
    """The place of one request, behind all that came before it, until it leaves. Whoever waits too long in it gets a
    `TimeoutError`."""

    def __init__(self, places: dict[Place, None], name: str | None, seconds: float | None) -> None:
        self._places = places
        self._until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self._names: set[str] = set()
        self._known, self._left = asyncio.Event(), asyncio.Event()
        if name is not None:
            self._names.add(name)
            self._known.set()

    async def reached(self, name: str) -> None:
        """Wait until those before that are about the thing of this name have left, and it is known of the others what they
        are about."""
        self._names.add(name)
        for earlier in self._earlier():
            await self._wait(earlier._known)
            if name in earlier._names:
                # So it is about the same: whoever comes later need not wait to hear that.
                self._names |= earlier._names
                self._known.set()
                await self._wait(earlier._left)

    async def found(self, names: Iterable[str]) -> bool:
        """Say that these are the names of the thing. Waits for those before that are about it by another name; then it is
        True, and what was found may have changed."""
        self._names.update(names)
        self._known.set()
        same = [earlier for earlier in self._earlier() if earlier._names & self._names]
        for earlier in same:
            await self._wait(earlier._left)
        return bool(same)

    def leave(self) -> None:
        """Let those behind pass; a second time changes nothing."""
        self._places.pop(self, None)
        self._known.set()
        self._left.set()

    async def _wait(self, event: asyncio.Event) -> None:
        if not event.is_set():
            async with asyncio.timeout_at(self._until):
                await event.wait()

    def _earlier(self) -> list[Place]:
        return list(takewhile(lambda place: place is not self, self._places))
