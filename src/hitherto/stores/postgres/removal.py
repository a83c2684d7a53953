"""Removing: a deleted session's rows at once, the entries that nothing reaches any more in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hitherto.ports import Record
from hitherto.stores.postgres.statistics import recount
from hitherto.stores.postgres.transactions import Statements

# Waits for a collector that is about to take the same log out of the queue, and puts it in again.
QUEUE_GARBAGE = """
INSERT INTO garbage AS g (owner, log)
SELECT %(owner)s, log FROM (
    SELECT %(num)s::bigint AS log UNION SELECT log FROM span WHERE owner = %(owner)s AND num = %(num)s
) logs ORDER BY log
ON CONFLICT (owner, log) DO UPDATE SET log = g.log
"""
BURY = (
    "DELETE FROM session WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM span WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM checkpoint WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM tag WHERE owner = %(owner)s AND id = %(id)s",
    "DELETE FROM title WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM day WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM live WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM raw_copy WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM fact WHERE owner = %(owner)s AND session = %(id)s",
)

NEXT_GARBAGE = "SELECT owner, log FROM garbage LIMIT 1 FOR UPDATE SKIP LOCKED"
# In one statement, hence of one moment: an entry that is there, and that no span reaches, will never be reached
# again, because whoever makes a span over it holds the session that reaches it now.
REACHED = """
SELECT coalesce((SELECT max(seq) FROM entry WHERE owner = %(owner)s AND log = %(log)s), 0), s.first_seq, s.last_seq
FROM (SELECT 1) one LEFT JOIN span s ON s.owner = %(owner)s AND s.log = %(log)s
"""
# The sums at the end of a gap stay: whatever follows it is counted from there.
KEEP_SUMS = """
INSERT INTO removed_sums (owner, log, seq, total_tokens, total_errors, total_cost, total_bytes)
SELECT owner, log, seq, total_tokens, total_errors, total_cost, total_bytes FROM entry
WHERE owner = %(owner)s AND log = %(log)s AND seq = %(last)s
ON CONFLICT DO NOTHING
"""
REMOVE = """
WITH gone AS (
    DELETE FROM entry WHERE owner = %(owner)s AND log = %(log)s AND seq BETWEEN %(first)s AND (
        SELECT max(seq) FROM (
            SELECT seq FROM entry
            WHERE owner = %(owner)s AND log = %(log)s AND seq BETWEEN %(first)s AND %(last)s
            ORDER BY seq LIMIT %(batch)s
        ) part
    ) RETURNING 1
) SELECT count(*) FROM gone
"""
DROP_SUMS = """
DELETE FROM removed_sums r WHERE r.owner = %(owner)s AND r.log = %(log)s
    AND NOT EXISTS (SELECT FROM session s WHERE s.owner = r.owner AND s.num = r.log)
    AND NOT EXISTS (SELECT FROM span p WHERE p.owner = r.owner AND p.log = r.log)
"""
DROP_GARBAGE = "DELETE FROM garbage WHERE owner = %(owner)s AND log = %(log)s"


async def bury(statements: Statements, record: Record) -> None:
    """Remove all rows of a session; its own log and those that its spans name may now be garbage."""
    values = {"owner": record.owner, "num": record.num, "id": record.session.id}
    for statement in (QUEUE_GARBAGE, *BURY):
        await statements.queue(statement, values)


async def collect(statements: Statements, batch: int) -> int:
    """Remove up to `batch` entries that nothing reaches; returns how many, 0 when there is nothing left."""
    removed = 0
    while removed < batch and (found := await statements.row(NEXT_GARBAGE)) is not None:
        owner, log = found
        removed += await _collect_log(statements, owner, log, batch - removed)
    return removed


async def _collect_log(statements: Statements, owner: str, log: int, batch: int) -> int:
    """Remove entries of one log; it leaves the queue when none is left to remove."""
    values = {"owner": owner, "log": log}
    rows = await statements.rows(REACHED, values)
    reached = [(first, last) for _, first, last in rows if first is not None]
    removed = 0
    for first, last in gaps(reached, rows[0][0]):
        part = {**values, "first": first, "last": last, "batch": batch - removed}
        await statements.queue(KEEP_SUMS, part)
        removed += int((await statements.rows(REMOVE, part))[0][0])
        if removed == batch:
            break
    else:
        await statements.queue(DROP_SUMS, values)
        await statements.queue(DROP_GARBAGE, values)
    if removed:
        await recount(statements, owner, log)
    return removed


def gaps(reached: Iterable[tuple[int, int | None]], head: int) -> Iterator[tuple[int, int]]:
    """The ranges within 1 to `head` that none of these ranges touches; one without an end goes on for ever."""
    start = 1
    for first, last in sorted(reached, key=lambda each: each[0]):
        if start > head:
            return
        if first > start:
            yield start, min(first - 1, head)
        if last is None:
            return
        start = max(start, last + 1)
    if start <= head:
        yield start, head
