"""Delivers updates to listeners, in order; an agent that is faster than its listeners is paused.

Reading stops while many updates are unread, and continues as soon as anybody waits for something. So memory stays
bounded, and a listener that stops reading blocks nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hitherto.acp.client.values import Update
from hitherto.rpc.errors import Gone
from hitherto.rpc.transport import Transport

UNREAD_LIMIT = 1_000
Hear = Callable[[Update], None]


class PausableTransport:
    """A transport that is read only when it should be."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._open = asyncio.Event()
        self._open.set()
        self._unread = self._waiting = 0
        self._left = False

    async def receive(self) -> bytes | None:
        await self._open.wait()
        message = await self._transport.receive()
        self._left = message is None
        return message

    async def send(self, data: bytes) -> None:
        if self._left:  # its input may still be open, but nobody reads it
            raise Gone
        await self._transport.send(data)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While somebody waits for a message that was not read yet."""
        self._count(waiting=1)
        try:
            yield
        finally:
            self._count(waiting=-1)

    def count_unread(self, change: int) -> None:
        """Change the number of unread updates."""
        self._count(unread=change)

    def _count(self, *, unread: int = 0, waiting: int = 0) -> None:
        self._unread += unread
        self._waiting += waiting
        if self._unread < UNREAD_LIMIT or self._waiting:
            self._open.set()
        else:
            self._open.clear()


class Listener:
    """Hears the updates of a session while something runs in it."""

    def __init__(self, flow: PausableTransport) -> None:
        self._flow = flow
        self._heard: asyncio.Queue[Update | None] = asyncio.Queue()

    def take(self, update: Update) -> None:
        self._flow.count_unread(1)
        self._heard.put_nowait(update)

    def finish(self) -> None:
        """Nothing comes after what has come."""
        self._heard.put_nowait(None)

    def drop(self) -> None:
        """Nobody listens any more."""
        left = 0
        while not self._heard.empty():
            left += self._heard.get_nowait() is not None
        self._flow.count_unread(-left)

    def __aiter__(self) -> Listener:
        return self

    async def __anext__(self) -> Update:
        if self._heard.empty():
            with self._flow.waiting():
                update = await self._heard.get()
        else:
            update = self._heard.get_nowait()
        if update is None:
            raise StopAsyncIteration
        self._flow.count_unread(-1)
        return update


class Inbox:
    """Hands each update to those who listen to its session, and to `on_update`, which hears all. An update that comes before
    a response has been handed over when the response is."""

    def __init__(self, flow: PausableTransport, on_update: Hear) -> None:
        self._flow, self._on_update = flow, on_update
        self._hearing: dict[str, list[Hear]] = {}

    def take(self, update: Update) -> None:
        for hear in self._hearing.get(update.session_id, ()):
            hear(update)
        self._on_update(update)

    @contextmanager
    def hearing(self, session_id: str, hear: Hear) -> Iterator[None]:
        """Call this for each update of the session. If it raises, it is not called again, and what it raised comes out
        at the end."""
        failed: list[Exception] = []

        def heard(update: Update) -> None:
            try:
                if not failed:
                    hear(update)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is for the caller and not for the agent
                failed.append(error)

        all_of_it = self._hearing.setdefault(session_id, [])
        all_of_it.append(heard)
        try:
            yield
        finally:
            all_of_it.remove(heard)
            if not all_of_it:
                del self._hearing[session_id]
        if failed:
            raise failed[0]

    @contextmanager
    def listening(self, session_id: str) -> Iterator[Listener]:
        """Gather the updates of the session for whoever iterates."""
        listener = Listener(self._flow)
        with self.hearing(session_id, listener.take):
            try:
                yield listener
            finally:
                listener.drop()
