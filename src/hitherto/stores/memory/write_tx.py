"""Writing to the tables, every change by way of the journal."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitherto.edits.batches import EditBatch
from hitherto.errors import AlreadyExists
from hitherto.model import Account, Change, Checkpoint, Fact, Lease, Pending, Token
from hitherto.ports import CURRENT, ListKey, Memo, Now, PackedCopy, RawCopy, Record, Row, SearchKey
from hitherto.stores.memory import tokens as token_rows
from hitherto.stores.memory.read_tx import MemoryReader, apart
from hitherto.stores.memory.tables import Document, Journal, Kept, Log, OwnerTables, Tables, Tombstone
from hitherto.values import words
from hitherto.values.filters import title_text, title_tokens
from hitherto.values.positions import position_of
from hitherto.values.spans import EntryPlace, Span
from hitherto.values.usage.requests import Request


class MemoryWriter(MemoryReader):
    """A write transaction: the journal can take all of it back."""

    def __init__(self, tables: Tables, now: Now, journal: Journal) -> None:
        super().__init__(tables, now)
        self._journal = journal

    def _own(self, owner: str) -> OwnerTables:
        return self._tables.owners.setdefault(owner, OwnerTables())

    async def insert(self, record: Record) -> Record:
        own, journal, session = self._own(record.owner), self._journal, record.session
        if session.id in own.ids:
            raise AlreadyExists(f"a session {session.id!r} already exists")
        _check_key(own, session.key, None)
        if session.id in own.tombstones:
            journal.drop(own.feed, own.tombstones[session.id].change)
            journal.drop(own.tombstones, session.id)
        num = journal.next(self._tables.counters, "session")
        journal.put(own.ids, session.id, num)
        journal.put(own.logs, num, Log())
        return self._put_changed(replace(record, num=num), "create")

    async def rewrite(self, record: Record, kind: str) -> Record:
        return self._put_changed(record, kind)

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        own, journal = self._own(record.owner), self._journal
        log = own.logs[record.num]
        _check_entry_ids(log, rows)
        for row in rows:
            entry = row.entry
            tokens = words.tokens(row.searchable)
            document = Document(entry.role, record.num, EntryPlace(record.num, row.seq), tuple(tokens))
            kept = Kept(entry.id, row.payload, self._add_document(own, document, entry.at))
            journal.put(log.ids, entry.id, row.seq)
            journal.put(log.sums, row.seq, row.totals)
            journal.put(log.entries, row.seq, kept)
        return self._put_changed(record, "append")

    async def put_lease(self, record: Record, lease: Lease) -> None:
        own = self._own(record.owner)
        self._put_record(own, replace(own.sessions[record.num], lease=lease))

    async def put_read_at(self, record: Record, at: int) -> None:
        own = self._own(record.owner)
        kept = own.sessions[record.num]
        self._put_record(own, replace(kept, session=replace(kept.session, read_at=at)))

    async def put_heard_at(self, record: Record, at: int) -> None:
        own = self._own(record.owner)
        self._put_record(own, replace(own.sessions[record.num], heard_at=at))

    async def put_silent_since(self, record: Record, at: int) -> None:
        self._journal.put(self._tables.silent_since, (record.owner, record.num), at)

    async def put_spans(self, owner: str, num: int, spans: Sequence[Span], name: str = CURRENT) -> None:
        own, journal = self._own(owner), self._journal
        lists = own.spans.get(num, {})
        for span in lists.get(name, ()):
            journal.drop(own.over[span.log], (num, name))
        for span in spans:
            journal.put(own.over[span.log], (num, name), None)
        journal.put(own.spans, num, {**lists, name: tuple(spans)})

    async def put_checkpoint(
        self, owner: str, num: int, checkpoint: Checkpoint, spans: Sequence[Span]
    ) -> None:
        own = self._own(owner)
        self._journal.put(own.checkpoints, num, (*own.checkpoints.get(num, ()), checkpoint))
        await self.put_spans(owner, num, spans, checkpoint.id)

    async def drop_checkpoint(self, owner: str, num: int, checkpoint: str) -> None:
        own = self._own(owner)
        left = tuple(each for each in own.checkpoints.get(num, ()) if each.id != checkpoint)
        self._journal.put(own.checkpoints, num, left)
        await self.put_spans(owner, num, (), checkpoint)

    async def erase(self, owner: str, place: EntryPlace, payload: bytes) -> None:
        own, entries = self._own(owner), self._log(owner, place.log).entries
        kept = entries.get(place.seq)
        if kept is not None:
            self._drop_document(own, kept.document)
            self._journal.put(entries, place.seq, kept._replace(payload=payload, document=None))
            self._lose_edits(own, place.log)

    async def bury(self, record: Record, at: int) -> None:
        own, journal, num = self._own(record.owner), self._journal, record.num
        kept = own.sessions[num]
        session_id = kept.session.id
        logs = {num} | {span.log for spans in own.spans.get(num, {}).values() for span in spans}
        self._discard_spans(own, num)
        for fact in [fact for fact in own.facts.values() if fact.session == session_id]:
            journal.drop(own.facts, fact.id)
        self._unlist(own, kept)
        self._drop_document(own, own.titles.get(num))
        journal.drop(own.ids, session_id)
        journal.drop(own.sessions, num)
        self._drop_requests(own, logs)
        journal.drop(own.checkpoints, num)
        journal.drop(own.live, num)
        journal.drop(own.inbox, num)
        journal.drop(own.usage, num)
        journal.drop(own.raw_copies, num)
        journal.drop(own.titles, num)
        number = self._add_change(record.owner, session_id, kept.change, "delete", None, kept.session.key)
        journal.put(own.tombstones, session_id, Tombstone(num, at, number))

    def _drop_requests(self, own: OwnerTables, logs: set[int]) -> None:
        """Those of logs that no session has or reaches any more."""
        gone = {log for log in logs if log not in own.sessions and not own.over[log]}
        for place in [place for place in own.requests if place[0] in gone]:
            self._journal.drop(own.requests, place)
        for log in gone:
            self._journal.drop(own.counted, log)

    async def put_requests(
        self, owner: str, log: int, head: int, requests: Sequence[Request], gone: Sequence[int]
    ) -> None:
        own, journal = self._own(owner), self._journal
        if log not in own.sessions and not own.over[log]:
            return
        for request in requests:
            journal.put(own.requests, (log, request.seq), request)
        for seq in gone:
            journal.drop(own.requests, (log, seq))
        journal.put(own.counted, log, max(head, own.counted.get(log, 0)))

    async def put_session_usage(self, record: Record, body: bytes) -> None:
        own, num, revision = self._own(record.owner), record.num, record.session.revision
        if num in own.sessions and own.usage.get(num, (0, b""))[0] <= revision:
            self._journal.put(own.usage, num, (revision, body))

    async def collect(self, batch: int) -> int:
        removed = 0
        if not all(_is_sound(own) for own in self._tables.owners.values() if own.garbage):
            return removed
        for own in self._tables.owners.values():
            for log in list(own.garbage):
                removed += self._collect_log(own, log, batch - removed)
                if removed >= batch:
                    return removed
        return removed

    async def release(self, owner: str, log: int) -> None:
        """There is no quarantine."""

    async def put_erasures(self, owner: str, session_id: str, marks: Sequence[str], at: int) -> None:
        erased = self._own(owner).erased
        self._journal.put(erased, session_id, dict.fromkeys(marks, at) | erased.get(session_id, {}))

    async def take_duty(self, name: str, holder: str, now: int, until: int, heir_of: str | None) -> bool:
        held, expires = self._tables.duties.get(name, (holder, 0))
        if held not in (holder, heir_of) and expires > now:
            return False
        self._journal.put(self._tables.duties, name, (holder, until))
        return True

    async def put_memo(self, owner: str, method: str, key: str, memo: Memo) -> None:
        self._journal.put(self._own(owner).memos, (method, key), memo)

    async def forget_memos(self, before: int) -> int:
        forgotten = 0
        for own in self._tables.owners.values():
            old = [key for key, memo in own.memos.items() if memo.at < before]
            for key in old:
                self._journal.drop(own.memos, key)
            forgotten += len(old)
        return forgotten

    async def put_live(self, record: Record, data: bytes | None) -> None:
        own = self._own(record.owner)
        if data is None:
            self._journal.drop(own.live, record.num)
        else:
            self._journal.put(own.live, record.num, data)
        self._put_changed(own.sessions[record.num], "live")

    async def add_pending(self, record: Record, pending: Pending) -> None:
        own = self._own(record.owner)
        self._journal.put(own.inbox, record.num, (*own.inbox.get(record.num, ()), pending))
        self._put_changed(own.sessions[record.num], "inbox")

    async def drop_pending(self, record: Record, ids: Sequence[str]) -> None:
        own = self._own(record.owner)
        left = tuple(each for each in own.inbox.get(record.num, ()) if each.id not in ids)
        self._journal.put(own.inbox, record.num, left)
        if not left:
            self._journal.drop(own.inbox, record.num)
        self._put_changed(own.sessions[record.num], "inbox")

    async def put_facts(self, owner: str, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._journal.put(self._own(owner).facts, fact.id, fact)

    async def forget_facts(self, owner: str, ids: Sequence[str]) -> None:
        facts = self._own(owner).facts
        for fact_id in ids:
            if fact_id in facts:
                self._journal.drop(facts, fact_id)

    async def put_raw_copy(self, owner: str, num: int, copy: RawCopy | PackedCopy) -> None:
        copies = self._own(owner).raw_copies
        self._journal.put(copies, num, {**copies.get(num, {}), copy.name: RawCopy(copy.name, copy.data)})

    async def drop_raw_copies(self, owner: str, num: int) -> None:
        self._journal.drop(self._own(owner).raw_copies, num)

    async def put_edits(self, owner: str, batch: EditBatch) -> None:
        self._journal.put(self._own(owner).edits, (batch.log, batch.first), batch)

    async def settle_edits(self, owner: str, log: int, batches: Sequence[EditBatch]) -> None:
        self._lose_edits(self._own(owner), log)
        for batch in batches:
            await self.put_edits(owner, batch)
        self._journal.drop(self._own(owner).edits_due, log)

    async def forget_edits(self, owner: str) -> None:
        own = self._own(owner)
        for log in own.logs:
            self._lose_edits(own, log)

    async def put_root(self, owner: str, root: str, project: str) -> None:
        self._journal.put(self._own(owner).roots, root, project)

    async def put_token(self, token: Token, digest: bytes) -> None:
        token_rows.put_token(self._tables, self._journal, token, digest)

    async def note_token_use(self, token_id: str, at: int) -> None:
        token_rows.note_use(self._tables, self._journal, token_id, at)

    async def revoke_token(self, token_id: str, at: int) -> bool:
        return token_rows.revoke_token(self._tables, self._journal, token_id, at)

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        self._journal.put(self._own(owner).links, account, canonical)

    async def drop_link(self, owner: str, account: Account) -> bool:
        return token_rows.drop_link(self._own(owner), self._journal, account)

    def _lose_edits(self, own: OwnerTables, log: int) -> None:
        """Drop the edits of a log, which must be read again."""
        for key in [key for key in own.edits if key[0] == log]:
            self._journal.drop(own.edits, key)
        self._journal.put(own.edits_due, log, None)

    def _put_changed(self, record: Record, kind: str) -> Record:
        """Keep a record as the owner's next change; its titles become a new document if their text is new."""
        own = self._own(record.owner)
        _check_key(own, record.session.key, record.num)
        old = own.sessions.get(record.num)
        replaced = old.change if old else None
        number = self._add_change(record.owner, record.session.id, replaced, kind, record.session.revision)
        record = replace(record, change=number)
        self._put_record(own, apart(record))
        if title_text(record.session) != (title_text(old.session) if old else ""):
            self._put_titles(own, record)
        return record

    def _put_record(self, own: OwnerTables, record: Record) -> None:
        journal, key = self._journal, record.session.key
        journal.drop(self._tables.silent_since, (record.owner, record.num))
        old = own.sessions.get(record.num)
        if old is not None:
            self._unlist(own, old)
        journal.put(own.sessions, record.num, record)
        journal.put(own.order, ListKey(record.order_at, record.session.id), record.num)
        if key is not None:
            journal.put(own.keys, key, record.num)

    def _unlist(self, own: OwnerTables, record: Record) -> None:
        self._journal.drop(own.order, ListKey(record.order_at, record.session.id))
        if record.session.key is not None:
            self._journal.drop(own.keys, record.session.key)

    def _add_change(
        self,
        owner: str,
        session_id: str,
        replaced: int | None,
        kind: str,
        revision: int | None,
        key: str | None = None,
    ) -> int:
        """Put the session's newest change into the feed, in place of the one it had."""
        feed = self._own(owner).feed
        number = self._journal.next(self._tables.newest, owner)
        if replaced is not None:
            self._journal.drop(feed, replaced)
        change = Change(
            position=position_of([number]), session=session_id, kind=kind, revision=revision, key=key
        )
        self._journal.put(feed, number, change)
        return number

    def _put_titles(self, own: OwnerTables, record: Record) -> None:
        self._drop_document(own, own.titles.get(record.num))
        self._journal.drop(own.titles, record.num)
        if title_text(record.session):
            document = Document("title", record.num, None, tuple(title_tokens(record.session)))
            self._journal.put(
                own.titles, record.num, self._add_document(own, document, record.session.created_at)
            )

    def _add_document(self, own: OwnerTables, document: Document, at: int) -> SearchKey:
        key = SearchKey(words.said_at(at), self._journal.next(self._tables.counters, "document"))
        self._journal.put(own.documents, key, document)
        return key

    def _drop_document(self, own: OwnerTables, key: SearchKey | None) -> None:
        if key is not None:
            self._journal.drop(own.documents, key)

    def _discard_spans(self, own: OwnerTables, num: int) -> None:
        """Drop all span lists of a session; its own log and those that the lists name may now be garbage."""
        logs = {num}
        for name, spans in own.spans.get(num, {}).items():
            for span in spans:
                logs.add(span.log)
                self._journal.drop(own.over[span.log], (num, name))
        self._journal.drop(own.spans, num)
        for log in sorted(logs):
            self._journal.put(own.garbage, log, None)

    def _collect_log(self, own: OwnerTables, number: int, batch: int) -> int:
        """Remove entries of one log that nothing reaches; the log leaves the queue when none is left."""
        log = own.logs[number]
        spans = [span for num, name in own.over.get(number, ()) for span in own.spans[num][name]]
        unreached = [
            seq for seq in log.entries if not any(span.holds(EntryPlace(number, seq)) for span in spans)
        ]
        if unreached:
            self._lose_edits(own, number)
        for seq in unreached[:batch]:
            kept = log.entries[seq]
            self._drop_document(own, kept.document)
            self._journal.drop(log.ids, kept.id)
            self._journal.drop(log.entries, seq)
        if len(unreached) <= batch:
            self._journal.drop(own.garbage, number)
            if not spans:
                self._journal.drop(own.edits_due, number)
            if not spans and number not in own.sessions:
                self._journal.drop(own.logs, number)
        return min(len(unreached), batch)


def _check_key(own: OwnerTables, key: str | None, num: int | None) -> None:
    if key is not None and own.keys.get(key, num) != num:
        raise AlreadyExists(f"a session with the key {key!r} already exists")


def _check_entry_ids(log: Log, rows: Sequence[Row]) -> None:
    fresh: set[str] = set()
    for row in rows:
        if row.entry.id in log.ids or row.entry.id in fresh:
            raise AlreadyExists(f"the session already has an entry {row.entry.id!r}")
        fresh.add(row.entry.id)


def _is_sound(own: OwnerTables) -> bool:
    """Whether each closed span begins and ends with an entry that is there."""
    closed = (
        (span.log, seq)
        for lists in own.spans.values()
        for spans in lists.values()
        for span in spans
        if span.last is not None and span.last >= span.first
        for seq in (span.first, span.last)
    )
    return all(log in own.logs and seq in own.logs[log].entries for log, seq in closed)
