"""The same tables, each split by the hash of its owner: smaller indexes, and parts that can be moved and cleaned alone.

Steps of the schema are written for whole tables. Here a step is reworded, so that every table whose key is led by the
owner is made in parts. What later steps do to such a table, PostgreSQL does to its parts.
"""

from __future__ import annotations

import re

from psycopg import sql

from hitherto.errors import InvalidInput
from hitherto.stores.postgres.transactions import Connection

NAME = "partitions"
KEPT = f"SELECT value FROM store_meta WHERE name = '{NAME}'"
KEEP = f"INSERT INTO store_meta (name, value) VALUES ('{NAME}', %b)"
# An index of a part is named by PostgreSQL for its columns: an error that names it would not say which constraint was violated.
MISNAMED = """
SELECT part.relname::text, format('%s_%s', whole.relname, substring(part_table.relname FROM 'p[0-9]+$'))
FROM pg_inherits i
JOIN pg_class part ON part.oid = i.inhrelid AND part.relkind = 'i'
JOIN pg_class whole ON whole.oid = i.inhparent
JOIN pg_index x ON x.indexrelid = part.oid
JOIN pg_class part_table ON part_table.oid = x.indrelid
WHERE part.relnamespace = current_schema()::regnamespace
  AND part.relname <> format('%s_%s', whole.relname, substring(part_table.relname FROM 'p[0-9]+$'))
"""

_TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)(?: WITH \(([^)]*)\))?;$", re.MULTILINE | re.DOTALL)
_LED_BY_OWNER = re.compile(r"PRIMARY KEY \(owner\b|^ *owner .* PRIMARY KEY", re.MULTILINE)


def split(statements: str, count: int) -> str:
    """A step of the schema for a database in so many parts; as it is for 0."""
    return _TABLE.sub(lambda made: _in_parts(made, count), statements) if count else statements


def _in_parts(made: re.Match[str], count: int) -> str:
    name, body, options = made.groups()
    if not _LED_BY_OWNER.search(body):
        return made[0]
    storage = f" WITH ({options})" if options else ""
    parts = (
        f"CREATE TABLE {name}_p{number} PARTITION OF {name}"
        f" FOR VALUES WITH (MODULUS {count}, REMAINDER {number}){storage};"
        for number in range(count)
    )
    return "\n".join((f"CREATE TABLE {name} (\n{body}) PARTITION BY HASH (owner);", *parts))


async def in_force(connection: Connection, wanted: int | None, *, is_new: bool) -> int:
    """Into how many parts the tables are split. Raises `InvalidInput` if that is not what is wanted."""
    if is_new:
        return wanted or 0
    row = await (await connection.execute(KEPT)).fetchone()
    kept = int(row[0]) if row else 0
    if wanted is not None and wanted != kept:
        made = f"with {kept} partitions" if kept else "without partitions"
        raise InvalidInput(
            f"this database was created {made}, and that cannot change: leave out partitions={wanted}, or export"
            " its sessions and import them into a new database"
        )
    return kept


async def keep(connection: Connection, count: int) -> None:
    """Note for later steps into how many parts the tables are split."""
    await connection.execute(KEEP, (b"%d" % count,))


async def rename_indexes(connection: Connection) -> None:
    """Name the indexes of parts for those of the whole tables."""
    for old, new in await (await connection.execute(MISNAMED)).fetchall():
        statement = sql.SQL("ALTER INDEX {} RENAME TO {}").format(sql.Identifier(old), sql.Identifier(new))
        await connection.execute(statement)
