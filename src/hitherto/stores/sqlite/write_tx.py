"""The writing half of a transaction."""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

import apsw
from msgspec.structs import replace

from hitherto.edits.batches import EditBatch
from hitherto.errors import AlreadyExists
from hitherto.model import Account, Checkpoint, Fact, Lease, Pending, Token, encode
from hitherto.ports import CURRENT, Memo, Now, PackedCopy, RawCopy, Record, Row, packed
from hitherto.stores.sqlite import facts as fact_rows
from hitherto.stores.sqlite import statistics, tokens
from hitherto.stores.sqlite.commit_queue import Left, Numbers
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.documents.document import Document
from hitherto.stores.sqlite.documents.waiting import Written
from hitherto.stores.sqlite.read_tx import SEQ_MASK, SqliteReader, position
from hitherto.stores.sqlite.rows import STORED, checked_columns, columns_of, crc_of, texts_of, title_words
from hitherto.stores.sqlite.search_index import SearchIndex
from hitherto.values.checksums import (
    beside_checksum,
    checksum,
    entry_checksum,
    lease_checksum,
    log_seed,
    read_checksum,
    session_place,
)
from hitherto.values.facets import Traits, count_changes, traits_of
from hitherto.values.spans import EntryPlace, Span
from hitherto.values.usage.requests import Request

MANY_HOT = 32
COST = STORED.index("cost")

NEW_OWNER = "INSERT INTO owner (name) VALUES (?)"
INSERT = f"""
INSERT INTO session (num, owner, order_at, hot, change, kind_of_change, title_number, title_words, place_crc, heard_at, heard_revision,
    {", ".join(STORED)})
VALUES (?, ?, ?, 0, {", ".join("?" * (7 + len(STORED)))})
"""
# What AUTOINCREMENT would give: its place is part of what a session is summed with.
NEXT_NUM = """
SELECT max(
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'session'), 0), coalesce((SELECT max(num) FROM session), 0)
) + 1
"""
REWRITE = f"""
UPDATE session SET order_at = ?, hot = 0, change = ?, kind_of_change = ?, heard_at = ?, heard_revision = ?,
    {", ".join(f"{name} = ?" for name in STORED)}
WHERE num = ?
"""
# Names only what an append moves: SQLite touches the indexes of every column that is named.
ADVANCE = """
UPDATE session SET
    change = ?, kind_of_change = 'append', revision = ?, updated_at = ?, active_at = ?, message_count = ?,
    token_count = ?, error_count = ?, cost = ?, bytes = ?,
    head = ?, log_tokens = ?, log_errors = ?, log_cost = ?, log_bytes = ?, crc = ?, heard_revision = ?
WHERE num = ?
"""
# Only a session that is not hot yet touches the index of hot ones.
HEAT = "UPDATE session SET hot = 1 WHERE num = ? AND hot = 0 AND order_at <> active_at"
IS_HOT = "SELECT hot FROM session WHERE num = ?"
HOT = "SELECT num FROM session INDEXED BY session_hot WHERE owner = ? AND hot = 1"
COOL_TAGS = "UPDATE tag SET order_at = (SELECT active_at FROM session WHERE num = ?1) WHERE session = ?1"
COOL = "UPDATE session SET order_at = active_at, hot = 0 WHERE num = ?"
MARK_CHANGE = "UPDATE session SET change = ?, kind_of_change = ? WHERE num = ?"
OLD_TITLE = "SELECT title_number, title_words FROM session WHERE num = ?"
NEW_TITLE = "UPDATE session SET title_number = ?, title_words = ? WHERE num = ?"
PUT_LEASE = """
UPDATE session SET lease_holder = ?, lease_fence = ?, lease_acquired = ?, lease_expires = ?, lease_crc = ?
WHERE num = ?
"""
# Only chats, and only when somebody has written.
PUT_HEARD_AT = "UPDATE session SET heard_at = ?1 WHERE num = ?2 AND heard_at IS NOT ?1"
PUT_SILENT_SINCE = "UPDATE session SET heard_at = ?, heard_revision = ? WHERE num = ?"
PUT_READ_AT = "UPDATE session SET read_at = ?, read_crc = ? WHERE num = ?"

ADD_TAG = "INSERT INTO tag (owner, tag, archived, order_at, id, session) VALUES (?, ?, ?, ?, ?, ?)"
DROP_TAGS = "DELETE FROM tag WHERE session = ?"
TRAITS = """
SELECT archived, pinned, coalesce(source, agent_id), project, source, tags FROM session WHERE num = ?
"""
COUNT_FACET = """
INSERT INTO facet (owner, kind, value, sessions) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, kind, value) DO UPDATE SET sessions = sessions + excluded.sessions
"""
DROP_FACET = "DELETE FROM facet WHERE owner = ? AND kind = ? AND value = ? AND sessions <= 0"
RESTATE = "INSERT INTO restate (session, recount) VALUES (?, ?)"
PUT_ROOT = "INSERT OR REPLACE INTO root (owner, root, project) VALUES (?, ?, ?)"

ADD_ENTRY = """
INSERT INTO entry (pos, owner, number, id, tokens, errors, cost, bytes, payload, crc, place_crc, row_crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NUMBER = "SELECT number FROM entry WHERE pos = ?"
ERASE = "UPDATE entry SET payload = ?, crc = ?, place_crc = ?, erased = 1 WHERE pos = ?"
UNINDEX = "INSERT OR IGNORE INTO unindex (number) VALUES (?)"
REMEMBER_GONE = "UPDATE newest_gone SET number = max(number, ?)"

ADD_SPAN = """
INSERT INTO span (session, name, ord, log, first, last, kind, expands, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_SPANS = "DELETE FROM span WHERE session = ? AND name = ?"
ADD_CHECKPOINT = """
INSERT INTO checkpoint (session, ord, id, at, reason, message_count, token_count, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
DROP_CHECKPOINT = "DELETE FROM checkpoint WHERE session = ? AND id = ?"
NEXT_CHECKPOINT = "SELECT coalesce(max(ord), 0) + 1 FROM checkpoint WHERE session = ?"

TO_GARBAGE = (
    "INSERT OR IGNORE INTO garbage (unreached) SELECT log FROM span WHERE session = ?1 UNION SELECT ?1"
)
BURY = """
DELETE FROM span WHERE session = :num;
DELETE FROM checkpoint WHERE session = :num;
DELETE FROM tag WHERE session = :num;
DELETE FROM live WHERE session = :num;
DELETE FROM fact WHERE owner = :owner AND session = :id;
DELETE FROM session WHERE num = :num;
INSERT OR REPLACE INTO tombstone (owner, id, session, at, change, key) VALUES (:owner, :id, :num, :at, :change, :key);
"""
PUT_ERASURE = "INSERT OR IGNORE INTO erased (owner, session, mark, at) VALUES (?, ?, ?, ?)"
UNBURY = "DELETE FROM tombstone WHERE owner = ? AND id = ?"

NEXT_GARBAGE = "SELECT unreached FROM garbage LIMIT 1"
# By the table itself, past the index `span_log`: what an index lacks must not be taken for unreached.
UNSOUND = """
SELECT EXISTS (SELECT 1 FROM known_problems) OR EXISTS (
    SELECT 1 FROM span AS p
    WHERE p.last IS NULL AND p.log <> p.session
    OR typeof(p.log) <> 'integer' OR typeof(p.first) <> 'integer' OR typeof(p.last) NOT IN ('integer', 'null')
    OR p.last >= p.first AND NOT (
        EXISTS (SELECT 1 FROM entry WHERE pos = (p.log << 24 | p.first))
        AND EXISTS (SELECT 1 FROM entry WHERE pos = (p.log << 24 | p.last))))
"""
RELEASE = "DELETE FROM quarantine WHERE log = ?"
NO_GARBAGE = "DELETE FROM garbage WHERE unreached = ?"
REACHED = "SELECT first, max(coalesce(last, 16777215)) FROM span WHERE +log = ? GROUP BY first ORDER BY first"
UNREACHED = "SELECT pos, number FROM entry WHERE pos BETWEEN ? AND ? ORDER BY pos LIMIT ?"
DROP_ENTRY = "DELETE FROM entry WHERE pos = ?"

PUT_EDITS = "INSERT OR REPLACE INTO edits (pos, owner, marks, data) VALUES (?, ?, ?, ?)"
DROP_EDITS = "DELETE FROM edits WHERE pos BETWEEN ? AND ?"
SETTLE_EDITS = "DELETE FROM edits_due WHERE log = ?"
FORGET_EDITS = """
DELETE FROM edits WHERE owner = :owner;
INSERT OR IGNORE INTO edits_due (log, owner)
SELECT p.log, :owner FROM span AS p JOIN session AS s ON s.num = p.session WHERE s.owner = :owner;
"""
PUT_MEMO = "INSERT OR REPLACE INTO memo (owner, method, key, digest, answer, at) VALUES (?, ?, ?, ?, ?, ?)"
TAKE_DUTY = """
INSERT INTO duty (name, holder, expires_at) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE duty.holder IN (excluded.holder, :heir_of) OR duty.expires_at <= :now
"""
FORGET_MEMOS = "DELETE FROM memo WHERE at < ?"
PUT_LIVE = "INSERT OR REPLACE INTO live (session, data) VALUES (?, ?)"
DROP_LIVE = "DELETE FROM live WHERE session = ?"
NEXT_PENDING = "SELECT coalesce(max(ord), 0) + 1 FROM inbox WHERE session = ?"
ADD_PENDING = "INSERT INTO inbox (session, ord, id, body, crc) VALUES (?, ?, ?, ?, ?)"
DROP_PENDING = "DELETE FROM inbox WHERE session = ? AND id = ?"
PUT_RAW_COPY = "INSERT OR REPLACE INTO raw_copy (session, name, digest, crc) VALUES (?, ?, ?, ?)"
PUT_RAW_BLOB = "INSERT OR IGNORE INTO raw_blob (digest, data) VALUES (?, ?)"
DROP_RAW_COPIES = "DELETE FROM raw_copy WHERE session = ?"
RAW_DIGESTS = "SELECT DISTINCT digest FROM raw_copy WHERE session = ?"
RAW_DIGEST = "SELECT digest FROM raw_copy WHERE session = ? AND name = ?"
DROP_RAW_BLOB = """
DELETE FROM raw_blob WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM raw_copy WHERE digest = ?1)
"""


class SqliteWriter(SqliteReader):
    """See `ports.Writer`. The documents that it makes for the search index are noted in `written`."""

    def __init__(
        self,
        db: apsw.Connection,
        index: SearchIndex,
        now: Now,
        owners: dict[str, int],
        numbers: Numbers,
        written: dict[int, Written | Document],
    ) -> None:
        # What is learned here stays here: an owner made in this transaction may yet be rolled back.
        super().__init__(db, index, now, ChainMap({}, owners))
        self._numbers = numbers
        self._written = written
        self._changed: set[int] = set()

    async def session(self, owner: str, session_id: str) -> Record | None:
        left = self._numbers.left((owner, session_id))
        return await super().session(owner, session_id) if left is None else left.record

    async def insert(self, record: Record) -> Record:
        owner = self._known_owner(record.owner)
        change = self._numbers.next_change(owner)
        text = title_words(record.session)
        title = (None, None) if text is None else (self._numbers.next_document(), text)
        self._db.execute(UNBURY, (owner, record.session.id))
        num = fetch(self._db, NEXT_NUM)[0][0]
        place = session_place(record.owner, record.session.id, num)
        made = replace(record, num=num, change=change)
        self._title_written(title[0], owner, made, text)
        values = (owner, record.order_at, change, "create", *title, place)
        self._db.execute(INSERT, (num, *values, *_heard(made), *columns_of(made)))
        self._put_tags(owner, made)
        self._count(owner, None, traits_of(made.session))
        self._let_go(made)
        return made

    async def rewrite(self, record: Record, kind: str) -> Record:
        owner = self._known_owner(record.owner)
        change = self._numbers.next_change(owner)
        self._recount(owner, record)
        moved = (record.order_at, change, kind, *_heard(record))
        self._db.execute(REWRITE, (*moved, *columns_of(record), record.num))
        self._db.execute(DROP_TAGS, (record.num,))
        self._put_tags(owner, record)
        self._put_title(record)
        self._let_go(record)
        return replace(record, change=change)

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        owner, s = self._known_owner(record.owner), record.session
        change = self._numbers.next_change(owner)
        known = self._numbers.left((record.owner, s.id))
        try:
            self._db.executemany(ADD_ENTRY, list(self._entries(owner, record, rows)))
        except apsw.ConstraintError:
            raise AlreadyExists("the session already has an entry of this id") from None
        checked = checked_columns(record)
        self._db.execute(
            ADVANCE,
            (
                change, s.revision, s.updated_at, record.order_at, s.message_count, s.token_count, s.error_count,
                checked[COST], s.bytes, record.head, *record.totals, crc_of(record.owner, checked), _heard(record)[1],
                record.num,
            ),
        )  # fmt: skip
        if record.silent_since is not None:
            self._db.execute(PUT_HEARD_AT, (record.silent_since, record.num))
        hot = (known is not None and known.hot) or self._heat(owner, record.num)
        grown = replace(record, change=change)
        self._leave(grown, hot=hot)
        return grown

    async def put_lease(self, record: Record, lease: Lease) -> None:
        crc = lease_checksum(record.owner, record.num, lease)
        bound = (lease.holder, lease.fence, lease.acquired_at, lease.expires_at, crc, record.num)
        self._db.execute(PUT_LEASE, bound)
        self._let_go(record)

    async def put_read_at(self, record: Record, at: int) -> None:
        crc = read_checksum(record.owner, record.num, at)
        self._db.execute(PUT_READ_AT, (at, crc, record.num))
        self._let_go(record)

    async def put_heard_at(self, record: Record, at: int) -> None:
        self._db.execute(PUT_SILENT_SINCE, (at, record.session.revision, record.num))
        self._let_go(record)

    async def put_silent_since(self, record: Record, at: int) -> None:
        self._db.execute(PUT_SILENT_SINCE, (at, None, record.num))
        self._let_go(record)

    async def put_spans(self, owner: str, num: int, spans: Sequence[Span], name: str = CURRENT) -> None:
        self._db.execute(DROP_SPANS, (num, name))
        size = len(spans)
        rows = [
            (num, name, order, *span, checksum(owner, num, name, order, size, *span))
            for order, span in enumerate(spans)
        ]
        self._db.executemany(ADD_SPAN, rows)

    async def put_checkpoint(
        self, owner: str, num: int, checkpoint: Checkpoint, spans: Sequence[Span]
    ) -> None:
        ((order,),) = fetch(self._db, NEXT_CHECKPOINT, (num,))
        counts = (checkpoint.message_count, checkpoint.token_count)
        row = (num, order, checkpoint.id, checkpoint.at, checkpoint.reason, *counts)
        self._db.execute(ADD_CHECKPOINT, (*row, checksum(owner, *row)))
        await self.put_spans(owner, num, spans, checkpoint.id)

    async def drop_checkpoint(self, owner: str, num: int, checkpoint: str) -> None:
        self._db.execute(DROP_CHECKPOINT, (num, checkpoint))
        await self.put_spans(owner, num, (), checkpoint)

    async def erase(self, owner: str, place: EntryPlace, payload: bytes) -> None:
        pos = position(*place)
        self._unindex([number for (number,) in fetch(self._db, NUMBER, (pos,))])
        self._db.execute(ERASE, (payload, crc32(payload), entry_checksum(owner, *place, payload), pos))

    async def bury(self, record: Record, at: int) -> None:
        self._unindex([number for number, _ in fetch(self._db, OLD_TITLE, (record.num,))])
        self._db.execute(TO_GARBAGE, (record.num,))
        self._drop_raw_copies(record.num)
        owner = self._known_owner(record.owner)
        self._count(owner, self._traits(record.num), None)
        self._db.execute(RESTATE, (record.num, False))
        bound = {
            "num": record.num,
            "owner": owner,
            "id": record.session.id,
            "key": record.session.key,
            "at": at,
            "change": self._numbers.next_change(owner),
        }
        logs = [log for (log,) in fetch(self._db, statistics.LOGS_OF, (record.num,))]
        self._db.execute(BURY, bound)
        self._let_go(record)
        statistics.drop_requests(self._db, owner, logs)

    async def collect(self, batch: int) -> int:
        removed = 0
        if not fetch(self._db, NEXT_GARBAGE) or fetch(self._db, UNSOUND)[0][0]:
            return removed
        while removed < batch and (found := fetch(self._db, NEXT_GARBAGE)):
            removed += self._collect_log(found[0][0], batch - removed)
        return removed

    async def release(self, owner: str, log: int) -> None:
        self._db.execute(RELEASE, (log,))

    async def put_memo(self, owner: str, method: str, key: str, memo: Memo) -> None:
        self._db.execute(PUT_MEMO, (self._known_owner(owner), method, key, *memo))

    async def put_erasures(self, owner: str, session_id: str, marks: Sequence[str], at: int) -> None:
        num = self._known_owner(owner)
        self._db.executemany(PUT_ERASURE, [(num, session_id, mark, at) for mark in marks])

    async def forget_memos(self, before: int) -> int:
        self._db.execute(FORGET_MEMOS, (before,))
        return self._db.changes()

    async def take_duty(self, name: str, holder: str, now: int, until: int, heir_of: str | None) -> bool:
        bound = {"name": name, "holder": holder, "now": now, "until": until, "heir_of": heir_of}
        self._db.execute(TAKE_DUTY, bound)
        return bool(self._db.changes())

    async def put_live(self, record: Record, data: bytes | None) -> None:
        if data is None:
            self._db.execute(DROP_LIVE, (record.num,))
        else:
            self._db.execute(PUT_LIVE, (record.num, data))
        self._touch(record, "live")

    async def add_pending(self, record: Record, pending: Pending) -> None:
        ((order,),) = fetch(self._db, NEXT_PENDING, (record.num,))
        row = (record.num, order, pending.id, encode(pending))
        self._db.execute(ADD_PENDING, (*row, checksum(record.owner, *row)))
        self._touch(record, "inbox")

    async def drop_pending(self, record: Record, ids: Sequence[str]) -> None:
        self._db.executemany(DROP_PENDING, [(record.num, each) for each in ids])
        self._touch(record, "inbox")

    async def put_facts(self, owner: str, facts: Sequence[Fact]) -> None:
        fact_rows.put_facts(self._db, fact_rows.Owner(self._known_owner(owner), owner), facts)

    async def forget_facts(self, owner: str, ids: Sequence[str]) -> None:
        fact_rows.forget_facts(self._db, self._known_owner(owner), ids)

    async def put_token(self, token: Token, digest: bytes) -> None:
        tokens.put_token(self._db, token, digest)

    async def note_token_use(self, token_id: str, at: int) -> None:
        tokens.note_use(self._db, token_id, at)

    async def revoke_token(self, token_id: str, at: int) -> bool:
        return tokens.revoke_token(self._db, token_id, at)

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        tokens.put_link(self._db, owner, account, canonical)

    async def drop_link(self, owner: str, account: Account) -> bool:
        return tokens.drop_link(self._db, owner, account)

    async def put_raw_copy(self, owner: str, num: int, copy: RawCopy | PackedCopy) -> None:
        data = (copy if isinstance(copy, PackedCopy) else packed(copy)).packed
        digest = hashlib.sha256(data).digest()
        before = fetch(self._db, RAW_DIGEST, (num, copy.name))
        self._db.execute(PUT_RAW_COPY, (num, copy.name, digest, checksum(owner, num, copy.name, digest)))
        self._db.execute(PUT_RAW_BLOB, (digest, data))
        self._db.executemany(DROP_RAW_BLOB, before)

    async def drop_raw_copies(self, owner: str, num: int) -> None:
        self._drop_raw_copies(num)

    async def put_edits(self, owner: str, batch: EditBatch) -> None:
        pos = position(batch.log, batch.first)
        self._db.execute(PUT_EDITS, (pos, self._known_owner(owner), batch.marks, batch.data))

    async def settle_edits(self, owner: str, log: int, batches: Sequence[EditBatch]) -> None:
        self._db.execute(DROP_EDITS, (position(log, 0), position(log, SEQ_MASK)))
        for batch in batches:
            await self.put_edits(owner, batch)
        self._db.execute(SETTLE_EDITS, (log,))

    async def forget_edits(self, owner: str) -> None:
        self._db.execute(FORGET_EDITS, {"owner": self._known_owner(owner)})

    async def put_requests(
        self, owner: str, log: int, head: int, requests: Sequence[Request], gone: Sequence[int]
    ) -> None:
        statistics.put_requests(self._db, self._known_owner(owner), log, head, requests, gone)

    async def put_session_usage(self, record: Record, body: bytes) -> None:
        self._db.execute(statistics.PUT_SESSION_USAGE, (record.num, record.session.revision, body))

    async def put_root(self, owner: str, root: str, project: str) -> None:
        self._db.execute(PUT_ROOT, (self._known_owner(owner), root, project))

    def _entries(self, owner: int, record: Record, rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
        """The values of `ADD_ENTRY`."""
        log, seed = position(record.num, 0), log_seed(record.owner, record.num)
        for row in rows:
            seq, crc = row.seq, crc32(row.payload)
            place = seed + seq
            number = self._numbers.next_document()
            beside = (number, row.entry.id, *row.totals)
            self._written[number] = Written(owner, log | seq, row.entry, len(row.payload), row.words)
            # The second is the same as `entry_checksum`, which would sum the payload again.
            yield (log | seq, owner, *beside, row.payload, crc, crc + place, beside_checksum(place, beside))

    def _collect_log(self, log: int, batch: int) -> int:
        """Remove entries of one log, which leaves the queue when none is left to remove."""
        removed, reached = 0, fetch(self._db, REACHED, (log,))
        for first, last in _gaps(reached):
            rows = fetch(self._db, UNREACHED, (position(log, first), position(log, last), batch - removed))
            self._unindex([number for _, number in rows])
            self._db.executemany(DROP_ENTRY, [(pos,) for pos, _ in rows])
            removed += len(rows)
            if removed == batch:
                break
        else:
            self._db.execute(NO_GARBAGE, (log,))
        if removed:
            self._db.execute(RESTATE, (log, True))
        if not reached:
            self._db.execute(SETTLE_EDITS, (log,))
        return removed

    def _drop_raw_copies(self, num: int) -> None:
        digests = fetch(self._db, RAW_DIGESTS, (num,))
        self._db.execute(DROP_RAW_COPIES, (num,))
        self._db.executemany(DROP_RAW_BLOB, digests)

    def _heat(self, owner: int, num: int) -> bool:
        """Mark a session as hot, unless the indexes of lists have its place; whether it is. When many are, the indexes follow."""
        self._db.execute(HEAT, (num,))
        if self._db.changes():
            hot = fetch(self._db, HOT, (owner,))
            if len(hot) > MANY_HOT:
                self._db.executemany(COOL_TAGS, hot)
                self._db.executemany(COOL, hot)
                self._numbers.let_go_all()
        return bool(fetch(self._db, IS_HOT, (num,))[0][0])

    def _leave(self, record: Record, *, hot: bool) -> None:
        """Remember a session as it is now, if all that this transaction did with it is known here and reads back the same."""
        if record.num not in self._changed and record.silent_since == record.heard_at:
            self._numbers.leave((record.owner, record.session.id), Left(record, hot))
        else:
            self._let_go(record)

    def _let_go(self, record: Record) -> None:
        """The session's row was changed in a way that a record which somebody holds may not have."""
        self._changed.add(record.num)
        self._numbers.let_go((record.owner, record.session.id))

    def _known_owner(self, owner: str) -> int:
        if not self._owner(owner):
            self._db.execute(NEW_OWNER, (owner,))
        return self._owner(owner)

    def _touch(self, record: Record, kind: str) -> None:
        """Note a change of this kind, with nothing of the session's own."""
        change = self._numbers.next_change(self._known_owner(record.owner))
        self._db.execute(MARK_CHANGE, (change, kind, record.num))
        self._let_go(record)

    def _put_tags(self, owner: int, record: Record) -> None:
        s = record.session
        rows = [(owner, tag, s.archived, record.order_at, s.id, record.num) for tag in s.tags]
        self._db.executemany(ADD_TAG, rows)

    def _traits(self, num: int) -> Traits:
        ((archived, pinned, agent, project, source, tags),) = fetch(self._db, TRAITS, (num,))
        return Traits(bool(archived), bool(pinned), agent, project, source, texts_of(tags))

    def _recount(self, owner: int, record: Record) -> None:
        """Before a session is rewritten: the numbers of what it has in common with others follow."""
        old, new = self._traits(record.num), traits_of(record.session)
        if old == new:
            return
        self._count(owner, old, new)
        if (old.agent, old.project) != (new.agent, new.project):
            self._db.execute(RESTATE, (record.num, False))

    def _count(self, owner: int, old: Traits | None, new: Traits | None) -> None:
        change = count_changes(old, new)
        self._db.executemany(COUNT_FACET, [(owner, *mark, number) for mark, number in change.items()])
        gone = [(owner, *mark) for mark, number in change.items() if number < 0]
        self._db.executemany(DROP_FACET, gone)

    def _put_title(self, record: Record) -> None:
        """A new document for a title whose words are new."""
        ((number, old),) = fetch(self._db, OLD_TITLE, (record.num,))
        text = title_words(record.session)
        if text != old:
            self._unindex([number])
            new = None if text is None else self._numbers.next_document()
            self._db.execute(NEW_TITLE, (new, text, record.num))
            self._title_written(new, self._known_owner(record.owner), record, text)

    def _title_written(self, number: int | None, owner: int, record: Record, text: str | None) -> None:
        if number is not None and text is not None:
            at = record.session.created_at
            self._written[number] = Document(number, owner, "title", -record.num, at, text)

    def _unindex(self, numbers: Sequence[int | None]) -> None:
        gone = [(number,) for number in numbers if number is not None]
        if gone:
            self._db.executemany(UNINDEX, gone)
            self._db.execute(REMEMBER_GONE, max(gone))


def _heard(record: Record) -> tuple[int | None, int | None]:
    """What is kept of when the user of a chat was last heard of."""
    return record.silent_since, None if record.heard_at is None else record.session.revision


def _gaps(reached: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The stretches of a log between these, which come in order of their beginning and may overlap."""
    start = 0
    for first, last in reached:
        if first > start:
            yield start, first - 1
        start = max(start, last + 1)
    if start <= SEQ_MASK:
        yield start, SEQ_MASK
