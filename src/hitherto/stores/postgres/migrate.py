"""Bringing a database to this program's schema, one numbered file after the other."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from hitherto.errors import SchemaTooNew
from hitherto.stores.postgres import partitions
from hitherto.stores.postgres.statistics import count_all_days
from hitherto.stores.postgres.transactions import UNHURRIED, Connection, Statements

# Any number will do that no other program takes; this one spells "recollec".
LOCK = "SELECT pg_advisory_xact_lock(8243104059879449955)"
IS_NEW = "SELECT to_regclass('schema_migration') IS NULL"
VERSION = "SELECT coalesce(max(version), 0) FROM schema_migration"
RECORD = "INSERT INTO schema_migration (version, name) VALUES (%s, %s)"
OLDEST_WRITER = "SELECT convert_from(value, 'UTF8')::integer FROM store_meta WHERE name = 'oldest_writer'"

ADD_SECRET = "INSERT INTO store_meta (name, value) VALUES ('secret', %b) ON CONFLICT DO NOTHING"
SECRET = "SELECT value FROM store_meta WHERE name = 'secret'"


FILLS: dict[int, Callable[[Statements], Awaitable[None]]] = {4: count_all_days}
"""What a step has to count that SQL cannot read: by its version, in the same transaction."""


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    statements: str

    def split(self, parts: int) -> Migration:
        """The same step for tables in so many parts."""
        return self._replace(statements=partitions.split(self.statements, parts))


@cache
def migrations() -> tuple[Migration, ...]:
    """All steps that this program knows, in order."""
    folder = files("hitherto.stores.postgres").joinpath("sql")
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name[:4]), name[5:-4], folder.joinpath(name).read_text(encoding="utf-8"))
        for name in found
    )


async def migrate(connection: Connection, known: Sequence[Migration], parts: int | None = None) -> int:
    """Apply what is missing, each step with its record in one transaction; returns the version of the schema.

    Tables of a new database are split into so many `parts`. Of several programs that come at once, one does it and the
    others wait. A database with more steps is left as it is. Raises `SchemaTooNew` if one of them forbids this program to
    write, and `InvalidInput` if the tables are there in another number of parts.
    """
    while True:
        async with connection.transaction():
            await connection.execute(UNHURRIED)
            await connection.execute(LOCK)
            version = await _version(connection)
            if await _oldest_writer(connection, version) > known[-1].version:
                raise SchemaTooNew(version, known[-1].version)
            count = await partitions.in_force(connection, parts, is_new=version == 0)
            missing = [step.split(count) for step in known if step.version > version]
            if not missing:
                return version
            await connection.execute(missing[0].statements)
            if count:
                await partitions.rename_indexes(connection)
            if count and version == 0:
                await partitions.keep(connection, count)
            await partitions.spread(connection)
            if missing[0].version in FILLS:
                await FILLS[missing[0].version](Statements(connection))
            await connection.execute(RECORD, (missing[0].version, missing[0].name))


async def is_new(connection: Connection) -> bool:
    """Whether the database has no tables of a store yet."""
    return bool(await _value(connection, IS_NEW))


async def secret(connection: Connection) -> bytes:
    """The store's key, made when the store is new."""
    await connection.execute(ADD_SECRET, (secrets.token_bytes(32),))
    return bytes(await _value(connection, SECRET))


def check_writer() -> str:
    """The statement that fails if this program may not write any more."""
    return f"SELECT check_writer({migrations()[-1].version})"


async def _oldest_writer(connection: Connection, version: int) -> int:
    """The oldest schema whose programs may write. A store that says nothing of it wants those of its own."""
    row = await (await connection.execute(OLDEST_WRITER)).fetchone() if version else None
    return version if row is None else int(row[0])


async def _version(connection: Connection) -> int:
    return 0 if await _value(connection, IS_NEW) else int(await _value(connection, VERSION))


async def _value(connection: Connection, question: str) -> int | bytes:
    row = await (await connection.execute(question)).fetchone()
    assert row is not None  # noqa: S101 - each of these questions has one answer
    value: int | bytes = row[0]
    return value
