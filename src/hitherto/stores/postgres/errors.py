"""What PostgreSQL's errors mean to the program."""

from __future__ import annotations

import re

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from hitherto.errors import (
    AlreadyExists,
    Conflict,
    HithertoError,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)

_TAKEN = {
    "entry_id": "the session already has an entry of this id",
    "session_id": "a session of this id already exists",
    "session_key": "a session with this key already exists",
}

# Connection exceptions, and the server's shutting down.
_LOST = ("08", "57P")
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
