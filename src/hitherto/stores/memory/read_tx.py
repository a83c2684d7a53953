"""Reading from the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import islice

from msgspec.structs import replace

from hitherto.edits.batches import EditBatch, has_any
from hitherto.edits.reach import GENERATIONS, ReachedEdits
from hitherto.model import (
    Account,
    Change,
    Checkpoint,
    Facets,
    Fact,
    Filter,
    Json,
    Pending,
    Session,
    Token,
    encode,
)
from hitherto.ports import (
    CURRENT,
    Activity,
    InboxSize,
    KeptUsage,
    ListKey,
    Match,
    Memo,
    Now,
    QuarantinedLog,
    RawCopy,
    Record,
    Rescan,
    Scan,
    SearchKey,
    SilentChat,
    Spot,
    Totals,
)
from hitherto.stores.memory import statistics, tokens
from hitherto.stores.memory.tables import Document, Log, OwnerTables, Tables
from hitherto.values import words
from hitherto.values.facts import FactQuery, RivalQuery, marks_of, text_digest
from hitherto.values.filters import passes
from hitherto.values.keys import chat_of
from hitherto.values.positions import numbers_of, position_of
from hitherto.values.query.moments import Period
from hitherto.values.spans import EntryPlace, Spans, Stretch
from hitherto.values.usage.requests import Request, each_once
from hitherto.values.words import Term

MICROS = 1_000_000


class MemoryReader:
    """A view of the store. Nothing changes while a transaction runs, since none is ever suspended."""

    def __init__(self, tables: Tables, now: Now) -> None:
        self._tables = tables
        self._now = now

    def _own(self, owner: str) -> OwnerTables:
        return self._tables.owners.get(owner) or OwnerTables()

    def _log(self, owner: str, log: int) -> Log:
        return self._own(owner).logs.get(log) or Log()

    async def now(self) -> int:
        return self._now()

    async def session(self, owner: str, session_id: str) -> Record | None:
        own = self._own(owner)
        return _looked_up(own, own.ids.get(session_id))

    async def by_num(self, owner: str, num: int) -> Record | None:
        return _looked_up(self._own(owner), num)

    async def by_key(self, owner: str, key: str) -> Record | None:
        own = self._own(owner)
        return _looked_up(own, own.keys.get(key))

    async def with_prefix(self, owner: str, prefix: str, limit: int) -> list[str]:
        return sorted(found for found in self._own(owner).ids if found.startswith(prefix))[:limit]

    async def erasures(self, owner: str, session_id: str) -> frozenset[str]:
        return frozenset(self._own(owner).erased.get(session_id, {}))

    async def bereft(self, owner: str) -> set[str]:
        return {*self._own(owner).erased, *self._own(owner).tombstones}

    async def erased_among(self, owner: str, marks: Sequence[str]) -> set[str]:
        return {mark for known in self._own(owner).erased.values() for mark in marks if mark in known}

    async def buried(self, owner: str, session_id: str) -> bool:
        return session_id in self._own(owner).tombstones

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        own = self._own(owner)
        rows = ((key, own.sessions[num]) for key, num in own.order.falling(below))
        return await self._walked(rows, given, limit, examine)

    async def titled(self, owner: str, terms: Sequence[Term], limit: int) -> list[Record] | None:
        own = self._own(owner)
        found = [
            apart(own.sessions[num])
            for num, number in own.titles.items()
            if _has_all(own.documents[number], terms)
        ]
        return None if len(found) > limit else found

    async def changed(self, owner: str, given: Filter, after: str, limit: int, examine: int) -> Rescan:
        own = self._own(owner)
        (known,) = numbers_of(after, 1)
        rows = (
            (ListKey(number, change.session), own.sessions[own.ids[change.session]])
            for number, change in own.feed.rising(known)
            if change.session in own.ids
        )
        found = await self._walked(rows, given, limit, examine)
        return Rescan(found.records, position_of([found.last.order_at if found.last else known]), found.ended)

    async def count(self, owner: str, given: Filter) -> int:
        records = list(self._own(owner).sessions.values())
        return sum([await self._passes(record, given) for record in records])

    async def spans(self, owner: str, num: int, name: str = CURRENT) -> Spans:
        return self._own(owner).spans.get(num, {}).get(name, ())

    async def span_lists(self, owner: str, num: int) -> dict[str, Spans]:
        return {name: spans for name, spans in self._own(owner).spans.get(num, {}).items() if spans}

    async def checkpoints(self, owner: str, num: int) -> list[Checkpoint]:
        return list(self._own(owner).checkpoints.get(num, ()))

    async def payloads(self, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
        found: list[bytes] = []
        for stretch in stretches:
            entries = self._log(owner, stretch.log).entries
            wanted = range(stretch.first, stretch.last + 1)
            found.extend(entries[seq].payload for seq in wanted if seq in entries)
        return found

    async def totals(self, owner: str, log: int, seq: int) -> Totals:
        return self._log(owner, log).sums.get(seq, Totals())

    async def locate(self, owner: str, logs: Sequence[int], entry_id: str) -> list[EntryPlace]:
        found = ((log, self._log(owner, log).ids.get(entry_id)) for log in dict.fromkeys(logs))
        return [EntryPlace(log, seq) for log, seq in found if seq is not None]

    async def reaching(self, owner: str, log: int) -> list[int]:
        return sorted({num for num, _ in self._own(owner).over.get(log, ())})

    async def matches(
        self,
        owner: str,
        terms: Sequence[Term],
        kind: str | None,
        before: SearchKey | None,
        limit: int,
        *,
        every: bool = True,
        without: Sequence[Term] = (),
        during: Period | None = None,
    ) -> list[Match]:
        found = (
            Match(*key, document.num, document.place.seq if document.place else 0)
            for key, document in self._own(owner).documents.falling(before)
            if kind in (None, document.kind)
            and (during is None or words.said_at(during.after) <= key.at <= words.said_at(during.before))
            and _has(document, terms, every=every)
            and not _has_any(document, without)
        )
        return list(islice(found, limit))

    async def unindexed(self) -> int:
        return 0

    async def within(
        self,
        owner: str,
        stretch: Stretch,
        terms: Sequence[Term],
        role: str | None,
        limit: int,
        *,
        backwards: bool = False,
        without: Sequence[Term] = (),
    ) -> list[Spot]:
        entries, documents = self._log(owner, stretch.log).entries, self._own(owner).documents
        seqs = range(stretch.first, stretch.last + 1)
        found = (
            Spot(seq, entry.id)
            for seq in (reversed(seqs) if backwards else seqs)
            if (entry := entries.get(seq)) is not None
            and entry.document is not None
            and role in (None, (document := documents[entry.document]).kind)
            and _has_all(document, terms)
            and not _has_any(document, without)
        )
        return list(islice(found, limit))

    async def children(self, owner: str, session_id: str) -> list[Record]:
        own = self._own(owner)
        found = [record for record in own.sessions.values() if record.session.parent == session_id]
        return [apart(record) for record in sorted(found, key=_age)]

    async def edits(self, owner: str, logs: Sequence[int]) -> list[EditBatch]:
        wanted = set(logs)
        return [batch for key, batch in sorted(self._own(owner).edits.items()) if key[0] in wanted]

    async def edits_marked(
        self, owner: str, wanted: frozenset[int], log: int | None = None
    ) -> list[EditBatch]:
        batches = sorted(self._own(owner).edits.items())
        return [batch for key, batch in batches if log in (None, key[0]) and has_any(batch.marks, wanted)]

    async def edits_reached(self, owner: str, ids: Sequence[str]) -> ReachedEdits:
        own = self._own(owner)
        below: dict[str, list[Record]] = {}
        for record in own.sessions.values():
            if record.session.parent is not None and record.session.source is not None:
                below.setdefault(record.session.parent, []).append(record)
        spans: dict[str, dict[int, dict[str, Spans]]] = {}
        for each in (each for each in ids if each in own.ids):
            family = newest = [own.sessions[own.ids[each]]]
            for _ in range(GENERATIONS):
                newest = [child for record in newest for child in below.get(record.session.id, ())]
                family = [*family, *newest]
            spans[each] = {record.num: own.spans.get(record.num, {}) for record in family}
        held = (lists for named in spans.values() for lists in named.values())
        logs = {span.log for lists in held for some in lists.values() for span in some}
        return ReachedEdits(spans, await self.edits(owner, sorted(logs)))

    async def edits_due(self, owner: str, limit: int) -> list[int]:
        return sorted(self._own(owner).edits_due)[:limit]

    async def changes(self, owner: str, after: str, limit: int) -> list[Change]:
        (known,) = numbers_of(after, 1)
        return [change for _, change in islice(self._own(owner).feed.rising(known), limit)]

    async def newest(self, owner: str) -> str:
        return position_of([self._tables.newest.get(owner, 0)])

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        return self._own(owner).memos.get((method, key))

    async def live(self, owner: str, num: int) -> bytes | None:
        return self._own(owner).live.get(num)

    async def inbox(self, owner: str, num: int) -> list[Pending]:
        return list(deepcopy(self._own(owner).inbox.get(num, ())))

    async def inbox_size(self, owner: str, num: int) -> InboxSize:
        waiting = self._own(owner).inbox.get(num, ())
        return InboxSize(len(waiting), sum(len(encode(each)) for each in waiting))

    async def inboxes(self) -> list[tuple[str, str]]:
        return sorted(
            (owner, own.sessions[num].session.id)
            for owner, own in self._tables.owners.items()
            for num in own.inbox
        )

    async def running(self) -> list[tuple[str, str]]:
        return sorted(
            (owner, record.session.id)
            for owner, own in self._tables.owners.items()
            for record in own.sessions.values()
            if record.session.status in ("running", "waiting")
        )

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        facts = self._own(owner).facts.values()
        wanted = [fact for fact in facts if session_id is None or fact.session == session_id]
        return sorted(wanted, key=lambda fact: (fact.at, fact.id), reverse=True)

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        known = self._own(owner).facts
        found = (
            fact
            for fact in await self.facts(owner, wanted.session)
            if wanted.agent_id in (None, fact.agent_id)
            and wanted.identity_id in (None, fact.identity_id)
            and not (wanted.nobody and fact.identity_id is not None)
            and fact.invalidated_by not in known
            and (wanted.mark is None or wanted.mark in marks_of(fact))
        )
        return list(islice(found, wanted.offset, wanted.offset + wanted.limit))

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        known = self._own(owner).facts
        return [
            fact if fact.invalidated_by in known else replace(fact, invalidated_by=None)
            for fact in known.values()
            if (fact.agent_id, fact.identity_id) == (wanted.agent_id, wanted.identity_id)
            and (text_digest(fact.text) in wanted.said or fact.subject in wanted.subjects)
        ]

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        known = self._own(owner).facts
        found = {fact_id: known[fact_id]} if fact_id in known else {}
        waiting = list(found)
        while waiting:
            outdone = waiting.pop()
            older = {fact.id: fact for fact in known.values() if fact.invalidated_by == outdone}
            waiting += older.keys() - found.keys()
            found |= older
        return list(found.values())

    async def raw_copies(self, owner: str, num: int) -> list[RawCopy]:
        return sorted(self._own(owner).raw_copies.get(num, {}).values())

    async def raw_sizes(self, owner: str) -> list[tuple[str, int]]:
        own = self._own(owner)
        kept = [(own.sessions[num].session, copies) for num, copies in own.raw_copies.items() if copies]
        newest = sorted(kept, key=lambda each: (each[0].updated_at, each[0].id), reverse=True)
        return [(session.id, sum(len(copy.data) for copy in copies.values())) for session, copies in newest]

    async def quarantined(self) -> list[QuarantinedLog]:
        return []  # a log goes with its last session

    async def stats(self, owner: str) -> Json:
        own = self._own(owner)
        sessions = [record.session for record in own.sessions.values()]
        once = each_once(own.requests.values(), {log: (0, "") for log, _ in own.requests})
        cost = _known(each.cost for each in once if each.reported and each.cost)
        return {
            "sessions": len(sessions),
            "archived": sum(each.archived for each in sessions),
            "pinned": sum(each.pinned for each in sessions),
            "messages": sum(each.message_count for each in sessions),
            "tokens": _known(each.token_count for each in sessions),
            "bytes": sum(each.bytes for each in sessions),
            "cost": None if cost is None else cost / MICROS,
            "errors": sum(each.error_count for each in sessions),
            "by_source": _census(sessions, "source"),
            "by_agent": _census(sessions, "agent_id"),
            "oldest": min((each.created_at for each in sessions), default=None),
            "newest": max((each.updated_at for each in sessions), default=None),
            "facts": len(own.facts),
            "checkpoints": sum(map(len, own.checkpoints.values())),
        }

    async def facets(self, owner: str) -> Facets:
        return statistics.list_facets(self._own(owner))

    async def spoken(self, owner: str, day: str, nums: Sequence[int]) -> set[int]:
        return statistics.active_sessions(self._own(owner), day, nums)

    async def activity(self, owner: str, first: int, last: int, most: int) -> Activity:
        return statistics.activity(self._own(owner), first, last, most)

    async def log_after(self, owner: str, log: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
        entries = self._log(owner, log).entries
        return [(place, entries[place].payload) for place in sorted(entries) if place > seq][:limit]

    async def counted(self, owner: str, logs: Sequence[int]) -> dict[int, int]:
        known = self._own(owner).counted
        return {log: known[log] for log in logs if log in known}

    async def requests(
        self, owner: str, since: int, until: int, logs: Sequence[int] | None = None
    ) -> list[Request]:
        kept = sorted(self._own(owner).requests.values())
        return [each for each in kept if since <= each.at < until and (logs is None or each.log in logs)]

    async def session_usage(self, owner: str, ids: Sequence[str]) -> dict[str, KeptUsage]:
        own = self._own(owner)
        found = {each: own.sessions[own.ids[each]] for each in ids if each in own.ids}
        return {
            each: KeptUsage(
                record.session.revision,
                max(record.head, record.session.message_count),
                *own.usage.get(record.num, ()),
            )
            for each, record in found.items()
        }

    async def projects(self, owner: str) -> list[str]:
        return statistics.list_projects(self._own(owner))

    async def placeless(self, owner: str, limit: int) -> list[str]:
        return statistics.folders_without_project(self._own(owner), limit)

    async def rooted(self, owner: str, root: str) -> str | None:
        return self._own(owner).roots.get(root)

    async def roots(self, owner: str, project: str) -> list[str]:
        return statistics.roots_of_project(self._own(owner), project)

    async def token(self, digest: bytes) -> Token | None:
        return self._tables.tokens.get(digest)

    async def tokens(self, owner: str | None) -> list[Token]:
        return tokens.list_tokens(self._tables, owner)

    async def chats(self) -> list[str]:
        return sorted({_chat(record) for record in self._chats(None)})

    async def silent(
        self, owner: str | None, chat: str, before: int, after: SilentChat | None, limit: int
    ) -> list[SilentChat]:
        found = [
            SilentChat(self._silent_since(record), record.owner, record.session.id, apart(record))
            for record in self._chats(owner)
            if self._silent_since(record) < before and _chat(record) == chat
        ]
        found.sort(key=lambda each: each[:3])
        return [each for each in found if after is None or each[:3] > after[:3]][:limit]

    def _silent_since(self, record: Record) -> int:
        """A hint goes for what nothing else is known of."""
        return record.silent_since or self._tables.silent_since.get((record.owner, record.num), 0)

    def _chats(self, owner: str | None) -> list[Record]:
        """The chats of an owner, or of all, that may start anew."""
        owners = self._tables.owners.values() if owner is None else [self._own(owner)]
        found = (record for own in owners for record in own.sessions.values())
        return [record for record in found if record.silent_since is not None]

    async def duty(self, name: str) -> str | None:
        holder, _ = self._tables.duties.get(name, (None, 0))
        return holder

    async def access(self) -> int:
        return tokens.count_changed(self._tables)

    async def link(self, owner: str, account: Account) -> Account | None:
        return self._own(owner).links.get(account)

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        return tokens.list_linked(self._own(owner), account)

    async def _walked(
        self, rows: Iterator[tuple[ListKey, Record]], given: Filter, limit: int, examine: int
    ) -> Scan:
        """The records that pass, until there are enough of them or enough was looked at."""
        records: list[Record] = []
        last: ListKey | None = None
        for looked, (key, record) in enumerate(rows):
            if len(records) >= limit or looked >= examine:
                return Scan(records, last, ended=False)
            last = key
            if await self._passes(record, given):
                records.append(apart(record))
        return Scan(records, last, ended=True)

    async def _passes(self, record: Record, given: Filter) -> bool:
        if not passes(record.session, given):
            return False
        return given.day is None or bool(await self.spoken(record.owner, given.day, [record.num]))


def _age(record: Record) -> tuple[int, str]:
    return record.session.created_at, record.session.id


def _chat(record: Record) -> str:
    return chat_of(record.session.key or "", record.session.channel)


def _looked_up(own: OwnerTables, num: int | None) -> Record | None:
    found = None if num is None else own.sessions.get(num)
    return None if found is None else apart(found)


def apart(record: Record) -> Record:
    """The record with metadata of its own: whoever changes it there changes nothing here."""
    meta = record.session.meta
    return replace(record, session=replace(record.session, meta=deepcopy(meta))) if meta else record


def _has(document: Document, terms: Sequence[Term], *, every: bool) -> bool:
    if every:
        return _has_all(document, terms)
    return _has_any(document, terms)


def _has_any(document: Document, terms: Sequence[Term]) -> bool:
    return any(_has_all(document, (term,)) for term in terms)


def _has_all(document: Document, terms: Sequence[Term]) -> bool:
    return words.matches(terms, document.tokens)


def _known(numbers: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _census(sessions: Iterable[Session], attribute: str) -> dict[str, int]:
    names = (getattr(session, attribute) for session in sessions)
    return dict(sorted(Counter(name for name in names if name is not None).items()))
