"""A connection that asks the event loop only when it really has to wait.

psycopg goes through the event loop before every send, twice for each statement of a pipeline, though a socket is all
but always ready for it: most of the time that a short transaction takes.
"""

from __future__ import annotations

import asyncio
import select
from typing import TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

from hitherto.stores.postgres.rows import Row

T = TypeVar("T")

INTERVAL = 0.1
"""How often psycopg looks up from a wait, in seconds."""

_EVENTS = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}


class EagerConnection(AsyncConnection[Row]):
    """As its parent in all but speed, and closed for good if a wait is cancelled."""

    given_up = False
    """Whether it was closed for that reason."""

    async def wait(self, gen: PQGen[T], interval: float = INTERVAL, timeout: float | None = None) -> T:  # noqa: ASYNC109
        socket = self.pgconn.socket
        try:
            wanted = next(gen)
            while (ready := _ready(socket, wanted)) != Ready.NONE:
                wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            return await super().wait(_resumed(gen, wanted), interval, timeout)
        except asyncio.CancelledError:
            # psycopg has asked the server to cancel the statement. The request travels by itself and may arrive late,
            # so this connection must not serve anybody else.
            self.given_up = True
            self.pgconn.finish()
            raise


def _resumed(gen: PQGen[T], wanted: Wait) -> PQGen[T]:
    """The rest of a generator that stands at this wait."""
    try:
        while True:
            wanted = gen.send((yield wanted))
    except StopIteration as done:
        result: T = done.value
        return result


def _ready(socket: int, wanted: Wait) -> Ready:
    """What of the wanted is possible at once; an error counts as both, so that psycopg meets it."""
    poll = select.poll()
    poll.register(socket, _EVENTS[wanted])
    found = poll.poll(0)
    if not found:
        return Ready.NONE
    events = found[0][1]
    if events & ~(select.POLLIN | select.POLLOUT):
        return Ready(wanted)
    return Ready((Ready.R if events & select.POLLIN else 0) | (Ready.W if events & select.POLLOUT else 0))
