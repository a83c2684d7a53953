"""Reads of which it is known what they will ask: one statement fetches all of it, and the work is run on that.

What it asks beyond that raises `MoreIsNeeded`: the work is then run in a transaction, as if nothing were known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hitherto.model import Filter
from hitherto.ports import CURRENT, Ahead, FirstPage, ListKey, LogEnd, Now, Record, Scan, Totals
from hitherto.stores.postgres.one_trip.nothing_sent import MoreIsNeeded, NoStatements
from hitherto.stores.postgres.read_tx import PostgresReader, check_beside, whole_payloads, whole_spans
from hitherto.stores.postgres.rows import (
    COLUMNS,
    FIELDS,
    ID,
    LANES,
    ORDER_AT,
    OWN,
    ListedRows,
    Row,
    record_of,
    restored,
)
from hitherto.stores.postgres.transactions import Statements
from hitherto.values.positions import position_of
from hitherto.values.spans import Spans, Stretch

WIDTH = len(OWN) + len(FIELDS)
SPAN_COLUMNS = ("log", "first_seq", "last_seq", "kind", "expands", "ordinal", "crc")
ENTRY_COLUMNS = ("seq", "payload", "crc", "number IS NULL")
BESIDE_COLUMNS = (
    "seq", "id", "role", "total_tokens", "total_errors", "total_cost", "total_bytes", "row_crc",
)  # fmt: skip
_SPANS = ", ".join(f"array_agg({name}) AS p{at}" for at, name in enumerate(SPAN_COLUMNS))
_ENTRIES = ", ".join(f"array_agg({name}) AS e{at}" for at, name in enumerate(ENTRY_COLUMNS))
# The sums are asked for at both ends: at the newest entry, and before the oldest of the page.
_ENDS = "FILTER (WHERE seq = s.head OR seq = s.head - %(count)s + 1)"
_BESIDE = ", ".join(f"array_agg({name}) {_ENDS} AS b{at}" for at, name in enumerate(BESIDE_COLUMNS))
ENTRIES_AT = WIDTH + len(SPAN_COLUMNS)
BESIDE_AT = ENTRIES_AT + len(ENTRY_COLUMNS)
LOG_END = f"""
SELECT {COLUMNS}, spans.*, ending.* FROM session s
CROSS JOIN LATERAL (
    SELECT {_SPANS} FROM (SELECT * FROM span WHERE owner = %(owner)s AND num = s.num AND name = '' ORDER BY ordinal) p
) spans
CROSS JOIN LATERAL (
    SELECT {_ENTRIES}, {_BESIDE} FROM (
        SELECT * FROM entry
        WHERE owner = %(owner)s AND log = s.num AND seq <= s.head AND seq > s.head - %(count)s
            AND total_bytes >= s.total_bytes - %(bytes)s
        ORDER BY seq DESC
    ) e
) ending
WHERE s.owner = %(owner)s AND s.id = %(id)s
"""
# The newest number of each lane comes with the first row.
FIRST_PAGE = f"""
SELECT {COLUMNS}, CASE row_number() OVER () WHEN 1 THEN
    (SELECT array_agg(ARRAY[l.lane, l.change]) FROM lane l WHERE l.owner = %(owner)s) END
FROM session s WHERE s.owner = %(owner)s AND NOT s.archived ORDER BY s.order_at DESC, s.id DESC LIMIT %(limit)s
"""
MOST_ENTRIES = 500


def is_foreseen(ahead: Ahead) -> bool:
    """Whether there is a statement for all of it: not for long stretches, and not for what filters find by other indexes."""
    if isinstance(ahead, LogEnd):
        return ahead.entries <= MOST_ENTRIES
    return ahead.given in (Filter(), Filter(subagents=False)) and ahead.limit < ahead.examine


async def foreseen(
    statements: Statements, ahead: Ahead, clock: Now | None, listed: ListedRows
) -> PostgresReader:
    """What the work will ask, answered from one statement."""
    if isinstance(ahead, LogEnd):
        values = {
            "owner": ahead.owner,
            "id": ahead.session_id,
            "count": ahead.entries + 1,
            "bytes": ahead.bytes,
        }
        return LogEndReader(ahead, await statements.row(LOG_END, values), clock)
    values = {"owner": ahead.owner, "limit": ahead.limit + 1}
    return FirstPageReader(ahead, await statements.rows(FIRST_PAGE, values, as_sent=True), clock, listed)


class LogEndReader(PostgresReader):
    """Knows a session, its present spans, and the end of its own log."""

    def __init__(self, known: LogEnd, row: Row | None, clock: Now | None) -> None:
        super().__init__(NoStatements(), clock)
        self._known, self._fetched = known, row
        self._found: Record | None = None
        self._entries: list[Row] = []

    async def session(self, owner: str, session_id: str) -> Record | None:
        if (owner, session_id) != (self._known.owner, self._known.session_id):
            raise MoreIsNeeded
        if self._fetched is not None and self._found is None:
            self._found = record_of(self._fetched[:WIDTH])
            self._entries = _transposed(self._fetched[ENTRIES_AT:BESIDE_AT])
        return self._found

    async def spans(self, owner: str, num: int, name: str = CURRENT) -> Spans:
        row = self._fetched_of(owner, num)
        if name != CURRENT:
            raise MoreIsNeeded
        return whole_spans(owner, num, name, _transposed(row[WIDTH:ENTRIES_AT]))

    async def totals(self, owner: str, log: int, seq: int) -> Totals:
        row = self._fetched_of(owner, log)
        if not seq:
            return Totals()
        for at, *beside in _transposed(row[BESIDE_AT:]):
            if at == seq:
                check_beside(owner, (log, seq, *beside))
                return Totals(*beside[2:-1])
        raise MoreIsNeeded

    async def payloads(self, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
        rows: list[Row] = []
        for log, first, last, *_ in stretches:
            self._fetched_of(owner, log)
            rows += [(log, *entry) for entry in self._entries_between(first, last)]
        return whole_payloads(owner, stretches, rows)

    def _fetched_of(self, owner: str, num: int) -> Row:
        if (
            self._fetched is None
            or self._found is None
            or (owner, num) != (self._found.owner, self._found.num)
        ):
            raise MoreIsNeeded
        return self._fetched

    def _entries_between(self, first: int, last: int) -> list[Row]:
        """The entries of the log at these places; what was fetched begins with the newest."""
        head = self._found.head if self._found else 0
        part = self._entries[max(head - last, 0) : head - first + 1][::-1]
        if [entry[0] for entry in part] != list(range(first, last + 1)):
            raise MoreIsNeeded
        return part


class FirstPageReader(PostgresReader):
    """Knows the first page of an owner's list, and the newest position."""

    def __init__(self, known: FirstPage, rows: list[Row], clock: Now | None, listed: ListedRows) -> None:
        super().__init__(NoStatements(), clock)
        self._known, self._rows_found, self._listed = known, rows, listed

    async def newest(self, owner: str) -> str:
        lanes = next((row[WIDTH] for row in self._rows_found if row[WIDTH] is not None), None)
        if owner != self._known.owner or lanes is None:
            raise MoreIsNeeded
        numbers = [0] * LANES
        for lane, number in lanes:
            numbers[lane] = number
        return position_of(numbers)

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        if below is not None or FirstPage(owner, given, limit, examine) != self._known:
            raise MoreIsNeeded
        rows = self._rows_found[:limit]
        last = ListKey(rows[-1][ORDER_AT], restored(rows[-1][ID])) if rows else None
        return Scan(
            self._listed.records(row[:WIDTH] for row in rows), last, ended=len(self._rows_found) <= limit
        )


def _transposed(columns: Sequence[Any]) -> list[Row]:
    """Rows from arrays of their columns, which are NULL if there are none."""
    return [] if columns[0] is None else list(zip(*columns, strict=True))
