"""One entry for a session that is as this process left it: one statement, which looks and writes.

Everything else that an append can be, such as the first one, which gives a title, is done in a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from hitherto.ids import now_ms
from hitherto.ports import InboxSize, Now, Record, Row
from hitherto.stores.postgres.one_trip.nothing_sent import MoreIsNeeded, NoStatements
from hitherto.stores.postgres.pending_rows import PendingRows
from hitherto.stores.postgres.rows import lane_of, record_checksum
from hitherto.stores.postgres.transactions import Statements
from hitherto.stores.postgres.write_tx import PostgresWriter, RecentSessions, entry_values, left_values
from hitherto.values.days import tallies

ARGUMENTS = 41
_PAYLOAD = 31
# Their order is that of the function, of migration 17.
APPEND = f"SELECT append_entry({', '.join(['%s'] * _PAYLOAD + ['%b'] + ['%s'] * (ARGUMENTS - _PAYLOAD - 1))})"

GROWING = ("revision", "updated_at", "message_count", "token_count", "error_count", "cost", "bytes")
"""What an entry changes in a session; the statement writes nothing else."""


class SoleAppend(PostgresWriter):
    """A write that sends nothing: it takes a session for what it was left as, and notes the entry that is to be appended.

    Whatever else is asked of it raises `MoreIsNeeded`.
    """

    def __init__(self, clock: Now | None, recent: RecentSessions) -> None:
        super().__init__(NoStatements(), clock, recent)
        self._entry: Row | None = None
        self._assumed_now: int | None = None
        self._assumes_no_inbox = False

    async def now(self) -> int:
        """About: the statement sees to it that by the store's own clock the lease is over, or not, all the same."""
        if self._clock is not None:
            return self._clock()
        self._assumed_now = self._assumed_now or now_ms()
        return self._assumed_now

    async def inbox_size(self, owner: str, num: int) -> InboxSize:
        """Nothing: the statement looks."""
        self._assumes_no_inbox = True
        return InboxSize(0, 0)

    async def session(self, owner: str, session_id: str) -> Record | None:
        name = (owner, session_id)
        record = self.assumed.get(name) or (self._recent.get(name) if self._recent else None)
        if record is None or len(self.assumed.keys() | {name}) > 1:
            raise MoreIsNeeded
        self.assumed[name] = record
        return self._backlog.seen(record)

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        # A form that takes the place of an earlier one (`~2`) takes away what that one has added to its day.
        if self._entry is not None or len(rows) != 1 or "~" in rows[0].entry.id:
            raise MoreIsNeeded
        self._entry = rows[0]
        return self._backlog.store(record, "append")

    def values(self, writer: int) -> tuple[Any, ...]:
        """What `APPEND` is given, by a program of this schema. Raises `MoreIsNeeded` if the work did anything else."""
        held = self._backlog.only()
        if self._entry is None or held is None or held.kind != "append":
            raise MoreIsNeeded
        (left,) = self.assumed.values()
        grown = held.record
        growth = {name: getattr(grown.session, name) for name in GROWING}
        if (left.owner, left.num) != (grown.owner, grown.num) or replace(
            left.session, **growth
        ) != grown.session:
            raise MoreIsNeeded
        assumed = (self._assumed_now, self._assumes_no_inbox)
        return (writer, *_left(left), *assumed, *_grown(grown), *_entry(grown, self._entry))

    def done(self) -> PendingRows:
        """What there is to tell when it was written."""
        self._backlog.owners.update(owner for owner, _ in self.assumed)
        return self._backlog


def _left(record: Record) -> tuple[Any, ...]:
    """By what the session is known."""
    left = left_values(record)
    place = (left["owner"], left["id"], left["num"], lane_of(left["id"]))
    return (*place, left["revision"], left["crc"], left["lease_crc"], left["read_crc"])


def _grown(record: Record) -> tuple[Any, ...]:
    """What becomes of it."""
    session = record.session
    return (
        session.revision,
        session.updated_at,
        record.order_at,
        record.head,
        *record.totals,
        session.message_count,
        session.token_count,
        session.error_count,
        session.cost,
        session.bytes,
        record.silent_since,
        None if record.heard_at is None else session.revision,
        record_checksum(record),
        bool(session.tags),
    )


def _entry(record: Record, row: Row) -> tuple[Any, ...]:
    """The entry, and what it adds to its day."""
    entry = entry_values(record, row)
    ((said, tally),) = tallies([row.entry], {}).items()
    names = ("id", "role", "said", "payload", "mark", "words", "crc", "row_crc")
    return (*[entry[name] for name in names], *said, *tally)


async def append_alone(statements: Statements, values: tuple[Any, ...]) -> bool:
    """Append, unless the session is not as it was left: False then, and nothing is written."""
    return bool((await statements.once(APPEND, values))[0][0])
