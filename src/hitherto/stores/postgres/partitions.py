"""The same tables, each split by the hash of its owner: smaller indexes, and parts that can be moved and cleaned alone. Or
spread over the nodes of Citus, likewise by owner.

Steps of the schema are written for whole tables. Here a step is reworded, so that every table whose key is led by the
owner is made in parts. What later steps do to such a table, PostgreSQL does to its parts.
"""

from __future__ import annotations

import re

from psycopg import sql

from hitherto.errors import InvalidInput, StoreError
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

LED_BY_OWNER = (
    "lane", "owner", "session", "tag", "title", "entry", "removed_sums", "span", "checkpoint", "tombstone", "garbage", "memo",
    "live", "fact", "fact_mark", "raw_copy", "identity_link", "facet", "day", "root", "quarantine", "erased",
    "edits", "edits_due", "inbox", "request", "counted", "session_usage",
)  # fmt: skip
"""The tables of owners, each before those that refer to it. Every statement on them names the owner by equality, but for a few
that only read and lock nothing. The other tables are small, and belong to the store as a whole."""

DISTRIBUTED = "distributed"
IS_DISTRIBUTED = f"SELECT true FROM store_meta WHERE name = '{DISTRIBUTED}'"
NOTE_DISTRIBUTED = f"INSERT INTO store_meta (name, value) VALUES ('{DISTRIBUTED}', 'by owner')"
HAS_CITUS = "SELECT true FROM pg_extension WHERE extname = 'citus'"
# Tables that a later step of the schema has made are not spread yet.
NOT_SPREAD = """
SELECT name FROM unnest(%s::text[]) WITH ORDINALITY AS t (name, place)
WHERE NOT EXISTS (SELECT FROM pg_dist_partition p WHERE p.logicalrelid = name::regclass) ORDER BY place
"""
SPREAD_FIRST = "SELECT create_distributed_table(%s::regclass, 'owner')"
SPREAD = f"SELECT create_distributed_table(%s::regclass, 'owner', colocate_with => '{LED_BY_OWNER[0]}')"
# Citus has no triggers on such tables. What they do for programs that know no better, the others do by themselves.
TRIGGERS = "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = ANY(%s::regclass[])"
SHUT_OUT_OLDER = "SELECT shut_out_writers((SELECT max(version) FROM schema_migration))"
# Columns by which tables are spread together have one collation.
SAME_COLLATION = """
ALTER TABLE fact_mark DROP CONSTRAINT fact_mark_owner_id_fkey,
    ALTER COLUMN owner TYPE text COLLATE "C", ALTER COLUMN mark TYPE text COLLATE "C", ALTER COLUMN id TYPE text COLLATE "C",
    ADD CONSTRAINT fact_mark_owner_id_fkey FOREIGN KEY (owner, id) REFERENCES fact (owner, id) ON DELETE CASCADE
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


async def distribute(connection: Connection) -> tuple[str, ...]:
    """Spread the tables of owners over the nodes of Citus, the rows of an owner on one node; returns their names.

    For a database without data. Programs of earlier versions can no longer write to it. What was spread stays so: a second
    time, nothing is done. Raises `InvalidInput` if there is data, or partitions, and `StoreError` without Citus.
    """
    async with connection.transaction():
        if await _is_there(connection, IS_DISTRIBUTED):
            return ()
        if await _is_there(connection, KEPT):
            raise InvalidInput(
                "a database that was created with partitions= cannot be distributed: create another without"
            )
        full = [
            name for name in LED_BY_OWNER if await _is_there(connection, f"SELECT true FROM {name} LIMIT 1")
        ]
        if full:
            raise InvalidInput(
                f"only an empty store can be distributed, and there is data in {', '.join(full)}: export its sessions"
                " (`hitherto export --all`), and import them into a new database after distributing it"
            )
        if not await _is_there(connection, HAS_CITUS):
            raise StoreError(
                "this database does not have Citus: run CREATE EXTENSION citus in it, on the coordinator"
            )
        await make_fit(connection)
        await connection.execute(NOTE_DISTRIBUTED)
        return await spread(connection)


async def make_fit(connection: Connection) -> None:
    """Change the tables, which are empty, so that they can be spread."""
    await connection.execute(SHUT_OUT_OLDER)
    for name, table in await (await connection.execute(TRIGGERS, (list(LED_BY_OWNER),))).fetchall():
        await connection.execute(
            sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(name), sql.Identifier(table))
        )
    await connection.execute(SAME_COLLATION)


async def spread(connection: Connection) -> tuple[str, ...]:
    """Spread the tables of owners that are not yet, if the store is distributed."""
    if not await _is_there(connection, IS_DISTRIBUTED):
        return ()
    rows = await (await connection.execute(NOT_SPREAD, (list(LED_BY_OWNER),))).fetchall()
    for (name,) in rows:
        await connection.execute(SPREAD_FIRST if name == LED_BY_OWNER[0] else SPREAD, (name,))
    return tuple(name for (name,) in rows)


async def _is_there(connection: Connection, question: str) -> bool:
    return await (await connection.execute(question.encode())).fetchone() is not None
