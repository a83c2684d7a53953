"""The store itself: opening a database, transactions, waiting for changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import psycopg

from hitherto.errors import StoreError, StoreUnavailable
from hitherto.model import Json
from hitherto.ports import Health, Now, Reader, Store, Writer
from hitherto.stores.postgres import check as checks
from hitherto.stores.postgres.errors import as_hitherto_error
from hitherto.stores.postgres.migrate import migrate, migrations, secret
from hitherto.stores.postgres.notify import ChangeNotifier
from hitherto.stores.postgres.read_tx import PostgresReader
from hitherto.stores.postgres.transactions import (
    READ,
    WRITE,
    Connection,
    Statements,
    Transactions,
    opened,
    pool,
)
from hitherto.stores.postgres.url import Address, parse_address
from hitherto.stores.postgres.write_tx import PostgresWriter

T = TypeVar("T")

ENCODING = "SELECT current_setting('server_encoding')"
# `source` is 'client' when the address itself says so: then somebody has chosen it.
CARELESS = """
SELECT 1 FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off' AND source <> 'client'
"""
OWNERS = """
SELECT owner FROM owner o WHERE EXISTS (SELECT FROM session s WHERE s.owner = o.owner) ORDER BY owner
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


@asynccontextmanager
async def connect(url: str, now: Now | None = None) -> AsyncIterator[Store]:
    """Open the store in the database that a `postgresql://` URL (or another form that libpq knows) names.

    Makes or updates its tables; the word `partitions=16` in the URL has a new database's split by owner. Raises
    `InvalidInput` if the tables are there in another number of parts, and `StoreUnavailable` if the database cannot be reached, is not in UTF-8, or loses
    commits in a crash (`synchronous_commit` is off and the URL does not say that this is wanted).
    """
    try:
        address = parse_address(url)
        key = await _prepared(address)
    except psycopg.Error as error:
        raise as_hitherto_error(error) from error
    connections = pool(address.conninfo)
    await connections.open()
    bell = ChangeNotifier(address.conninfo, connections)
    try:
        yield PostgresStore(key, Transactions(connections), bell, now)
    finally:
        await bell.close()
        await connections.close()


async def _prepared(address: Address) -> bytes:
    """Check the database and bring its tables up to date; returns the store's key."""
    async with await opened(address.conninfo) as connection:
        await _check_settings(connection)
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


class PostgresStore:
    """A store that is open."""

    def __init__(
        self, secret_key: bytes, transactions: Transactions, bell: ChangeNotifier, now: Now | None
    ) -> None:
        self.secret = secret_key
        self._transactions = transactions
        self._bell = bell
        self._now = now

    async def read(self, work: Callable[[Reader], Awaitable[T]]) -> T:
        return await self._transactions.run(READ, lambda tx: work(PostgresReader(tx, self._now)))

    async def write(self, work: Callable[[Writer], Awaitable[T]]) -> T:
        async def whole(tx: Statements) -> tuple[T, set[str]]:
            writer = PostgresWriter(tx, self._now)
            result = await work(writer)
            return result, await writer.settled()

        result, changed = await self._transactions.run(WRITE, whole)
        self._bell.ring(changed)
        return result

    async def wait(self, owner: str, after: int, timeout: float) -> int:  # noqa: ASYNC109 - the port's own promise
        return await self._bell.wait(lambda: self.read(lambda tx: tx.newest(owner)), owner, after, timeout)

    async def owners(self) -> list[str]:
        rows = await self._transactions.run(READ, lambda tx: tx.rows(OWNERS))
        return [row[0] for row in rows]

    async def backup(self, target: str) -> None:
        raise StoreError(
            f"a PostgreSQL store cannot be copied to {target!r}: use pg_dump, or export the sessions with `hitherto export`"
        )

    async def check(self, *, repair: bool) -> Health:
        return await checks.check(self._transactions, repair=repair)

    async def about(self) -> Json:
        rows = await self._transactions.run(READ, lambda tx: tx.rows(ABOUT))
        names = ("server", "database", "namespace", "schema", "bytes", "sessions")
        return {"kind": "postgresql", **dict(zip(names, rows[0], strict=True))}
