"""A connection that asks the event loop only when it really has to wait.

psycopg goes through the event loop before every send, twice for each statement of a pipeline, though a socket is all
but always ready for it: most of the time that a short transaction takes.
"""

from __future__ import annotations

import asyncio
import re
import select
from typing import TypeVar

from psycopg import AsyncConnection
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
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


_REFUSED = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def escaped(text: str) -> str:
    """The text in a form that PostgreSQL takes."""
    return _REFUSED.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def restored(text: str) -> str:
    """The text that `escaped` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\x1a" in text else text


class TextDumper(Dumper):
    """Of no declared type, so that PostgreSQL takes it for what the place needs."""

    def dump(self, obj: str) -> Buffer:
        return escaped(obj).encode()


class TextLoader(Loader):
    """Text in the text format."""

    def load(self, data: Buffer) -> str:
        return restored(str(data, "utf-8"))


class BinaryTextLoader(TextLoader):
    """Text in the binary format, which is the same."""

    format = Format.BINARY


def adapt(connection: AsyncConnection[object]) -> None:
    """Let this connection escape and restore every text."""
    connection.adapters.register_dumper(str, TextDumper)
    connection.adapters.register_loader("text", TextLoader)
    connection.adapters.register_loader("text", BinaryTextLoader)
