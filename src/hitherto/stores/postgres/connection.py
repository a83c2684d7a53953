"""A connection that asks the event loop only when it really has to wait, its texts, and what its errors mean.

psycopg goes through the event loop before every send, twice for each statement of a pipeline, though a socket is all
but always ready for it: most of the time that a short transaction takes.
"""

from __future__ import annotations

import asyncio
import re
import select
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextBinaryLoader
from psycopg.waiting import Ready, Wait
from psycopg_pool import PoolClosed, PoolTimeout

from hitherto.errors import (
    AlreadyExists,
    Conflict,
    HithertoError,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)
from hitherto.stores.postgres.rows import Row, escaped, restored

T = TypeVar("T")

INTERVAL = 0.1
"""How often psycopg looks up from a wait, in seconds."""

_EVENTS = {Wait.R: select.POLLIN, Wait.W: select.POLLOUT, Wait.RW: select.POLLIN | select.POLLOUT}


class EagerConnection(AsyncConnection[Row]):
    """As its parent in all but speed, and closed for good if a wait is cancelled."""

    given_up = False
    """Whether it was closed for that reason."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._kept: dict[str, AsyncCursor[Row]] = {}

    def kept_cursor(self, statement: str) -> AsyncCursor[Row]:
        """A cursor for this statement alone, on which psycopg remembers how its values and rows are read and written. It also
        keeps the last rows: for short answers only. Texts come as the server keeps them."""
        if statement not in self._kept:
            self._kept[statement] = self.cursor()
            self._kept[statement].adapters.register_loader("text", TextBinaryLoader)
        return self._kept[statement]

    def has_news(self) -> bool:
        """Whether the server has said something unasked: as a rule, that it has closed the connection."""
        return _ready(self.pgconn.socket, Wait.R) != Ready.NONE

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


class TextDumper(Dumper):
    """Of no declared type, so that PostgreSQL takes it for what the place needs."""

    def dump(self, obj: str) -> Buffer:
        try:
            data = obj.encode()
        except UnicodeEncodeError:  # lone surrogates
            return escaped(obj).encode()
        # All but always there is nothing to escape, and to see that so takes a fraction of the time.
        return escaped(obj).encode() if b"\x00" in data or b"\x1a" in data else data


class TextLoader(Loader):
    """Text in the text format."""

    def load(self, data: Buffer) -> str:
        return restored(str(data, "utf-8"))


class BinaryTextLoader(TextLoader):
    """Text in the binary format, which is the same."""

    format = Format.BINARY


def adapt(connection: AsyncConnection[object]) -> None:
    """Let this connection escape and restore every text, and send every number as a `bigint`."""
    connection.adapters.register_dumper(str, TextDumper)
    # Of one type however large: for each other type, a statement would be prepared once more.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("text", TextLoader)
    connection.adapters.register_loader("text", BinaryTextLoader)


_TAKEN = {
    "entry_id": "the session already has an entry of this id",
    "session_id": "a session of this id already exists",
    "session_key": "a session with this key already exists",
}

# Connection exceptions, and the server's shutting down.
_LOST = ("08", "57P")
# What `check_writer` raises, in migration 8: see there.
_TOO_OLD = "HT001"
# What `partitions` adds to the name of an index for each part of its table.
_PART = re.compile(r"_p\d+$")


def is_conflict(error: psycopg.Error) -> bool:
    """Whether somebody else was faster, so that the same work, run again, may succeed or say why not."""
    if isinstance(error, errors.UniqueViolation):
        return _constraint(error) != "entry_id"
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection, not the statement, has failed."""
    if isinstance(error, PoolTimeout | PoolClosed):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_LOST)


def as_hitherto_error(error: psycopg.Error) -> HithertoError:
    """The program's own error for one of PostgreSQL's."""
    said = error.diag.message_primary or str(error).strip()
    if error.sqlstate == _TOO_OLD:
        return SchemaTooNew(*map(int, (error.diag.message_detail or "0 0").split()))
    match error:
        case errors.UniqueViolation():
            return AlreadyExists(_TAKEN.get(_constraint(error), "it already exists"))
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return Conflict("other writers keep changing the same sessions; try again")
        case errors.DiskFull():
            return StoreFull(f"PostgreSQL has no room left: {said}")
        case errors.ProgramLimitExceeded():
            return TooLarge(f"too long for PostgreSQL: {said}")
        case errors.QueryCanceled():
            return StoreUnavailable(f"PostgreSQL took too long: {said}")
        case psycopg.OperationalError() | psycopg.InterfaceError() | errors.ReadOnlySqlTransaction():
            return StoreUnavailable(f"PostgreSQL cannot be reached: {said}")
    return StoreError(f"PostgreSQL refused: {said}")


def _constraint(error: psycopg.Error) -> str:
    return _PART.sub("", error.diag.constraint_name or "")


def unknown_outcome(error: psycopg.Error) -> StoreUnavailable:
    """The connection was lost while the end of a transaction was on its way."""
    said = str(error).strip()
    return StoreUnavailable(
        f"lost PostgreSQL during a commit, so the write may or may not be stored; check before you repeat it: {said}"
    )
