"""Writing: statements are queued, and session rows are held back to the end (see `pending_rows`)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hitherto.edits.batches import EditBatch
from hitherto.model import Account, Checkpoint, Fact, Lease, Pending, Token, encode
from hitherto.ports import CURRENT, Memo, Now, PackedCopy, RawCopy, Record, Row
from hitherto.stores.postgres import facts as fact_rows
from hitherto.stores.postgres import search, statistics, tokens
from hitherto.stores.postgres.pending_rows import Name, PendingRows
from hitherto.stores.postgres.read_tx import BY_ID, BY_NUM, PostgresReader
from hitherto.stores.postgres.rows import REVISION_BITS, record_checksum
from hitherto.stores.postgres.statistics import PUT_ROOT, add_days, recount
from hitherto.stores.postgres.transactions import Statements
from hitherto.values import words
from hitherto.values.checksums import checksum, entry_checksum, lease_checksum, read_checksum
from hitherto.values.spans import EntryPlace, Span
from hitherto.values.usage.requests import Request

# Nobody else changes the session until the end of the transaction.
LOCKED_BY_ID = f"{BY_ID} FOR UPDATE"
# Fails, by a division by zero, if the session is not as it was left. Its checksum stands for all of it but the change.
EXPECT = f"""
SELECT 1 / count(*) FROM (
    SELECT FROM session WHERE owner = %(owner)s AND id = %(id)s AND num = %(num)s AND revision = %(revision)s
        AND crc & {(1 << 32 + REVISION_BITS) - 1} = %(crc)s
        AND lease_crc IS NOT DISTINCT FROM %(lease_crc)s::bigint AND read_crc IS NOT DISTINCT FROM %(read_crc)s::bigint
    FOR UPDATE
) left_so
"""
RECENT = 256
NEXT_NUM = "SELECT nextval('session_num')"

ADD_ENTRY = """
INSERT INTO entry (owner, log, seq, id, role, number, said, total_tokens, total_errors, total_cost, total_bytes,
                   payload, words, crc, row_crc)
SELECT %(owner)s, %(log)s, %(seq)s, %(id)s, %(role)s, n, %(said)s, %(tokens)s, %(errors)s, %(cost)s, %(bytes)s,
       %(payload)b, document_words(n, %(mark)s, %(words)s), %(crc)s, %(row_crc)s
FROM nextval('document_number') n
"""
ERASE = "UPDATE entry SET payload = %b, crc = %s, number = NULL, said = NULL, words = NULL WHERE owner = %s AND log = %s AND seq = %s"

PUT_LEASE = """
UPDATE session SET lease_holder = %s, lease_fence = %s, lease_acquired_at = %s, lease_expires_at = %s,
    lease_crc = %s
WHERE owner = %s AND num = %s
"""
PUT_HEARD_AT = "UPDATE session SET heard_at = %s, heard_revision = %s WHERE owner = %s AND num = %s"
PUT_READ_AT = "UPDATE session SET read_at = %s, read_crc = %s WHERE owner = %s AND num = %s"

DROP_SPANS = "DELETE FROM span WHERE owner = %s AND num = %s AND name = %s"
ADD_SPAN = """
INSERT INTO span (owner, num, name, ordinal, log, first_seq, last_seq, kind, expands, crc)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
ADD_CHECKPOINT = """
INSERT INTO checkpoint (owner, num, id, at, reason, message_count, token_count, crc)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
DROP_CHECKPOINT = "DELETE FROM checkpoint WHERE owner = %s AND num = %s AND id = %s"

PUT_ERASURE = "INSERT INTO erased (owner, session, mark, at) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
ADD_MEMO = "INSERT INTO memo (owner, method, key, digest, answer, at) VALUES (%s, %s, %s, %b, %b, %s)"
PUT_MEMO = f"""{ADD_MEMO}
ON CONFLICT (owner, method, key) DO UPDATE SET digest = excluded.digest, answer = excluded.answer, at = excluded.at
"""
TAKE_DUTY = """
INSERT INTO duty AS d (name, holder, expires_at) VALUES (%(name)s, %(holder)s, %(until)s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE d.holder = excluded.holder OR d.holder = %(heir_of)s OR d.expires_at <= %(now)s RETURNING true
"""
OWNERS_OF_OLD_MEMOS = "SELECT DISTINCT owner FROM memo WHERE at < %s"
FORGET_MEMOS = """
WITH gone AS (DELETE FROM memo WHERE owner = %s AND at < %s RETURNING 1) SELECT count(*) FROM gone
"""
PUT_EDITS = """
INSERT INTO edits (owner, log, first, data, marks) VALUES (%s, %s, %s, %b, %b)
ON CONFLICT (owner, log, first) DO UPDATE SET data = excluded.data, marks = excluded.marks
"""
DROP_EDITS = "DELETE FROM edits WHERE owner = %s AND log = %s"
# As triggers do where there are any: a distributed store has none.
EDITS_ARE_DUE = "INSERT INTO edits_due (owner, log) VALUES (%s, %s) ON CONFLICT DO NOTHING"
SETTLE_EDITS = "DELETE FROM edits_due WHERE owner = %s AND log = %s"
FORGET_EDITS = (
    "DELETE FROM edits WHERE owner = %(owner)s",
    """
    INSERT INTO edits_due (owner, log) SELECT DISTINCT owner, log FROM span WHERE owner = %(owner)s
    ON CONFLICT DO NOTHING
    """,
)
PUT_LIVE = """
INSERT INTO live (owner, num, data) VALUES (%s, %s, %b) ON CONFLICT (owner, num) DO UPDATE SET data = excluded.data
"""
DROP_LIVE = "DELETE FROM live WHERE owner = %s AND num = %s"
NEXT_PENDING = "SELECT coalesce(max(ordinal), 0) + 1 FROM inbox WHERE owner = %s AND num = %s"
ADD_PENDING = "INSERT INTO inbox (owner, num, ordinal, id, body, crc) VALUES (%s, %s, %s, %s, %b, %s)"
DROP_PENDING = "DELETE FROM inbox WHERE owner = %s AND num = %s AND id = ANY(%s)"
PUT_RAW_COPY = """
INSERT INTO raw_copy (owner, num, name, data, digest, crc) VALUES (%s, %s, %s, %b, %b, %s)
ON CONFLICT (owner, num, name) DO UPDATE SET data = excluded.data, digest = excluded.digest, crc = excluded.crc
"""
DROP_RAW_COPIES = "DELETE FROM raw_copy WHERE owner = %s AND num = %s"

# Waits for a collector that is about to take the same log out of the queue, and puts it in again.
QUEUE_GARBAGE = """
INSERT INTO garbage AS g (owner, unreached)
SELECT %(owner)s, log FROM (
    SELECT %(num)s::bigint AS log UNION SELECT log FROM span WHERE owner = %(owner)s AND num = %(num)s
) logs ORDER BY log
ON CONFLICT (owner, unreached) DO UPDATE SET unreached = g.unreached
"""
BURY = (
    "DELETE FROM session WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM span WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM checkpoint WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM tag WHERE owner = %(owner)s AND id = %(id)s",
    "DELETE FROM title WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM day WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM live WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM inbox WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM session_usage WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM raw_copy WHERE owner = %(owner)s AND num = %(num)s",
    "DELETE FROM fact WHERE owner = %(owner)s AND session = %(id)s",
)

KNOWN_PROBLEMS = "SELECT EXISTS (SELECT FROM known_problems)"
UNSOUND = """
SELECT EXISTS (
    SELECT FROM span p WHERE p.owner = %(owner)s AND (
        p.last_seq IS NULL AND p.log <> p.num
        OR p.last_seq >= p.first_seq AND NOT (
            EXISTS (SELECT FROM entry e WHERE e.owner = %(owner)s AND e.log = p.log AND e.seq = p.first_seq)
            AND EXISTS (SELECT FROM entry e WHERE e.owner = %(owner)s AND e.log = p.log AND e.seq = p.last_seq))))
"""
RELEASE = "DELETE FROM quarantine WHERE owner = %s AND log = %s"
SOME_GARBAGE = "SELECT owner, unreached FROM garbage LIMIT 100"
# One collector for a log; the others go on to the next.
LOCK_GARBAGE = "SELECT 1 FROM garbage WHERE owner = %s AND unreached = %s FOR UPDATE SKIP LOCKED"
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
DROP_GARBAGE = "DELETE FROM garbage WHERE owner = %(owner)s AND unreached = %(log)s"


class RecentSessions:
    """The sessions that this process wrote last, as it left them."""

    def __init__(self) -> None:
        self._records: OrderedDict[Name, Record] = OrderedDict()

    def get(self, name: Name) -> Record | None:
        """A session as it was left."""
        return self._records.get(name)

    def note(self, latest: Mapping[Name, Record | None]) -> None:
        """Follow a transaction that has ended well."""
        for name, record in latest.items():
            self._records.pop(name, None)
            if record is not None:
                self._records[name] = record
        while len(self._records) > RECENT:
            self._records.popitem(last=False)


class PostgresWriter(PostgresReader):
    """A write transaction. A record that it returns still has its old change number; see `pending_rows`.

    Sessions that are `recent` are not read: a statement that travels with the others fails if one is not as it was left.
    """

    def __init__(
        self, statements: Statements, clock: Now | None, recent: RecentSessions | None = None
    ) -> None:
        super().__init__(statements, clock)
        self._recent = recent
        self._backlog = PendingRows(statements)
        self._unused_keys: set[tuple[str, str, str]] = set()
        self.assumed: dict[Name, Record] = {}
        """The sessions that were not read."""

    async def settled(self) -> PendingRows:
        """Write what was held back, and tell of it."""
        await self._settle()
        return self._backlog

    async def _settle(self) -> None:
        self._recent = None  # from here on, rows are what this transaction has made of them
        await self._backlog.write()

    async def _as_it_was_left(self, name: Name) -> Record | None:
        """A session that this process wrote last, to be locked; None if it must be read."""
        if self._recent is None:
            return None
        if name in self.assumed:
            return self._backlog.seen(self.assumed[name])
        record = self._recent.get(name)
        if record is None or name in self._backlog.latest:
            return None
        self.assumed[name] = record
        await self._statements.queue(EXPECT, left_values(record))
        return self._backlog.seen(record)

    async def session(self, owner: str, session_id: str) -> Record | None:
        if (known := await self._as_it_was_left((owner, session_id))) is not None:
            return known
        stored = await self._record(LOCKED_BY_ID, owner, session_id)
        if stored is None:
            return self._backlog.newly(owner, session_id)
        return self._backlog.seen(stored)

    async def by_num(self, owner: str, num: int) -> Record | None:
        stored = await self._record(BY_NUM, owner, num)
        held = self._backlog.held(owner, num)
        if held is None or stored is None:
            return held or stored
        return replace(held, lease=stored.lease)

    async def insert(self, record: Record) -> Record:
        num = int((await self._rows(NEXT_NUM))[0][0])
        return self._backlog.store(replace(record, num=num), "create", is_new=True)

    async def rewrite(self, record: Record, kind: str) -> Record:
        return self._backlog.store(record, kind)

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        await self._statements.queue_many(ADD_ENTRY, [entry_values(record, row) for row in rows])
        await add_days(self._statements, record.owner, record.num, [row.entry for row in rows])
        return self._backlog.store(record, "append")

    async def put_lease(self, record: Record, lease: Lease) -> None:
        terms = (lease.holder, lease.fence, lease.acquired_at, lease.expires_at)
        crc = lease_checksum(record.owner, record.num, lease)
        self._recent = None
        await self._statements.queue(PUT_LEASE, (*terms, crc, record.owner, record.num))
        self._backlog.amend(record, lambda held: replace(held, lease=lease))

    async def put_heard_at(self, record: Record, at: int) -> None:
        self._recent = None
        revision = record.session.revision
        await self._statements.queue(PUT_HEARD_AT, (at, revision, record.owner, record.num))
        self._backlog.amend(record, lambda held: replace(held, heard_at=at))

    async def put_silent_since(self, record: Record, at: int) -> None:
        self._recent = None
        await self._statements.queue(PUT_HEARD_AT, (at, None, record.owner, record.num))
        self._backlog.amend(record, lambda held: replace(held, heard_at=None))

    async def put_read_at(self, record: Record, at: int) -> None:
        self._recent = None
        await self._statements.queue(
            PUT_READ_AT, (at, read_checksum(record.owner, record.num, at), record.owner, record.num)
        )
        self._backlog.amend(record, lambda held: replace(held, session=replace(held.session, read_at=at)))

    async def put_spans(self, owner: str, num: int, spans: Sequence[Span], name: str = CURRENT) -> None:
        await self._statements.queue(DROP_SPANS, (owner, num, name))
        size = len(spans)
        values = [
            (owner, num, name, ordinal, *span, checksum(owner, num, name, ordinal, size, *span))
            for ordinal, span in enumerate(spans)
        ]
        await self._statements.queue_many(ADD_SPAN, values)

    async def put_checkpoint(
        self, owner: str, num: int, checkpoint: Checkpoint, spans: Sequence[Span]
    ) -> None:
        rest = (checkpoint.at, checkpoint.reason, checkpoint.message_count, checkpoint.token_count)
        row = (owner, num, checkpoint.id, *rest)
        await self._statements.queue(ADD_CHECKPOINT, (*row, checksum(*row)))
        await self.put_spans(owner, num, spans, checkpoint.id)

    async def drop_checkpoint(self, owner: str, num: int, checkpoint: str) -> None:
        await self._statements.queue(DROP_CHECKPOINT, (owner, num, checkpoint))
        await self.put_spans(owner, num, (), checkpoint)

    async def erase(self, owner: str, place: EntryPlace, payload: bytes) -> None:
        crc = entry_checksum(owner, *place, payload)
        await self._statements.queue(ERASE, (payload, crc, owner, *place))
        await forget_edits_of(self._statements, owner, place.log)

    async def bury(self, record: Record, at: int) -> None:
        await bury(self._statements, record)
        self._backlog.bury(record, at)

    async def collect(self, batch: int) -> int:
        return await collect(self._statements, batch)

    async def release(self, owner: str, log: int) -> None:
        await self._statements.queue(RELEASE, (owner, log))

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        memo = await super().memo(owner, method, key)
        if memo is None:
            self._unused_keys.add((owner, method, key))
        return memo

    async def put_memo(self, owner: str, method: str, key: str, memo: Memo) -> None:
        # Where the key was seen unused, a memo that has come meanwhile must not be replaced: the work runs again.
        statement = ADD_MEMO if (owner, method, key) in self._unused_keys else PUT_MEMO
        self._unused_keys.discard((owner, method, key))
        await self._statements.queue(statement, (owner, method, key, *memo))

    async def put_erasures(self, owner: str, session_id: str, marks: Sequence[str], at: int) -> None:
        await self._statements.queue_many(PUT_ERASURE, [(owner, session_id, mark, at) for mark in marks])

    async def forget_memos(self, before: int) -> int:
        owners = [row[0] for row in await self._rows(OWNERS_OF_OLD_MEMOS, before)]
        return sum([int((await self._rows(FORGET_MEMOS, owner, before))[0][0]) for owner in owners])

    async def take_duty(self, name: str, holder: str, now: int, until: int, heir_of: str | None) -> bool:
        params = {"name": name, "holder": holder, "now": now, "until": until, "heir_of": heir_of}
        return bool(await self._statements.rows(TAKE_DUTY, params))

    async def put_live(self, record: Record, data: bytes | None) -> None:
        if data is None:
            await self._statements.queue(DROP_LIVE, (record.owner, record.num))
        else:
            await self._statements.queue(PUT_LIVE, (record.owner, record.num, data))
        self._backlog.touch(record, "live")

    async def add_pending(self, record: Record, pending: Pending) -> None:
        ((order,),) = await self._rows(NEXT_PENDING, record.owner, record.num)
        row = (record.owner, record.num, order, pending.id, encode(pending))
        await self._statements.queue(ADD_PENDING, (*row, checksum(*row)))
        self._backlog.touch(record, "inbox")

    async def drop_pending(self, record: Record, ids: Sequence[str]) -> None:
        await self._statements.queue(DROP_PENDING, (record.owner, record.num, list(ids)))
        self._backlog.touch(record, "inbox")

    async def put_facts(self, owner: str, facts: Sequence[Fact]) -> None:
        await fact_rows.put_facts(self._statements, owner, facts)

    async def forget_facts(self, owner: str, ids: Sequence[str]) -> None:
        await fact_rows.forget_facts(self._statements, owner, ids)

    async def link(self, owner: str, account: Account) -> Account | None:
        await tokens.lock_links(self._statements, owner)
        return await super().link(owner, account)

    async def put_token(self, token: Token, digest: bytes) -> None:
        await tokens.put_token(self._statements, token, digest)

    async def note_token_use(self, token_id: str, at: int) -> None:
        await tokens.note_use(self._statements, token_id, at)

    async def revoke_token(self, token_id: str, at: int) -> bool:
        return await tokens.revoke_token(self._statements, token_id, at)

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        await tokens.put_link(self._statements, owner, account, canonical)

    async def drop_link(self, owner: str, account: Account) -> bool:
        return await tokens.drop_link(self._statements, owner, account)

    async def put_edits(self, owner: str, batch: EditBatch) -> None:
        await self._statements.queue(PUT_EDITS, (owner, *batch))

    async def settle_edits(self, owner: str, log: int, batches: Sequence[EditBatch]) -> None:
        await self._statements.queue(DROP_EDITS, (owner, log))
        await self._statements.queue_many(PUT_EDITS, [(owner, *batch) for batch in batches])
        await self._statements.queue(SETTLE_EDITS, (owner, log))

    async def forget_edits(self, owner: str) -> None:
        for statement in FORGET_EDITS:
            await self._statements.queue(statement, {"owner": owner})

    async def put_requests(
        self, owner: str, log: int, head: int, requests: Sequence[Request], gone: Sequence[int]
    ) -> None:
        await statistics.put_requests(self._statements, owner, log, head, requests, gone)

    async def put_session_usage(self, record: Record, body: bytes) -> None:
        bound = {
            "owner": record.owner,
            "num": record.num,
            "revision": record.session.revision,
            "body": body,
        }
        await self._statements.queue(statistics.PUT_SESSION_USAGE, bound)

    async def put_root(self, owner: str, root: str, project: str) -> None:
        await self._statements.queue(PUT_ROOT, (owner, root, project))

    async def put_raw_copy(self, owner: str, num: int, copy: RawCopy | PackedCopy) -> None:
        data = copy.data
        digest = hashlib.sha256(data).digest()
        crc = checksum(owner, num, copy.name, digest)
        await self._statements.queue(PUT_RAW_COPY, (owner, num, copy.name, data, digest, crc))

    async def drop_raw_copies(self, owner: str, num: int) -> None:
        await self._statements.queue(DROP_RAW_COPIES, (owner, num))


def left_values(record: Record) -> dict[str, Any]:
    """By what a session is known that is as it was left."""
    session, lease, place = record.session, record.lease, (record.owner, record.num)
    return {
        "owner": record.owner,
        "id": session.id,
        "num": record.num,
        "revision": session.revision,
        "crc": record_checksum(record),
        "lease_crc": None if lease is None else lease_checksum(*place, lease),
        "read_crc": read_checksum(*place, session.read_at),
    }


def entry_values(record: Record, row: Row) -> dict[str, Any]:
    """The values of `ADD_ENTRY` for an entry of the session's own log."""
    entry, totals = row.entry, row.totals
    owner, log, seq = record.owner, record.num, row.seq
    said = words.said_at(entry.at)
    found = search.vector(owner, entry.role, row.searchable)
    return {
        "crc": entry_checksum(owner, log, seq, row.payload),
        "row_crc": checksum(owner, log, seq, entry.id, entry.role, *totals),
        "owner": owner,
        "log": log,
        "seq": seq,
        "id": entry.id,
        "said": said,
        "role": entry.role,
        "tokens": totals.tokens,
        "errors": totals.errors,
        "cost": totals.cost,
        "bytes": totals.bytes,
        "payload": row.payload,
        "mark": search.mark(owner),
        "words": f"{found} {search.moment_marks(owner, said)}",
    }


async def bury(statements: Statements, record: Record) -> None:
    """Remove all rows of a session; its own log and those that its spans name may now be garbage."""
    values = {"owner": record.owner, "num": record.num, "id": record.session.id}
    for statement in (QUEUE_GARBAGE, *statistics.DROP_REQUESTS, *BURY):
        await statements.queue(statement, values)


async def collect(statements: Statements, batch: int) -> int:
    """Remove up to `batch` entries that nothing reaches; returns how many, 0 when there is nothing left."""
    removed, looked_at = 0, set[tuple[str, int]]()
    if (await statements.rows(KNOWN_PROBLEMS))[0][0]:
        return removed
    while some := [log for log in await statements.rows(SOME_GARBAGE) if log not in looked_at]:
        for owner, log in some:
            looked_at.add((owner, log))
            if removed == batch:
                return removed
            if await statements.row(LOCK_GARBAGE, (owner, log)) is None:
                continue
            if (await statements.rows(UNSOUND, {"owner": owner}))[0][0]:
                return removed
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
        await forget_edits_of(statements, owner, log)
        await recount(statements, owner, log)
    if not reached:
        await statements.queue(SETTLE_EDITS, (owner, log))
    return removed


async def forget_edits_of(statements: Statements, owner: str, log: int) -> None:
    """Nothing stays of edits in a log of which an entry was erased or removed; they are to be read again."""
    for statement in (DROP_EDITS, EDITS_ARE_DUE):
        await statements.queue(statement, (owner, log))


def gaps(reached: Iterable[tuple[int, int | None]], head: int) -> Iterator[tuple[int, int]]:
    """The ranges within 1 to `head` that none of these ranges touches; one without an end is unbounded."""
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
