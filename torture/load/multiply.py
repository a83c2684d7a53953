"""Makes a PostgreSQL store ten times as large without sending it anything: its rows are copied with other numbers.

The words of a document name the blocks of documents among which it stands, so these are told anew; the rare word stays rare. The indexes of words
are dropped and made again, as whoever restores a large backup does.
"""

from __future__ import annotations

from typing import LiteralString

import psycopg
from psycopg import sql

from hitherto.model import LOCAL
from hitherto.stores.postgres.rows import LANES
from hitherto.stores.postgres.search import BLOCKS, TIME_BLOCKS, mark
from hitherto.values.days import DAY_MS
from torture.load.store_growth import PER_DAY, RARE

TIMES = 10
WORDS = ("entry_words", "title_words")
COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = %s ORDER BY 1
"""
SHIFT = f"copy * %(sessions)s / {PER_DAY}"
BLOCK_MARKS = ", ".join(f"%(mark)s || '{size}' || (number >> {bits})" for size, bits in BLOCKS.items())
TIME_MARKS = ", ".join(f"%(mark)s || '{size}' || (said >> {bits})" for size, bits in TIME_BLOCKS.items())
MOVED_MARKS = BLOCK_MARKS.replace("(number", "((number + copy * %(documents)s)")
SAID = f"said + {SHIFT} * {DAY_MS}"
TOLD_ANEW = f"""
ts_delete(words, ARRAY['{RARE}', {BLOCK_MARKS}, {TIME_MARKS}]) || array_to_tsvector(ARRAY[{MOVED_MARKS}])
    || moment_marks(({SAID})::bigint, %(mark)s)
"""
NUM, LOG, NUMBER = (
    f"{column} + copy * %({count})s"
    for column, count in (("num", "sessions"), ("log", "sessions"), ("number", "documents"))
)
LATER = {
    column: f"{column} + {SHIFT} * {DAY_MS}" for column in ("created_at", "updated_at", "order_at", "read_at")
}
TEXT = f"replace(convert_from(payload, 'UTF8'), ' {RARE}', '')"
AT = f"substring({TEXT} FROM '\"at\":([0-9]+)')"
SAID_LATER = f"""convert_to(
    replace({TEXT}, '"at":' || {AT}, '"at":' || ({AT}::bigint + {SHIFT} * {DAY_MS})), 'UTF8')"""
ID = "lpad((left(id, 8)::bigint + copy * %(sessions)s)::text, 8, '0') || substr(id, 9)"
COPIED: dict[str, dict[str, str]] = {
    "session": {
        **LATER,
        "num": NUM,
        "change": "change + copy * %(changes)s",
        "id": ID,
        "lane": f"get_byte(sha256(convert_to({ID}, 'UTF8')), 0) & {LANES - 1}",
    },
    "span": {"num": NUM, "log": LOG},
    "day": {"num": NUM, "day": f"day + {SHIFT}"},
    "title": {"num": NUM, "number": NUMBER, "said": SAID, "words": TOLD_ANEW},
    "entry": {"log": LOG, "number": NUMBER, "said": SAID, "words": TOLD_ANEW, "payload": SAID_LATER},
}
"""By table, the columns that are not the same in a copy."""
COUNTED: tuple[LiteralString, ...] = (
    "DELETE FROM facet",
    "INSERT INTO facet (owner, kind, value, lane, sessions)"
    " SELECT owner, kind, value, lane, sessions FROM facet_as_it_should_be",
    "DELETE FROM lane",
    "INSERT INTO lane (owner, lane, change) SELECT owner, lane, max(change) FROM session GROUP BY owner, lane",
)
"""What is counted anew."""


def multiply(url: str, sessions: int) -> None:
    """Make the store, which has so many sessions, ten times as large."""
    with psycopg.connect(url, autocommit=True, client_encoding="utf8") as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        definitions = [_value(connection, "SELECT pg_get_indexdef(%s::regclass)", (name,)) for name in WORDS]
        for name in WORDS:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        given = {
            "sessions": sessions,
            "documents": _value(connection, "SELECT last_value FROM document_number"),
            "changes": _value(connection, "SELECT max(change) FROM lane"),
            "mark": mark(LOCAL.owner),
        }
        for table, moved in COPIED.items():
            _copy(connection, table, moved, given)
        for statement in COUNTED:
            connection.execute(statement)
        for name in ("session_num", "document_number"):
            connection.execute(f"SELECT setval('{name}', (SELECT last_value FROM {name}) * {TIMES})".encode())
        for definition in definitions:
            connection.execute(str(definition).encode())
        connection.execute("VACUUM ANALYZE")


def _copy(
    connection: psycopg.Connection, table: str, moved: dict[str, str], given: dict[str, object]
) -> None:
    place = "log" if table == "entry" else "num"
    columns = [name for (name,) in connection.execute(COLUMNS, (table,))]
    # A checksum says where its row belongs: a copy has none.
    values = ", ".join(moved.get(name, "NULL" if name.endswith("crc") else name) for name in columns)
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)})"
        f" SELECT {values} FROM {table}, (SELECT %(copy)s::bigint AS copy) c WHERE {place} <= %(sessions)s"
    )
    for copy in range(
        1, TIMES
    ):  # one after the other: what is newer lies behind what is older, as in every store
        connection.execute(statement.encode(), {**given, "copy": copy})


def _value(connection: psycopg.Connection, question: str, bound: tuple[object, ...] = ()) -> object:
    row = connection.execute(question.encode(), bound).fetchone()
    assert row is not None
    return row[0]
