"""Connections and transactions: pooled, pipelined, tried again after a conflict.

Statements are queued and only a read waits for its answer. So a transaction costs one round trip for each read and
one for its end, however many rows it writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import Params
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from hitherto.errors import SearchTooBroad, StoreUnavailable
from hitherto.stores.postgres.connection import (
    EagerConnection,
    adapt,
    as_hitherto_error,
    is_conflict,
    is_lost,
    unknown_outcome,
)
from hitherto.stores.postgres.rows import Row
from hitherto.tasks import Turns

T = TypeVar("T")
Connection = EagerConnection
Pool = AsyncConnectionPool[Connection]

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
ALONE = ""
"""Nothing is begun: a single statement is a transaction of its own, and costs one round trip."""

ATTEMPTS = 5
CONNECTIONS = 10
SECONDS_TO_OPEN = 20.0
SECONDS_FOR_A_CONNECTION = 20.0
SECONDS_TO_CLEAN_UP = 5.0
# After that the pool begins anew with its attempts, which come less and less often.
SECONDS_OF_ATTEMPTS = 3.0
SPARE_SECONDS = 60.0
STATEMENT_SECONDS = 60.0
SEARCH_SECONDS = 5.0
"""For all statements of a search together; the last of them may take as long again."""

# A statement that waits for a lock, or a client that went away in the middle, must not hold others for ever: nor one
# that was cut off, of which PostgreSQL hears nothing, not even that it is gone, unless it asks. Every statement here
# has an index that leads it: PostgreSQL must not think otherwise of tables that it has not analysed yet. Compiling a
# plan is never worth it for statements so short.
CONFIGURE = f"""
SELECT set_config(name, value, false)
FROM (VALUES ('statement_timeout', '{STATEMENT_SECONDS:g}s'), ('idle_in_transaction_session_timeout', '60s'),
             ('transaction_timeout', '120s'), ('tcp_user_timeout', '8s'), ('tcp_keepalives_idle', '4s'),
             ('tcp_keepalives_interval', '2s'), ('tcp_keepalives_count', '2'),
             ('enable_seqscan', 'off'), ('enable_sort', 'off'), ('jit', 'off')
     ) wanted (name, value) JOIN pg_settings USING (name)
"""
# For statements that may take their time, and for those that look at all there is.
UNHURRIED = """
SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout', 'transaction_timeout')
"""
LIMIT = "SELECT set_config('statement_timeout', %s, true)"
NOT_KEPT = (
    "the pooler before PostgreSQL does not keep prepared statements: add prepare=off to the address and restart, or let the"
    " pooler keep them (PgBouncer: max_prepared_statements)"
)
statement_log = logging.getLogger("hitherto.stores.postgres.statements")
"""Every statement, without its values."""
ANY_PLAN = "SELECT set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true)"


class Statements:
    """A connection inside a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._until: float | None = None

    async def limit_search(self) -> None:
        """From now on this transaction has `SEARCH_SECONDS`: then what it asks raises `SearchTooBroad`."""
        if self._until is None:
            self._until = time.monotonic() + SEARCH_SECONDS
            await self.queue(LIMIT, (f"{max(1, round(SEARCH_SECONDS * 1_000))}ms",))

    async def rows(
        self, statement: str, params: Params = (), *, plan_anew: bool = False, as_sent: bool = False
    ) -> list[Row]:
        """What a statement answers. `plan_anew`: its best plan depends on the values. `as_sent`: it is frequent and short, and
        takes texts as the server keeps them."""
        if self._is_late():
            raise SearchTooBroad
        statement_log.debug(statement)
        prepare = False if plan_anew else None
        cursor = self._connection.kept_cursor(statement) if as_sent else self._connection.cursor()
        try:
            await cursor.execute(statement, params, prepare=prepare, binary=True)
            return await cursor.fetchall()
        except errors.QueryCanceled as error:
            if self._is_late():
                raise SearchTooBroad from error
            raise

    def _is_late(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    async def row(self, statement: str, params: Params = ()) -> Row | None:
        """The first row that a statement answers."""
        found = await self.rows(statement, params)
        return found[0] if found else None

    async def once(self, statement: str, params: Params) -> list[Row]:
        """What a statement answers that writes, and is a transaction of its own. `StoreUnavailable` if the connection is lost
        meanwhile, since it may have been done; one that was lost before is noticed."""
        if self._connection.has_news():
            raise psycopg.OperationalError("the server has closed the connection")
        try:
            return await self.rows(statement, params, as_sent=True)
        except psycopg.Error as error:
            if is_lost(error):
                raise unknown_outcome(error) from error
            raise

    async def queue(self, statement: str, params: Params = ()) -> None:
        """Have a statement run some time before the transaction ends."""
        statement_log.debug(statement)
        await self._connection.execute(statement, params)

    async def queue_many(self, statement: str, params: list[Any]) -> None:
        """Have a statement run for each of these."""
        if params:
            statement_log.debug(statement)
            await self._connection.cursor().executemany(statement, params)


async def opened(url: str, *, prepare: bool = True) -> Connection:
    """A connection of its own, not from the pool; see there for `prepare`. Raises `StoreUnavailable`, also if nobody answers
    for a while."""
    try:
        async with asyncio.timeout(SECONDS_TO_OPEN):
            connection: Connection = await EagerConnection.connect(url, **_settings(prepare))
            try:
                await configured(connection)
            except BaseException:  # cancelled, for one: then nobody would close it
                await connection.close()
                raise
    except TimeoutError as error:
        why = f"no answer within {SECONDS_TO_OPEN:g} seconds; is the address right?"
        raise StoreUnavailable(f"cannot open PostgreSQL: {why}") from error
    except psycopg.Error as error:
        raise StoreUnavailable(f"cannot open PostgreSQL: {str(error).strip()}") from error
    return connection


SETTINGS: dict[str, Any] = {
    "autocommit": True,  # transactions are begun in words, so that BEGIN can be queued too
    "fallback_application_name": "hitherto",
    "client_encoding": "UTF8",
}


async def configured(connection: Connection) -> None:
    """Make a new connection one of this store's."""
    adapt(connection)
    await connection.execute(CONFIGURE)


def _settings(prepare: bool) -> dict[str, Any]:
    return SETTINGS if prepare else {**SETTINGS, "prepare_threshold": None}


def pool(url: str, *, prepare: bool = True) -> Pool:
    """The connections that transactions share, not open yet. Without `prepare` the server keeps no statement for later."""
    logging.getLogger("psycopg.pool").addFilter(_is_unexpected)
    return AsyncConnectionPool(
        url,
        connection_class=EagerConnection,
        kwargs=_settings(prepare),
        configure=configured,
        min_size=1,
        max_size=CONNECTIONS,
        timeout=SECONDS_FOR_A_CONNECTION,
        reconnect_timeout=SECONDS_OF_ATTEMPTS,
        reconnect_failed=AsyncConnectionPool.check,
        open=False,
        name="hitherto",
    )


def _is_unexpected(record: logging.LogRecord) -> bool:
    """The pool warns of every connection that comes back closed; those that we have closed ourselves are no news."""
    args = record.args if isinstance(record.args, tuple) else ()
    return not any(isinstance(each, EagerConnection) and each.given_up for each in args)


async def stand_in_line(lines: Turns, about: str) -> None:
    """Wait until nobody is before in the line of this session, which is to be left. Raises `StoreUnavailable` if that takes too
    long.

    PostgreSQL lets those that wait for the same row arrive in any order, each with a connection that somebody else could use.
    """
    try:
        await lines.enter(about, STATEMENT_SECONDS)
    except TimeoutError:
        raise StoreUnavailable("PostgreSQL took too long for earlier writes to the same session") from None


class Transactions:
    """Runs work in transactions, on connections of a pool.

    Those that write begin with the statement `check`, which fails if this program may not write any more.
    """

    def __init__(self, connections: Pool, check: str) -> None:
        self._pool = connections
        self._check = check
        self._mixed_up = False
        self._spare: Connection | None = None
        self._spare_until = -math.inf  # the clock may just have begun
        self._waiting = 0

    async def run(self, begin: str, work: Callable[[Statements], Awaitable[T]]) -> T:
        """The result of `work` in a transaction of its own, tried again while others are faster.

        Once a prepared statement was not where this program left it, nothing is run any more: between here and the server
        are connections of others, where the same name may stand for another statement.
        """
        lost_before = False
        for attempt in range(1, ATTEMPTS + 1):
            began = time.monotonic()
            if self._mixed_up:
                raise StoreUnavailable(NOT_KEPT)
            try:
                return await self._once(begin, work)
            except (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement) as error:
                self._mixed_up = True
                raise StoreUnavailable(NOT_KEPT) from error
            except psycopg.Error as error:
                lost = is_lost(error)
                again = lost or is_conflict(error) or _is_cancelled_by_others(error, time.monotonic() - began)
                if attempt == ATTEMPTS or (lost and lost_before) or not again:
                    raise as_hitherto_error(error) from error
                lost_before = lost
            if lost_before:
                # The server may have been restarted, and then no connection of the pool is any good.
                await self._pool.check()
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, begin: str, work: Callable[[Statements], Awaitable[T]]) -> T:
        connection = await self._borrow()
        try:
            if begin == ALONE:
                return await work(Statements(connection))
            return await _transaction(connection, begin, self._checked(begin, work))
        except asyncio.CancelledError:
            # Cleaning up was cut short, or is not worth trusting: the pool opens another.
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                await connection.close()
            raise
        finally:
            await self._give_back(connection)

    def _checked(
        self, begin: str, work: Callable[[Statements], Awaitable[T]]
    ) -> Callable[[Statements], Awaitable[T]]:
        async def checked(tx: Statements) -> T:
            await tx.queue(self._check)  # it travels with what follows
            return await work(tx)

        return checked if begin == WRITE else work

    async def _borrow(self) -> Connection:
        spare, self._spare = self._spare, None
        if spare is not None:
            return spare
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        self._waiting += 1
        try:
            connection = await self._pool.getconn()
        finally:
            self._waiting -= 1
        # Before Python 3.12 the pool does not notify a task that is cancelled at the very moment when a connection arrives.
        if task and task.cancelling() > before:
            await self._pool.putconn(connection)
            raise asyncio.CancelledError
        return connection

    async def _give_back(self, connection: Connection) -> None:
        """Keep one connection at hand: the pool takes a good part of a short statement's time for each. Not where somebody
        waits for one, and not for long, since the pool sees to their age."""
        now = time.monotonic()
        is_good = connection.pgconn.transaction_status == TransactionStatus.IDLE
        if is_good and self._spare is None and not self._waiting and now < self._spare_until:
            self._spare = connection
            return
        self._spare_until = now + SPARE_SECONDS
        await self._pool.putconn(connection)

    async def close(self) -> None:
        """Leave no connection out of the pool; whoever still has one gives it back there."""
        spare, self._spare, self._waiting = self._spare, None, self._waiting + 1
        if spare is not None:
            await self._pool.putconn(spare)


def _is_cancelled_by_others(error: psycopg.Error, seconds: float) -> bool:
    """Whether a statement was cancelled by somebody who is not here: it had not reached its own limit of time."""
    return isinstance(error, errors.QueryCanceled) and seconds < STATEMENT_SECONDS


async def _transaction(connection: Connection, begin: str, work: Callable[[Statements], Awaitable[T]]) -> T:
    try:
        return await _piped(connection, begin, work)
    except BaseException:
        await _clean_up(connection)
        raise


async def _piped(connection: Connection, begin: str, work: Callable[[Statements], Awaitable[T]]) -> T:
    """Leaving the pipeline sends what is queued, and waits for all answers: for that of COMMIT, if it came so far."""
    failure: BaseException | None = None
    committing = False
    try:
        async with connection.pipeline() as pipeline:
            try:
                await connection.execute(begin)
                result = await work(Statements(connection))
                committing = True
                await connection.execute("COMMIT")
            except BaseException as error:  # noqa: BLE001 - raised again below, out of the pipeline
                failure = error
                # After an error the server skips what follows; psycopg would warn of each such statement.
                with contextlib.suppress(psycopg.Error):
                    await pipeline.sync()
    except psycopg.Error as error:
        failure = failure or error
    if failure is None:
        return result
    if committing and begin != READ and isinstance(failure, psycopg.Error) and is_lost(failure):
        raise unknown_outcome(failure) from failure
    raise failure


async def _clean_up(connection: Connection) -> None:
    """Leave nothing of a failed transaction behind; a connection in doubt is closed, and the pool opens another."""
    try:
        async with asyncio.timeout(SECONDS_TO_CLEAN_UP):
            if connection.pgconn.transaction_status == TransactionStatus.INERROR:
                # Statements behind the error were skipped: psycopg forgets what it believes to be prepared.
                await connection.rollback()
            elif connection.pgconn.transaction_status == TransactionStatus.INTRANS:
                await connection.execute("ROLLBACK")
            elif connection.pgconn.transaction_status != TransactionStatus.IDLE:
                await connection.close()
    except (psycopg.Error, TimeoutError):
        await connection.close()
