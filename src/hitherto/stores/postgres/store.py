"""The store itself: its address, opening a database, transactions, waiting for changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitherto.errors import (
    HithertoError,
    InvalidInput,
    StoreDamaged,
    StoreError,
    StoreNotFound,
    StoreUnavailable,
)
from hitherto.model import Json
from hitherto.ports import Ahead, Health, Mode, Now, Reader, Store, Writer
from hitherto.stores.postgres import check as checks
from hitherto.stores.postgres import search
from hitherto.stores.postgres.connection import as_hitherto_error
from hitherto.stores.postgres.migrate import check_writer, is_new, migrate, migrations, secret
from hitherto.stores.postgres.notify import ChangeNotifier
from hitherto.stores.postgres.one_trip.foreseen_reads import foreseen, is_foreseen
from hitherto.stores.postgres.one_trip.nothing_sent import MoreIsNeeded
from hitherto.stores.postgres.one_trip.sole_append import SoleAppend, append_alone
from hitherto.stores.postgres.partitions import distribute
from hitherto.stores.postgres.pending_rows import PendingRows
from hitherto.stores.postgres.read_tx import PostgresReader
from hitherto.stores.postgres.rows import ListedRows
from hitherto.stores.postgres.transactions import (
    ALONE,
    CONNECTIONS,
    READ,
    WRITE,
    Connection,
    Statements,
    Transactions,
    opened,
    pool,
    stand_in_line,
)
from hitherto.stores.postgres.write_tx import PostgresWriter, RecentSessions
from hitherto.tasks import Turns, cancel_all

T = TypeVar("T")

SEARCHES = CONNECTIONS // 2
MOST_PARTITIONS = 1_024
ORDERING_PAUSE = 0.2

# A network that falls silent breaks no connection by itself: a statement would wait for a quarter of an hour, an idle
# connection for two. An address may say otherwise. Milliseconds for `tcp_user_timeout`, else seconds and times.
AGAINST_SILENCE = {
    "connect_timeout": 3,
    "tcp_user_timeout": 8_000,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}

ENCODING = "SELECT current_setting('server_encoding')"
# `source` is 'client' when the address itself says so: then somebody has chosen it.
CARELESS = """
SELECT 1 FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off' AND source <> 'client'
"""
OWNERS = """
SELECT owner FROM (SELECT DISTINCT owner FROM lane) o
WHERE EXISTS (SELECT FROM session s WHERE s.owner = o.owner) ORDER BY owner
"""
# The sessions are counted already: to count them again would take longer with each.
ABOUT = """
SELECT current_setting('server_version'), current_database()::text, current_schema()::text,
       (SELECT max(version) FROM schema_migration),
       (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')),
       (SELECT coalesce(sum(sessions), 0)::bigint FROM facet
        WHERE kind = 'count' AND value IN ('total', 'archived'))
"""


class Address(NamedTuple):
    """Where a database is. `partitions` is None if the address says nothing about them; `prepare`: see `pool`."""

    conninfo: str
    partitions: int | None = None
    prepare: bool = True


@asynccontextmanager
async def connect(url: str, now: Now | None = None, mode: Mode = "make") -> AsyncIterator[Store]:
    """Open the store in the database that a `postgresql://` URL (or another form that libpq knows) names.

    Updates its tables, and creates them if the mode is `make` (else a database without them is a `StoreNotFound`);
    `partitions=16` in the URL splits the tables of a new database by owner, `prepare=off` is for poolers that keep no
    prepared statements. Raises
    `InvalidInput` if the tables exist with another number of partitions, and `StoreUnavailable` if the database cannot
    be reached, is not in UTF-8, or loses commits in a crash (`synchronous_commit` is off and the URL does not accept it).
    """
    try:
        address = parse_address(url)
        key = await _prepared(address, mode)
    except psycopg.Error as error:
        raise as_hitherto_error(error) from error
    connections = pool(address.conninfo, prepare=address.prepare)
    await connections.open()
    bell = ChangeNotifier(address.conninfo, connections)
    transactions = Transactions(connections, check_writer())
    store = PostgresStore(key, address, transactions, bell, now)
    try:
        async with store.ordering(make=mode != "read"):
            yield store
    finally:
        await transactions.close()
        await bell.close()
        await connections.close()


async def _prepared(address: Address, mode: Mode) -> bytes:
    """Check the database and bring its tables up to date; returns the store's key."""
    async with await opened(address.conninfo, prepare=address.prepare) as connection:
        await _check_settings(connection)
        if mode != "make" and await is_new(connection):
            raise StoreNotFound(f"the database {connection.info.dbname!r}, which has no tables of Hitherto")
        await migrate(connection, migrations(), address.partitions)
        return await secret(connection)


async def _check_settings(connection: Connection) -> None:
    encoding = await (await connection.execute(ENCODING)).fetchone()
    if encoding is None or encoding[0] != "UTF8":
        raise StoreUnavailable("the database must have the encoding UTF8: create it with ENCODING 'UTF8'")
    if await (await connection.execute(CARELESS)).fetchone() is not None:
        raise StoreUnavailable(
            "this PostgreSQL has synchronous_commit off and would lose acknowledged messages in a crash: switch it on,"
            " or add options=-c%20synchronous_commit%3Doff to the address to accept that"
        )


class NotAsLeft(Exception):
    """A session was taken for what this process had made of it, and that may be wrong: it must be read."""


class NoPlace(BaseException):
    """A read has to wait for its turn to search, and begins anew then. No `except Exception` may stop this."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


class Searches:
    """How many searches run at once: one for each owner, and never on all connections."""

    def __init__(self) -> None:
        self._turns = Turns()
        self._places = asyncio.Semaphore(SEARCHES)

    def is_free(self, owner: str) -> bool:
        """Whether a search of this owner need not wait."""
        return not (self._turns.is_taken(owner) or self._places.locked())

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait until this owner may search, and search while the block runs."""
        async with self._turns.turn(owner), self._places:
            yield


class _Place:
    """The place of one read among the searches; most reads need none."""

    def __init__(self, searches: Searches) -> None:
        self._searches = searches
        self._turn: AbstractAsyncContextManager[None] | None = None

    async def take(self, owner: str) -> None:
        """Take one at once, unless there is one already. Raises `NoPlace` if none is free."""
        if self._turn is None:
            if not self._searches.is_free(owner):
                raise NoPlace(owner)
            await self.wait(owner)

    async def wait(self, owner: str) -> None:
        """Take one as soon as it is free."""
        turn = self._searches.turn(owner)
        await turn.__aenter__()
        self._turn = turn

    async def leave(self) -> None:
        """Give it back, if there is one."""
        if self._turn is not None:
            await self._turn.__aexit__(None, None, None)


class PostgresStore:
    """A store that is open."""

    def __init__(
        self,
        secret_key: bytes,
        address: Address,
        transactions: Transactions,
        bell: ChangeNotifier,
        now: Now | None,
    ) -> None:
        self.secret = secret_key
        self._address = address
        self._transactions = transactions
        self._lines = Turns()
        self._searches = Searches()
        self._bell = bell
        self._now = now
        self._recent = RecentSessions()
        self._listed = ListedRows()
        self._order = search.BY_NUMBER

    @asynccontextmanager
    async def ordering(self, *, make: bool) -> AsyncIterator[None]:
        """See in which order documents are. If it is not that of time, it is made so while the block runs."""
        is_done = await self._transactions.run(READ, search.is_in_order)
        if is_done:
            self._order = search.BY_TIME
        at_work = [asyncio.create_task(self._put_in_order())] if make and not is_done else []
        try:
            yield
        finally:
            await cancel_all(at_work)

    async def _put_in_order(self) -> None:
        """Batch by batch, beside everything else. What an error leaves undone, the next program to open the store does."""
        with suppress(HithertoError):
            while not await self._transactions.run(READ, search.is_in_order):
                if not await self._transactions.run(WRITE, search.put_in_order):
                    await asyncio.sleep(ORDERING_PAUSE)
            self._order = search.BY_TIME

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:
        if ahead is not None and is_foreseen(ahead):
            known = await self._transactions.run(
                ALONE, lambda tx: foreseen(tx, ahead, self._now, self._listed)
            )
            # What is damaged is for the transaction to tell: it knows rows that were written by older programs.
            with suppress(MoreIsNeeded, StoreDamaged):
                return await work(known)
        place = _Place(self._searches)

        def reading(tx: Statements) -> Awaitable[T]:
            return work(PostgresReader(tx, self._now, place.take, self._order))

        try:
            try:
                return await self._transactions.run(READ, reading)
            except NoPlace as none:  # nobody waits for it with a connection in hand
                await place.wait(none.owner)
                return await self._transactions.run(READ, reading)
        finally:
            await place.leave()

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        if about is not None:
            await stand_in_line(self._lines, about)
        try:
            result, done = await self._quickly_written(work, about)
        except NotAsLeft:
            result, done = await self._written(work, None)
        finally:
            if about is not None:
                self._lines.leave(about)
        self._recent.note(done.latest)
        self._bell.ring(done.owners)
        return result

    async def _quickly_written(
        self, work: Callable[[Writer], Awaitable[T]], about: str | None
    ) -> tuple[T, PendingRows]:
        """Sessions that are recent are taken for what they were: in one statement if that will do, else in a transaction."""
        if about is not None:
            with suppress(MoreIsNeeded):
                return await self._appended(work)
        return await self._written(work, self._recent)

    async def _appended(self, work: Callable[[Writer], Awaitable[T]]) -> tuple[T, PendingRows]:
        """Raises `MoreIsNeeded` if the work is more than an append to a session that is recent, and `NotAsLeft` likewise."""
        writer = SoleAppend(self._now, self._recent)
        try:
            result = await work(writer)
        except HithertoError as error:
            if writer.assumed:
                raise NotAsLeft from error
            raise
        values = writer.values(migrations()[-1].version)
        if not await self._transactions.run(ALONE, lambda tx: append_alone(tx, values)):
            raise NotAsLeft
        return result, writer.done()

    async def _written(
        self, work: Callable[[Writer], Awaitable[T]], recent: RecentSessions | None
    ) -> tuple[T, PendingRows]:
        """Raises `NotAsLeft` if the work has failed and had taken a session for what it was when it was `recent`."""
        assumed = False

        async def whole(tx: Statements) -> tuple[T, PendingRows]:
            nonlocal assumed
            writer = PostgresWriter(tx, self._now, recent)
            try:
                return await work(writer), await writer.settled()
            except HithertoError as error:
                if writer.assumed:
                    raise NotAsLeft from error
                raise
            finally:
                assumed = bool(writer.assumed)

        try:
            return await self._transactions.run(WRITE, whole)
        except StoreError as error:
            if assumed and isinstance(error.__cause__, errors.DivisionByZero):
                raise NotAsLeft from error
            raise

    async def wait(self, owner: str, after: str, timeout: float) -> str:  # noqa: ASYNC109 - the port's own promise
        return await self._bell.wait(lambda: self.read(lambda tx: tx.newest(owner)), owner, after, timeout)

    async def owners(self) -> list[str]:
        rows = await self._transactions.run(READ, lambda tx: tx.rows(OWNERS))
        return [row[0] for row in rows]

    async def backup(self, target: str) -> None:
        raise StoreError(
            f"a PostgreSQL store cannot be copied to {target!r}: use pg_dump, or export the sessions with `hitherto export`"
        )

    async def distribute(self) -> tuple[str, ...]:
        try:
            async with await opened(self._address.conninfo, prepare=self._address.prepare) as connection:
                return await distribute(connection)
        except psycopg.Error as error:
            raise as_hitherto_error(error) from error

    async def check(self, *, repair: bool) -> Health:
        if repair:
            await self._put_in_order()
        return await checks.check(self._transactions, repair=repair)

    async def clean(self, *, thoroughly: bool = False) -> None:
        if thoroughly:
            await self._transactions.run(WRITE, checks.forget_samples)

    async def unordered(self) -> int:
        if self._order is search.BY_TIME:
            return 0
        # Until the last one is noted, this connection searches in the earlier order.
        return max(await self._transactions.run(READ, search.unordered), 1)

    async def about(self) -> Json:
        rows = await self._transactions.run(READ, lambda tx: tx.rows(ABOUT))
        names = ("server", "database", "namespace", "schema", "bytes", "sessions")
        about = {"kind": "postgresql", **dict(zip(names, rows[0], strict=True))}
        left = await self.unordered()
        return {**about, "unordered": left} if left else about


def parse_address(url: str) -> Address:
    """An address as it is given to the store. Raises `psycopg.ProgrammingError` and `InvalidInput`."""
    place, _, query = url.partition("?")
    words = [word.partition("=") for word in query.split("&") if word]
    ours = {name: value for name, _, value in words if name in OPTIONS}
    rest = "&".join("".join(word) for word in words if word[0] not in OPTIONS)
    given = conninfo_to_dict(f"{place}?{rest}" if rest else place)
    options = {name: OPTIONS[name](value) for name, value in ours.items()}
    return Address(make_conninfo("", **{**AGAINST_SILENCE, **given}), **options)


def _checked_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PARTITIONS):
        raise InvalidInput(f"partitions is a whole number from 1 to {MOST_PARTITIONS}, not {text!a:.40}")
    return int(text)


def _checked_switch(text: str) -> bool:
    if text not in ("on", "off"):
        raise InvalidInput(f"prepare is on or off, not {text!a:.40}")
    return text == "on"


OPTIONS: Mapping[str, Callable[[str], Any]] = {"partitions": _checked_number, "prepare": _checked_switch}
"""What an address may say to the store itself, the rest being for libpq."""
