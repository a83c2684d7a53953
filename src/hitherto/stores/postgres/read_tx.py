"""Reading: every statement names the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import chain, groupby
from operator import itemgetter
from zlib import crc32

import msgspec
from msgspec import MsgspecError

from hitherto.edits.batches import EditBatch, has_any
from hitherto.edits.reach import GENERATIONS, ReachedEdits, reached_edits
from hitherto.errors import StoreDamaged
from hitherto.model import (
    Account,
    Change,
    Checkpoint,
    Facets,
    Fact,
    Filter,
    Json,
    Pending,
    Token,
    decode_entry,
    decode_json,
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
from hitherto.stores.postgres import facts, list_query, search, statistics, tokens
from hitherto.stores.postgres.list_query import Walk
from hitherto.stores.postgres.rows import (
    CHANGE,
    COLUMNS,
    FIELDS,
    HEARD_AT,
    ID,
    LANES,
    NUM,
    ORDER_AT,
    OWN,
    OWNER,
    Row,
    lane_of,
    record_of,
    whole_records,
)
from hitherto.stores.postgres.search import Search
from hitherto.stores.postgres.transactions import ANY_PLAN, Statements
from hitherto.values import words
from hitherto.values.checksums import checksum, entry_checksums, entry_seeds
from hitherto.values.facts import FactQuery, RivalQuery
from hitherto.values.filters import passes, text_terms
from hitherto.values.positions import numbers_of, position_of
from hitherto.values.query.moments import Period
from hitherto.values.spans import EntryPlace, Span, Spans, Stretch
from hitherto.values.usage.requests import Request
from hitherto.values.words import Term

FEW_ON_A_DAY = 2_000
"""So many sessions of a day are put in order for each page; a day with more is looked for along the list."""

CHANGED_AT_ONCE = 500
"""So many sessions are looked at for a page of what changed during a walk."""

CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
SESSION = f"SELECT {COLUMNS} FROM session WHERE owner = %s"
BY_ID = f"{SESSION} AND id = %s"
BY_NUM = f"{SESSION} AND num = %s"
BY_KEY = f"{SESSION} AND key = %s"
CHILDREN = f"{SESSION} AND parent = %s ORDER BY created_at, id"
# A list is walked to its end otherwise: the second bound is above every id that begins so.
WITH_PREFIX = """
SELECT id FROM session
WHERE owner = %(owner)s AND id >= %(prefix)s AND id < %(beyond)s AND starts_with(id, %(prefix)s)
ORDER BY id LIMIT %(limit)s
"""
ERASURES = "SELECT mark FROM erased WHERE owner = %s AND session = %s"
BEREFT = "SELECT session FROM erased WHERE owner = %(owner)s UNION SELECT id FROM tombstone WHERE owner = %(owner)s"
ERASED_AMONG = "SELECT DISTINCT mark FROM erased WHERE owner = %s AND mark = ANY(%s)"
BURIED = "SELECT 1 FROM tombstone WHERE owner = %s AND id = %s"
BY_NUMS = f"{SESSION} AND num = ANY(%s::bigint[])"

EDITS = """
SELECT log, first, data, marks FROM edits WHERE owner = %s AND log = ANY (%s::bigint[]) ORDER BY log, first
"""
# The spans of the sessions and their subagents, then the edits of the logs that these are of.
EDITS_REACHED = """
WITH RECURSIVE family (top, num, id, depth) AS (
    SELECT id, num, id, 0 FROM session WHERE owner = %(owner)s AND id = ANY (%(ids)s::text[])
    UNION
    SELECT f.top, c.num, c.id, f.depth + 1 FROM family AS f
    JOIN session AS c ON c.owner = %(owner)s AND c.parent = f.id AND c.source IS NOT NULL
    WHERE f.depth < %(generations)s
), reached AS MATERIALIZED (
    SELECT f.top, f.num, p.name, p.ordinal, p.log, p.first_seq, p.last_seq, p.kind, p.expands
    FROM family AS f JOIN span AS p ON p.owner = %(owner)s AND p.num = f.num
)
SELECT top, num, name, ordinal, log, first_seq, last_seq, kind, expands, NULL::bytea FROM reached
UNION ALL
SELECT NULL, NULL, NULL, NULL, e.log, e.first, NULL, NULL, NULL, e.data
FROM (SELECT DISTINCT log FROM reached) AS r JOIN edits AS e ON e.owner = %(owner)s AND e.log = r.log
"""
EDITS_AT_ONCE = 2_000
# The marks of all are looked at, some thousand batches at a time; the data only of those that have one.
EDIT_MARKS = """
SELECT log, first, marks FROM edits
WHERE owner = %(owner)s AND (log, first) > (%(after)s, %(at)s) AND (%(log)s::bigint IS NULL OR log = %(log)s)
ORDER BY log, first LIMIT %(limit)s
"""
EDIT_DATA = "SELECT data FROM edits WHERE owner = %s AND log = %s AND first = %s"
EDITS_DUE = "SELECT log FROM edits_due WHERE owner = %s ORDER BY log LIMIT %s"

SPANS = """
SELECT log, first_seq, last_seq, kind, expands, ordinal, crc FROM span WHERE owner = %s AND num = %s AND name = %s ORDER BY ordinal
"""
SPAN_LISTS = """
SELECT name, log, first_seq, last_seq, kind, expands, ordinal, crc FROM span WHERE owner = %s AND num = %s ORDER BY name, ordinal
"""
CHECKPOINTS = """
SELECT id, at, reason, message_count, token_count, crc FROM checkpoint WHERE owner = %s AND num = %s ORDER BY made
"""
# Not sorted here: the server would have to hold all payloads for it.
PAYLOADS = """
SELECT s.ordinal, e.seq, e.payload, e.crc, e.erased
FROM unnest(%(logs)s::bigint[], %(firsts)s::bigint[], %(lasts)s::bigint[]) WITH ORDINALITY
     AS s (log, first_seq, last_seq, ordinal)
CROSS JOIN LATERAL (
    SELECT seq, payload, crc, number IS NULL AS erased FROM entry
    WHERE owner = %(owner)s AND log = s.log AND seq BETWEEN s.first_seq AND s.last_seq ORDER BY seq
) e
"""
TOTALS = """
SELECT log, seq, id, role, total_tokens, total_errors, total_cost, total_bytes, row_crc FROM entry
WHERE owner = %(owner)s AND log = %(log)s AND seq = %(seq)s
UNION ALL
SELECT log, seq, NULL, NULL, total_tokens, total_errors, total_cost, total_bytes, NULL FROM removed_sums
WHERE owner = %(owner)s AND log = %(log)s AND seq = %(seq)s
"""
LOCATE = """
SELECT log, seq, id, role, total_tokens, total_errors, total_cost, total_bytes, row_crc FROM entry
WHERE owner = %s AND log = ANY(%s::bigint[]) AND id = %s
"""
# Neither DISTINCT nor ORDER BY: rather than sort, PostgreSQL would walk all spans of the owner in their order.
REACHING = "SELECT num FROM span WHERE owner = %s AND log = %s"

# The lanes in which there is something that is not known yet, one after the other.
MOVED = """
SELECT lane, (%(known)s::bigint[])[lane + 1] AS known FROM lane
WHERE owner = %(owner)s AND change > (%(known)s::bigint[])[lane + 1]
"""
CHANGES = f"""
SELECT m.lane, c.change, c.id, c.kind, c.revision, c.key FROM ({MOVED}) m CROSS JOIN LATERAL (
    (SELECT change, id, kind_of_change AS kind, revision, NULL AS key FROM session
     WHERE owner = %(owner)s AND lane = m.lane AND change > m.known ORDER BY change LIMIT %(limit)s)
    UNION ALL
    (SELECT change, id, 'delete', NULL, key FROM tombstone
     WHERE owner = %(owner)s AND lane = m.lane AND change > m.known ORDER BY change LIMIT %(limit)s)
) c ORDER BY m.lane, c.change LIMIT %(limit)s
"""
CHANGED = f"""
SELECT {", ".join(f"s.{name}" for name in (*OWN, *FIELDS))} FROM ({MOVED}) m CROSS JOIN LATERAL (
    SELECT * FROM session WHERE owner = %(owner)s AND lane = m.lane AND change > m.known
    ORDER BY change LIMIT %(limit)s
) s ORDER BY m.lane, s.change LIMIT %(limit)s
"""
NEWEST = "SELECT lane, change FROM lane WHERE owner = %s"
QUARANTINED = "SELECT owner, log, at, why FROM quarantine ORDER BY log"
RUNS = """
SELECT min(seq), max(seq) FROM (
    SELECT seq, seq - row_number() OVER (ORDER BY seq) AS run FROM entry
    WHERE owner = %(owner)s AND log = %(log)s) e
GROUP BY run ORDER BY run
"""
# As `session_heard` has it.
CHAT = """(CASE WHEN key LIKE 'subagent:agent:%%:%%' THEN 'subagent:' || coalesce(channel, '')
    WHEN key LIKE 'agent:%%:%%:dm:%%' AND key LIKE 'agent:%%:%%:group:%%' THEN ''
    WHEN key LIKE 'agent:%%:%%:dm:%%' THEN 'directmessage:' || coalesce(channel, '')
    WHEN key LIKE 'agent:%%:%%:group:%%' THEN 'group:' || coalesce(channel, '')
    WHEN key LIKE 'agent:%%:cron:%%' THEN 'task:' || coalesce(channel, '')
    WHEN key LIKE 'agent:%%:main' THEN 'main:' || coalesce(channel, '')
    ELSE '' END) COLLATE "C\""""
# From one kind to the next, however many chats there are of each.
CHATS = f"""
WITH RECURSIVE found (chat) AS (
    (SELECT {CHAT} FROM session WHERE heard_at IS NOT NULL ORDER BY {CHAT} LIMIT 1)
    UNION ALL
    SELECT next.chat FROM found CROSS JOIN LATERAL (
        SELECT {CHAT} FROM session WHERE heard_at IS NOT NULL AND {CHAT} > found.chat ORDER BY {CHAT} LIMIT 1
    ) next (chat)
) SELECT chat FROM found
"""
SILENT = f"""
SELECT {COLUMNS} FROM session
WHERE heard_at IS NOT NULL AND {CHAT} = %(chat)s AND heard_at < %(before)s
    AND (heard_at, owner, id) > (%(heard_at)s, %(last_owner)s, %(last_id)s){{whose}}
ORDER BY heard_at, owner, id LIMIT %(limit)s
"""
SILENT_OF_ALL, SILENT_OF_OWNER = SILENT.format(whose=""), SILENT.format(whose=" AND owner = %(owner)s")
DUTY = "SELECT holder FROM duty WHERE name = %s"
MEMO = "SELECT digest, answer, at FROM memo WHERE owner = %s AND method = %s AND key = %s"
LIVE = "SELECT data FROM live WHERE owner = %s AND num = %s"
INBOX = "SELECT ordinal, id, body, crc FROM inbox WHERE owner = %s AND num = %s ORDER BY ordinal"
INBOX_SIZE = (
    "SELECT count(*), coalesce(sum(length(body)), 0)::bigint FROM inbox WHERE owner = %s AND num = %s"
)
INBOXES = """
SELECT owner, id FROM session s WHERE EXISTS (SELECT FROM inbox i WHERE i.owner = s.owner AND i.num = s.num)
ORDER BY owner, id
"""
RUNNING = """
SELECT owner, id FROM session WHERE status <> 'idle' AND status IN ('running', 'waiting') ORDER BY owner, id
"""
RAW_COPIES = "SELECT name, data, digest, crc FROM raw_copy WHERE owner = %s AND num = %s ORDER BY name"
RAW_SIZES = """
SELECT s.id, sum(pg_column_size(c.data))::bigint FROM raw_copy AS c
JOIN session AS s ON s.owner = c.owner AND s.num = c.num
WHERE c.owner = %s GROUP BY s.id, s.updated_at ORDER BY s.updated_at DESC, s.id DESC
"""


class PostgresReader:
    """A view of the database as it was when the transaction began."""

    def __init__(
        self,
        statements: Statements,
        clock: Now | None,
        place: Callable[[str], Awaitable[None]] | None = None,
        order: search.Order = search.BY_NUMBER,
    ) -> None:
        """`place`: waits for an owner's turn to search. Without one, as in a write, a search has no limit of its own. `order`
        is that in which documents are found."""
        self._statements = statements
        self._clock = clock
        self._place = place
        self._order = order

    async def _settle(self) -> None:
        """Before a question about many sessions; a writer then stores what it has held back."""

    async def _begin_search(self, owner: str) -> None:
        """Before what may take long."""
        await self._settle()
        if self._place is not None:
            await self._place(owner)
            await self._statements.limit_search()

    async def _rows(self, statement: str, *params: object) -> list[Row]:
        return await self._statements.rows(statement, params)

    async def _row(self, statement: str, *params: object) -> Row | None:
        return await self._statements.row(statement, params)

    async def _record(self, statement: str, *params: object) -> Record | None:
        row = await self._row(statement, *params)
        return None if row is None else record_of(row)

    async def now(self) -> int:
        if self._clock is not None:
            return self._clock()
        return int((await self._rows(CLOCK))[0][0])

    async def session(self, owner: str, session_id: str) -> Record | None:
        return await self._record(BY_ID, owner, session_id)

    async def by_num(self, owner: str, num: int) -> Record | None:
        return await self._record(BY_NUM, owner, num)

    async def by_key(self, owner: str, key: str) -> Record | None:
        await self._settle()
        return await self._record(BY_KEY, owner, key)

    async def with_prefix(self, owner: str, prefix: str, limit: int) -> list[str]:
        await self._settle()
        params = {"owner": owner, "prefix": prefix, "beyond": prefix + "\U0010ffff", "limit": limit}
        return [row[0] for row in await self._statements.rows(WITH_PREFIX, params)]

    async def erasures(self, owner: str, session_id: str) -> frozenset[str]:
        await self._settle()
        return frozenset(row[0] for row in await self._statements.rows(ERASURES, (owner, session_id)))

    async def bereft(self, owner: str) -> set[str]:
        await self._settle()
        return {row[0] for row in await self._statements.rows(BEREFT, {"owner": owner})}

    async def erased_among(self, owner: str, marks: Sequence[str]) -> set[str]:
        await self._settle()
        return {row[0] for row in await self._statements.rows(ERASED_AMONG, (owner, list(marks)))}

    async def buried(self, owner: str, session_id: str) -> bool:
        await self._settle()
        return await self._row(BURIED, owner, session_id) is not None

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        await self._settle()
        crowded = given.day is not None and await statistics.is_crowded(
            self._statements, owner, given.day, FEW_ON_A_DAY
        )
        walk = list_query.listed(owner, given, below, limit + 1, examine, crowded=crowded)
        return await self._walked(walk, given)

    async def changed(self, owner: str, given: Filter, after: str, limit: int, examine: int) -> Rescan:
        await self._settle()
        known, most = numbers_of(after, LANES), min(examine, CHANGED_AT_ONCE)
        params = {"owner": owner, "known": known, "limit": most}
        rows = await self._statements.rows(CHANGED, params)
        passing = await self._passing(owner, given, rows)
        found = list[Record]()
        for row in rows:
            if len(found) == limit:
                return Rescan(found, position_of(known), ended=False)
            known[lane_of(row[ID])] = row[CHANGE]
            if row[NUM] in passing:
                found.append(passing[row[NUM]])
        return Rescan(found, position_of(known), ended=len(rows) < most)

    async def _passing(self, owner: str, given: Filter, rows: Sequence[Row]) -> dict[int, Record]:
        """The records among these rows that pass the filter, by their number."""
        passing = {record.num: record for record in whole_records(rows) if passes(record.session, given)}
        if given.day is None:
            return passing
        there = await statistics.active_sessions(self._statements, owner, given.day, list(passing))
        return {num: record for num, record in passing.items() if num in there}

    async def _walked(self, walk: Walk, given: Filter) -> Scan:
        """One record more than the limit shows whether there are more."""
        rows = await self._statements.rows(walk.page, walk.params, plan_anew=True)
        limit = walk.params["limit"] - 1
        looked_at = rows[:limit]
        records = [
            record for record in whole_records(looked_at) if not given.text or passes(record.session, given)
        ]
        last = ListKey(looked_at[-1][ORDER_AT], looked_at[-1][ID]) if looked_at else None
        if len(rows) > limit:
            return Scan(records, last, ended=False)
        if walk.all_pass and len(rows) < walk.params["examine"]:
            return Scan(records, last, ended=True)
        stopped = await self._statements.rows(walk.last_examined, walk.params, plan_anew=True)
        return Scan(records, ListKey(*stopped[0]) if stopped else last, ended=not stopped)

    async def titled(self, owner: str, terms: Sequence[Term], limit: int) -> list[Record] | None:
        await self._begin_search(owner)
        found = await Search(self._statements, owner, terms, "title", self._order).newest(None, limit + 1)
        if len(found) > limit:
            return None
        return whole_records(await self._rows(BY_NUMS, owner, [match.num for match in found]))

    async def count(self, owner: str, given: Filter) -> int:
        await (self._begin_search(owner) if given.text else self._settle())
        await self._statements.queue(ANY_PLAN)
        statement, loose_titles, params = list_query.counted(owner, given)
        found = int((await self._statements.rows(statement, params, plan_anew=True))[0][0])
        terms = text_terms(given)
        if search.needs_positions(terms):
            texts = await self._statements.rows(loose_titles, params, plan_anew=True)
            found -= sum(not words.matches(terms, words.tokens(words.searchable(row[0]))) for row in texts)
        return found

    async def spans(self, owner: str, num: int, name: str = CURRENT) -> Spans:
        return whole_spans(owner, num, name, await self._rows(SPANS, owner, num, name))

    async def span_lists(self, owner: str, num: int) -> dict[str, Spans]:
        rows = groupby(await self._rows(SPAN_LISTS, owner, num), itemgetter(0))
        return {name: whole_spans(owner, num, name, [row[1:] for row in group]) for name, group in rows}

    async def checkpoints(self, owner: str, num: int) -> list[Checkpoint]:
        rows = await self._rows(CHECKPOINTS, owner, num)
        if not all(crc is None or crc == checksum(owner, num, *row) for *row, crc in rows):
            raise StoreDamaged("a checkpoint was altered; run `hitherto doctor`")
        return [
            Checkpoint(id=made, at=at, reason=reason, message_count=messages, token_count=count)
            for made, at, reason, messages, count, _ in rows
        ]

    async def payloads(self, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
        params = {
            "owner": owner,
            "logs": [stretch.log for stretch in stretches],
            "firsts": [stretch.first for stretch in stretches],
            "lasts": [stretch.last for stretch in stretches],
        }
        rows = await self._statements.rows(PAYLOADS, params)
        rows.sort(key=itemgetter(0, 1))
        if missing := sum(stretch.size for stretch in stretches) - len(rows):
            raise StoreDamaged(f"{missing} entries are missing; run `hitherto doctor`")
        return whole_payloads(owner, stretches, rows)

    async def totals(self, owner: str, log: int, seq: int) -> Totals:
        row = await self._statements.row(TOTALS, {"owner": owner, "log": log, "seq": seq}) if seq else None
        if row is None:
            return Totals()
        check_beside(owner, row)
        return Totals(*row[4:-1])

    async def locate(self, owner: str, logs: Sequence[int], entry_id: str) -> list[EntryPlace]:
        rows = await self._rows(LOCATE, owner, list(logs), entry_id)
        for row in rows:
            check_beside(owner, row)
        return [EntryPlace(*row[:2]) for row in rows]

    async def reaching(self, owner: str, log: int) -> list[int]:
        return sorted({row[0] for row in await self._rows(REACHING, owner, log)})

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
        await self._begin_search(owner)
        asked = Search(self._statements, owner, terms, kind, self._order, every=every, without=without)
        return await asked.newest(before, limit, during)

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
        await self._begin_search(owner)
        asked = Search(self._statements, owner, terms, role, without=without)
        return await asked.within(stretch, limit, backwards=backwards)

    async def children(self, owner: str, session_id: str) -> list[Record]:
        await self._settle()
        return whole_records(await self._rows(CHILDREN, owner, session_id))

    async def edits(self, owner: str, logs: Sequence[int]) -> list[EditBatch]:
        return [EditBatch(*row) for row in await self._rows(EDITS, owner, list(logs))]

    async def edits_marked(
        self, owner: str, wanted: frozenset[int], log: int | None = None
    ) -> list[EditBatch]:
        found: list[EditBatch] = []
        place = {"owner": owner, "log": log, "limit": EDITS_AT_ONCE, "after": -1, "at": -1}
        while True:
            rows = await self._statements.rows(EDIT_MARKS, place)
            for in_log, first, marks in rows:
                if has_any(marks, wanted):
                    data = (await self._rows(EDIT_DATA, owner, in_log, first))[0][0]
                    found.append(EditBatch(in_log, first, data, marks))
            if len(rows) < EDITS_AT_ONCE:
                return found
            place |= {"after": rows[-1][0], "at": rows[-1][1]}

    async def edits_reached(self, owner: str, ids: Sequence[str]) -> ReachedEdits:
        await self._settle()
        bound = {"owner": owner, "ids": list(ids), "generations": GENERATIONS}
        return reached_edits(await self._statements.rows(EDITS_REACHED, bound))

    async def edits_due(self, owner: str, limit: int) -> list[int]:
        return [log for (log,) in await self._rows(EDITS_DUE, owner, limit)]

    async def changes(self, owner: str, after: str, limit: int) -> list[Change]:
        await self._settle()
        known = numbers_of(after, LANES)
        params = {"owner": owner, "known": list(known), "limit": limit}
        found = list[Change]()
        for lane, number, session_id, kind, revision, key in await self._statements.rows(CHANGES, params):
            known[lane] = number
            at = position_of(known)
            found.append(Change(session=session_id, kind=kind, position=at, revision=revision, key=key))
        return found

    async def newest(self, owner: str) -> str:
        await self._settle()
        numbers = [0] * LANES
        for lane, number in await self._rows(NEWEST, owner):
            numbers[lane] = number
        return position_of(numbers)

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        row = await self._row(MEMO, owner, method, key)
        return None if row is None else Memo(*row)

    async def live(self, owner: str, num: int) -> bytes | None:
        row = await self._row(LIVE, owner, num)
        return None if row is None else bytes(row[0])

    async def inbox(self, owner: str, num: int) -> list[Pending]:
        waiting = []
        for order, name, body, crc in await self._rows(INBOX, owner, num):
            if crc != checksum(owner, num, order, name, bytes(body)):
                raise StoreDamaged(
                    "a waiting message was altered; run `hitherto doctor` to see what else was"
                )
            waiting.append(msgspec.convert(decode_json(bytes(body)), Pending))
        return waiting

    async def inbox_size(self, owner: str, num: int) -> InboxSize:
        return InboxSize(*(await self._rows(INBOX_SIZE, owner, num))[0])

    async def inboxes(self) -> list[tuple[str, str]]:
        return [(owner, name) for owner, name in await self._rows(INBOXES)]

    async def running(self) -> list[tuple[str, str]]:
        return [(owner, name) for owner, name in await self._rows(RUNNING)]

    async def raw_copies(self, owner: str, num: int) -> list[RawCopy]:
        rows = await self._rows(RAW_COPIES, owner, num)
        if not all(is_raw_copy_whole(owner, num, *row) for row in rows):
            raise StoreDamaged("a raw copy was altered; run `hitherto doctor`")
        return [RawCopy(name, data) for name, data, _, _ in rows]

    async def raw_sizes(self, owner: str) -> list[tuple[str, int]]:
        await self._settle()
        return [(id_, size) for id_, size in await self._rows(RAW_SIZES, owner)]

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        return await facts.list_facts(self._statements, owner, session_id)

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        return await facts.find_facts(self._statements, owner, wanted)

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        return await facts.find_rivals(self._statements, owner, wanted)

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        return await facts.facts_behind(self._statements, owner, fact_id)

    async def quarantined(self) -> list[QuarantinedLog]:
        found = list[QuarantinedLog]()
        for owner, log, at, why in await self._statements.rows(QUARANTINED):
            runs = await self._statements.rows(RUNS, {"owner": owner, "log": log})
            found.append(QuarantinedLog(owner, log, at, why, tuple(Stretch(log, *run) for run in runs)))
        return found

    async def stats(self, owner: str) -> Json:
        await self._settle()
        return await statistics.count_all(self._statements, owner)

    async def facets(self, owner: str) -> Facets:
        await self._settle()
        return await statistics.list_facets(self._statements, owner)

    async def spoken(self, owner: str, day: str, nums: Sequence[int]) -> set[int]:
        return await statistics.active_sessions(self._statements, owner, day, nums)

    async def activity(self, owner: str, first: int, last: int, most: int) -> Activity:
        await self._settle()
        return await statistics.activity(self._statements, owner, first, last, most)

    async def log_after(self, owner: str, log: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
        return await statistics.log_after(self._statements, owner, log, seq, limit)

    async def counted(self, owner: str, logs: Sequence[int]) -> dict[int, int]:
        return await statistics.counted(self._statements, owner, logs)

    async def requests(
        self, owner: str, since: int, until: int, logs: Sequence[int] | None = None
    ) -> list[Request]:
        return await statistics.requests(self._statements, owner, since, until, logs)

    async def session_usage(self, owner: str, ids: Sequence[str]) -> dict[str, KeptUsage]:
        return await statistics.session_usage(self._statements, owner, ids)

    async def projects(self, owner: str) -> list[str]:
        await self._settle()
        return await statistics.list_projects(self._statements, owner)

    async def placeless(self, owner: str, limit: int) -> list[str]:
        await self._settle()
        return await statistics.folders_without_project(self._statements, owner, limit)

    async def rooted(self, owner: str, root: str) -> str | None:
        return await statistics.project_of_root(self._statements, owner, root)

    async def roots(self, owner: str, project: str) -> list[str]:
        return await statistics.roots_of_project(self._statements, owner, project)

    async def token(self, digest: bytes) -> Token | None:
        return await tokens.find_token(self._statements, digest)

    async def tokens(self, owner: str | None) -> list[Token]:
        return await tokens.list_tokens(self._statements, owner)

    async def chats(self) -> list[str]:
        await self._settle()
        return [row[0] for row in await self._rows(CHATS)]

    async def silent(
        self, owner: str | None, chat: str, before: int, after: SilentChat | None, limit: int
    ) -> list[SilentChat]:
        await self._settle()
        heard_at, last_owner, last_id, _ = after or SilentChat(-1, "", "")
        params = {
            "chat": chat,
            "before": before,
            "heard_at": heard_at,
            "last_owner": last_owner,
            "last_id": last_id,
            "owner": owner,
            "limit": limit,
        }
        statement = SILENT_OF_ALL if owner is None else SILENT_OF_OWNER
        rows = await self._statements.rows(statement, params)
        whole = {(record.owner, record.session.id): record for record in whole_records(rows)}
        places = ((row[HEARD_AT], row[OWNER], row[ID]) for row in rows)
        return [SilentChat(*place, whole.get(place[1:])) for place in places]

    async def duty(self, name: str) -> str | None:
        row = await self._row(DUTY, name)
        return None if row is None else row[0]

    async def access(self) -> int:
        return await tokens.count_changed(self._statements)

    async def link(self, owner: str, account: Account) -> Account | None:
        return await tokens.find_link(self._statements, owner, account)

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        return await tokens.list_linked(self._statements, owner, account)


def whole_spans(owner: str, num: int, name: str, rows: Sequence[Row]) -> Spans:
    """The spans in rows of `SPANS`. `StoreDamaged` if they are not what was written."""
    size = len(rows)
    for *span, ordinal, crc in rows:
        if crc is not None and crc != checksum(owner, num, name, ordinal, size, *span):
            raise StoreDamaged("the spans of a session were altered; run `hitherto doctor`")
        if span[2] is None and span[0] != num:
            raise StoreDamaged("a span is damaged; run `hitherto doctor`")
    return tuple(Span(*row[:5]) for row in rows)


def whole_payloads(owner: str, stretches: Sequence[Stretch], rows: Sequence[Row]) -> list[bytes]:
    """The entries of these stretches, from rows of `PAYLOADS`. `StoreDamaged` if one is not what was written in its place."""
    payloads = [row[2] for row in rows]
    seeds = list(chain.from_iterable(entry_seeds(owner, *stretch[:3]) for stretch in stretches))
    # As a rule all are, and then this is several times quicker than to ask one by one.
    if entry_checksums(seeds, payloads) == [row[3] for row in rows]:
        return payloads
    if altered := sum(not is_entry_whole(seed, *row[2:]) for seed, row in zip(seeds, rows, strict=True)):
        raise StoreDamaged(f"{altered} entries were altered; run `hitherto doctor`")
    return payloads


def is_entry_whole(seed: int, payload: bytes, crc: int | None, erased: bool) -> bool:
    """Whether an entry is what was written in its place. A program that knows of no checksums may have erased it since."""
    if crc is None or crc == crc32(payload) + seed:
        return True
    entry = None
    with suppress(ValueError, RecursionError, MsgspecError):
        entry = decode_entry(payload) if erased else None
    return entry is not None and entry.meta.get("erased") is True and not entry.parts


def is_raw_copy_whole(
    owner: str, num: int, name: str, data: bytes, digest: bytes | None, crc: int | None
) -> bool:
    """Whether a raw copy is what was written, and belongs there."""
    if digest is None and crc is None:
        return True
    return hashlib.sha256(data).digest() == digest and crc in (None, checksum(owner, num, name, digest))


def check_beside(owner: str, row: Row) -> None:
    """Raises `StoreDamaged` if what stands beside a payload is not what was written."""
    *beside, crc = row
    if crc is not None and crc != checksum(owner, *beside):
        raise StoreDamaged("what stands beside an entry was altered; run `hitherto doctor`")
