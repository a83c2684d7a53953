"""The reading half of a transaction."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, MutableMapping, Sequence
from itertools import chain, groupby, islice, product
from operator import itemgetter
from typing import Any, cast

import apsw
import msgspec
import zstandard

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
    decode_json,
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
from hitherto.stores.sqlite import facts, statistics, tokens
from hitherto.stores.sqlite.commit_queue import NEWEST_CHANGE, NEWEST_DOCUMENT
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.documents.by_time import TIE_BITS
from hitherto.stores.sqlite.documents.document import Found, Part, Wanted
from hitherto.stores.sqlite.facts import Owner
from hitherto.stores.sqlite.rows import READ, doubtful_payloads, is_span, record_of, whole_payloads
from hitherto.stores.sqlite.search_index import BY_TIME, TIE_MASK, NeedsThread, SearchIndex
from hitherto.values.checksums import beside_checksum, checksum, entry_seeds, log_seed
from hitherto.values.days import day_number
from hitherto.values.facts import FactQuery, RivalQuery
from hitherto.values.filters import statuses, text_terms
from hitherto.values.positions import numbers_of, position_of
from hitherto.values.query.moments import Period
from hitherto.values.spans import EntryPlace, Span, Spans, Stretch
from hitherto.values.usage.requests import Request
from hitherto.values.words import Term

SEQ_BITS = 24
SEQ_MASK = (1 << SEQ_BITS) - 1

COLUMNS = ", ".join(READ)
OWNER = "SELECT num FROM owner WHERE name = ?"
SESSION = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND id = ?"
BY_NUM = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND num = ?"
BY_KEY = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND key = ?"
LISTED = f"""
SELECT {", ".join(f"s.{name}" for name in READ)} FROM json_each(?) AS j CROSS JOIN session AS s
WHERE s.num = j.value AND s.owner = ?
"""
CHILDREN = "SELECT num FROM session WHERE owner = ? AND parent = ? ORDER BY created_at, id"
WITH_PREFIX = "SELECT id FROM session WHERE owner = ? AND id >= ? AND id < ? ORDER BY id LIMIT ?"
ERASURES = "SELECT mark FROM erased WHERE owner = ? AND session = ?"
BEREFT = "SELECT session FROM erased WHERE owner = :owner UNION SELECT id FROM tombstone WHERE owner = :owner"
ERASED_AMONG = """
SELECT DISTINCT mark FROM erased WHERE owner = ? AND mark IN (SELECT value FROM json_each(?))
"""
BURIED = "SELECT 1 FROM tombstone WHERE owner = ? AND id = ?"

PASSES = """
    (:cwd IS NULL OR s.cwd = :cwd)
    AND (:project IS NULL OR s.project = :project)
    AND (:agent_id IS NULL OR s.agent_id = :agent_id)
    AND (:channel IS NULL OR s.channel = :channel)
    AND (:source IS NULL OR s.source = :source)
    AND (:native IS NULL OR (s.source IS NULL) = :native)
    AND (:status IS NULL OR s.status IN (:status, :or_status))
    AND (:pinned IS NULL OR s.pinned = :pinned)
    AND (:created_after IS NULL OR s.created_at >= :created_after)
    AND (:created_before IS NULL OR s.created_at < :created_before)
    AND (:updated_after IS NULL OR s.updated_at >= :updated_after)
    AND (:updated_before IS NULL OR s.updated_at < :updated_before)
    AND (:tags IS NULL OR NOT EXISTS (
        SELECT 1 FROM json_each(:tags) AS want
        WHERE NOT EXISTS (SELECT 1 FROM tag AS t WHERE t.session = s.num AND t.tag = want.value)))
    AND (:needles IS NULL OR (s.title_words IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM json_each(:needles) AS needle WHERE instr(s.title_words, needle.value) = 0)))
"""
WALK = f"""
SELECT s.order_at, s.id, s.num, {PASSES}
FROM session AS s INDEXED BY %s
WHERE s.owner = :owner AND %s s.archived = :archived AND s.hot = 0
    AND (s.order_at, s.id) < (:order_at, :id) AND s.order_at >= :floor
ORDER BY s.order_at DESC, s.id DESC LIMIT :examine
"""
BY_TAG = f"""
SELECT d.order_at, d.id, s.num, {PASSES}
FROM tag AS d CROSS JOIN session AS s ON s.num = d.session
WHERE d.owner = :owner AND d.tag = :tag AND d.archived = :archived AND s.hot = 0
    AND (d.order_at, d.id) < (:order_at, :id) AND d.order_at >= :floor
ORDER BY d.order_at DESC, d.id DESC LIMIT :examine
"""
ON_DAY = f"""
SELECT s.active_at, s.id, s.num, {PASSES}
FROM json_each(:nums) AS j CROSS JOIN session AS s
WHERE s.num = j.value AND s.owner = :owner AND (:archived IS NULL OR s.archived = :archived)
    AND (s.active_at, s.id) < (:order_at, :id) AND s.active_at >= :floor
ORDER BY s.active_at DESC, s.id DESC LIMIT :examine
"""
HOT = f"""
SELECT s.active_at, s.id, s.num, {PASSES}
FROM session AS s INDEXED BY session_hot
WHERE s.owner = :owner AND s.hot = 1 AND (:archived IS NULL OR s.archived = :archived)
    AND (s.active_at, s.id) < (:order_at, :id) AND s.active_at >= :floor
ORDER BY s.active_at DESC, s.id DESC
"""
"""The sessions that lately grew are few, and not yet where the indexes would look for them."""
# The first filter of these that is given drives the walk: its index is in the order of lists.
DRIVERS = {
    "tag": BY_TAG,
    "pinned": WALK % ("session_pinned", "s.pinned = 1 AND"),
    "channel": WALK % ("session_channel", "s.channel = :channel AND"),
    "busy": WALK % ("session_status", "s.status = :status AND s.status <> 'idle' AND"),
    "agent_id": WALK % ("session_agent", "s.agent_id = :agent_id AND"),
    "source": WALK % ("session_source", "s.source = :source AND"),
    "project": WALK % ("session_project", "s.project = :project AND"),
    "cwd": WALK % ("session_cwd", "s.cwd = :cwd AND"),
    "time": WALK % ("session_time", ""),
}
CHANGED = f"""
SELECT s.change, s.id, s.num, {PASSES} AND (:archived IS NULL OR s.archived = :archived)
FROM session AS s WHERE s.owner = :owner AND s.change > :after ORDER BY s.change LIMIT :examine
"""
COUNT = f"""
SELECT count(*) FROM session AS s
WHERE s.owner = :owner AND (:archived IS NULL OR s.archived = :archived) AND {PASSES}
    AND (:nums IS NULL OR s.num IN (SELECT value FROM json_each(:nums)))
"""
AHEAD = "SELECT 1 FROM session WHERE owner = ? AND active_at < max(updated_at, created_at) LIMIT 1"
TITLED = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND title_number = ?"

SPANS = (
    "SELECT log, first, last, kind, expands, ord, crc FROM span WHERE session = ? AND name = ? ORDER BY ord"
)
SPAN_LISTS = (
    "SELECT name, log, first, last, kind, expands, ord, crc FROM span WHERE session = ? ORDER BY name, ord"
)
CHECKPOINTS = """
SELECT ord, id, at, reason, message_count, token_count, crc FROM checkpoint WHERE session = ? ORDER BY ord
"""
PAYLOADS = "SELECT payload, place_crc FROM entry WHERE pos BETWEEN ? AND ? AND owner = ? ORDER BY pos"
DOUBTFUL_PAYLOADS = """
SELECT payload, place_crc, crc, erased FROM entry WHERE pos BETWEEN ? AND ? AND owner = ? ORDER BY pos
"""
TOTALS = "SELECT number, id, tokens, errors, cost, bytes, row_crc FROM entry WHERE pos = ? AND owner = ?"
LOCATE = """
SELECT pos, number, id, tokens, errors, cost, bytes, row_crc FROM entry WHERE id = ? AND pos >> 24 = ? AND owner = ?
"""
REACHING = """
SELECT DISTINCT p.session FROM span AS p JOIN session AS s ON s.num = p.session
WHERE p.log = ? AND s.owner = ?
"""
DOCUMENTS = """
SELECT e.number, e.pos FROM json_each(:numbers) AS j CROSS JOIN entry AS e
WHERE e.number = j.value AND e.erased IS NULL AND e.owner = :owner
UNION ALL
SELECT s.title_number, -s.num FROM json_each(:numbers) AS j CROSS JOIN session AS s
WHERE s.title_number = j.value AND s.owner = :owner
"""
FIRST_NUMBER = (
    "SELECT number FROM entry WHERE pos BETWEEN ? AND ? AND number IS NOT NULL ORDER BY pos LIMIT 1"
)
LAST_NUMBER = (
    "SELECT number FROM entry WHERE pos BETWEEN ? AND ? AND number IS NOT NULL ORDER BY pos DESC LIMIT 1"
)
SPOTS = """
SELECT e.pos & 16777215, e.id FROM json_each(:numbers) AS j CROSS JOIN entry AS e
WHERE e.number = j.value AND e.erased IS NULL AND e.owner = :owner ORDER BY j.key
"""
CHANGES = """
SELECT change, id, kind_of_change, revision, NULL FROM session WHERE owner = :owner AND change > :after
UNION ALL
SELECT change, id, 'delete', NULL, key FROM tombstone WHERE owner = :owner AND change > :after
ORDER BY change LIMIT :limit
"""
QUARANTINED = """
SELECT o.name, q.log, q.at, q.why FROM quarantine AS q
JOIN entry AS e ON e.pos = (SELECT min(pos) FROM entry WHERE pos BETWEEN q.log << 24 AND (q.log + 1 << 24) - 1)
JOIN owner AS o ON o.num = e.owner ORDER BY q.log
"""
RUNS = """
SELECT min(pos) & 16777215, max(pos) & 16777215
FROM (SELECT pos, pos - row_number() OVER (ORDER BY pos) AS run FROM entry WHERE pos BETWEEN ? AND ?)
GROUP BY run ORDER BY run
"""
EDITS = """
SELECT e.pos, e.data, e.marks FROM json_each(:logs) AS j
CROSS JOIN edits AS e ON e.pos BETWEEN j.value << 24 AND (j.value << 24 | 16777215)
WHERE e.owner = :owner ORDER BY e.pos
"""
# The spans of the sessions and their subagents, then the edits of the logs that these are of.
EDITS_REACHED = """
WITH RECURSIVE family (top, num, id, depth) AS (
    SELECT s.id, s.num, s.id, 0 FROM json_each(:ids) AS j CROSS JOIN session AS s ON s.owner = :owner AND s.id = j.value
    UNION
    SELECT f.top, c.num, c.id, f.depth + 1 FROM family AS f
    CROSS JOIN session AS c ON c.owner = :owner AND c.parent = f.id AND c.source IS NOT NULL
    WHERE f.depth < :generations
), reached AS MATERIALIZED (
    SELECT f.top, f.num, p.name, p.ord, p.log, p.first, p.last, p.kind, p.expands
    FROM family AS f CROSS JOIN span AS p ON p.session = f.num
)
SELECT top, num, name, ord, log, first, last, kind, expands, NULL FROM reached
UNION ALL
SELECT NULL, NULL, NULL, NULL, r.log, e.pos & 16777215, NULL, NULL, NULL, e.data
FROM (SELECT DISTINCT log FROM reached) AS r
CROSS JOIN edits AS e ON e.pos BETWEEN r.log << 24 AND (r.log << 24 | 16777215) AND e.owner = :owner
"""
# The marks of all are looked at, the data only of those that have one.
EDIT_MARKS = "SELECT pos, marks FROM edits WHERE owner = ? ORDER BY pos"
EDIT_MARKS_OF_LOG = "SELECT pos, marks FROM edits WHERE pos BETWEEN ? AND ? AND owner = ? ORDER BY pos"
EDIT_DATA = "SELECT data FROM edits WHERE pos = ?"
EDITS_DUE = "SELECT log FROM edits_due WHERE owner = ? ORDER BY log LIMIT ?"
MEMO = "SELECT digest, answer, at FROM memo WHERE owner = ? AND method = ? AND key = ?"
LIVE = "SELECT data FROM live WHERE session = ?"
INBOX = "SELECT ord, id, body, crc FROM inbox WHERE session = ? ORDER BY ord"
SESSION_USAGE = """
SELECT s.id, s.revision, max(s.head, s.message_count), u.revision, u.body
FROM json_each(?2) AS j CROSS JOIN session AS s ON s.owner = ?1 AND s.id = j.value LEFT JOIN session_usage AS u ON u.session = s.num
"""
INBOX_SIZE = "SELECT count(*), coalesce(sum(length(body)), 0) FROM inbox WHERE session = ?"
INBOXES = """
SELECT o.name, s.id FROM session AS s JOIN owner AS o ON o.num = s.owner
WHERE s.num IN (SELECT session FROM inbox) ORDER BY o.name, s.id
"""
RUNNING = """
SELECT o.name, s.id FROM session AS s JOIN owner AS o ON o.num = s.owner
WHERE s.status <> 'idle' AND s.status IN ('running', 'waiting') ORDER BY o.name, s.id
"""
RAW_COPIES = """
SELECT c.name, c.digest, c.crc, b.data FROM raw_copy AS c LEFT JOIN raw_blob AS b ON b.digest = c.digest
WHERE c.session = ? ORDER BY c.name
"""
# Of a blob only its length is looked at, which stands at its beginning; sorted together with sessions, all of it would be.
RAW_SIZES = """
SELECT s.id, k.size FROM (
    SELECT c.session, sum(length(b.data)) AS size
    FROM raw_copy AS c CROSS JOIN raw_blob AS b ON b.digest = c.digest GROUP BY c.session
) AS k JOIN session AS s ON s.num = k.session
WHERE s.owner = ? ORDER BY s.updated_at DESC, s.id DESC
"""
# As `session_heard` has it.
CHAT = """CASE WHEN key GLOB 'subagent:agent:*:*' THEN 'subagent:' || coalesce(channel, '')
    WHEN key GLOB 'agent:*:*:dm:*' AND key GLOB 'agent:*:*:group:*' THEN ''
    WHEN key GLOB 'agent:*:*:dm:*' THEN 'directmessage:' || coalesce(channel, '')
    WHEN key GLOB 'agent:*:*:group:*' THEN 'group:' || coalesce(channel, '')
    WHEN key GLOB 'agent:*:cron:*' THEN 'task:' || coalesce(channel, '')
    WHEN key GLOB 'agent:*:main' THEN 'main:' || coalesce(channel, '')
    ELSE '' END"""
# From one kind to the next, however many chats there are of each.
CHATS = f"""
WITH RECURSIVE found (chat) AS (
    SELECT min({CHAT}) FROM session INDEXED BY session_heard WHERE heard_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min({CHAT}) FROM session INDEXED BY session_heard WHERE heard_at IS NOT NULL AND {CHAT} > chat)
    FROM found WHERE chat IS NOT NULL
) SELECT chat FROM found WHERE chat IS NOT NULL
"""
# By the number of an owner, which is in the index, rather than by the name.
SILENT = f"""
SELECT s.heard_at, o.name, {", ".join(f"s.{name}" for name in READ)} FROM session AS s INDEXED BY session_heard CROSS JOIN owner AS o ON o.num = s.owner
WHERE s.heard_at IS NOT NULL AND {CHAT} = :chat AND s.heard_at < :before
    AND (s.heard_at, s.owner, s.id) > (:heard_at, :last_owner, :last_id) AND (:owner IS NULL OR s.owner = :owner)
ORDER BY s.heard_at, s.owner, s.id LIMIT :limit
"""
DUTY = "SELECT holder FROM duty WHERE name = ?"
FIRST_KEY = ListKey(1 << 62, "")
FEW_ON_A_DAY = 2_000
"""So many sessions of a day are put in order for each page; a day with more is looked for along the list."""
LOOKED_AT = 128


_Seen = tuple[int, str, int, int]
"""A row of a walk: its place in the list, the number of the session, and whether it passes."""


def position(log: int, seq: int) -> int:
    """The key of an entry."""
    return log << SEQ_BITS | seq


class SqliteReader:
    """See `ports.Reader`."""

    def __init__(
        self, db: apsw.Connection, index: SearchIndex | None, now: Now, owners: MutableMapping[str, int]
    ) -> None:
        self._db, self._owners = db, owners
        self._index = index
        self._now = now

    def _searched(self, owner: str) -> SearchIndex:
        """The index; on the event loop, which has none, the whole read is begun anew elsewhere."""
        if self._index is None:
            raise NeedsThread(owner)
        return self._index

    async def now(self) -> int:
        return self._now()

    async def session(self, owner: str, session_id: str) -> Record | None:
        record = self._record(owner, SESSION, session_id)
        if record is not None and record.session.id != session_id:
            raise StoreDamaged("an index leads to another session; run `hitherto doctor`")
        return record

    async def by_num(self, owner: str, num: int) -> Record | None:
        return self._record(owner, BY_NUM, num)

    async def by_key(self, owner: str, key: str) -> Record | None:
        record = self._record(owner, BY_KEY, key)
        if record is not None and record.session.key != key:
            raise StoreDamaged("an index leads to another session; run `hitherto doctor`")
        return record

    async def with_prefix(self, owner: str, prefix: str, limit: int) -> list[str]:
        upper = prefix + "\U0010ffff"
        return [row[0] for row in fetch(self._db, WITH_PREFIX, (self._owner(owner), prefix, upper, limit))]

    async def erasures(self, owner: str, session_id: str) -> frozenset[str]:
        return frozenset(row[0] for row in fetch(self._db, ERASURES, (self._owner(owner), session_id)))

    async def bereft(self, owner: str) -> set[str]:
        return {row[0] for row in fetch(self._db, BEREFT, {"owner": self._owner(owner)})}

    async def erased_among(self, owner: str, marks: Sequence[str]) -> set[str]:
        bound = (self._owner(owner), encode(list(marks)).decode())
        return {row[0] for row in fetch(self._db, ERASED_AMONG, bound)}

    async def buried(self, owner: str, session_id: str) -> bool:
        return bool(fetch(self._db, BURIED, (self._owner(owner), session_id)))

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        below = below or FIRST_KEY
        if given.updated_before is not None:
            # order_at is never above updated_at, so nothing from there on can pass.
            below = min(below, ListKey(given.updated_before, ""))
        bound = self._bound(owner, given) | {
            "tag": given.tags[0] if given.tags else None,
            "order_at": below.order_at,
            "id": below.id,
            "examine": examine,
            "floor": self._floor(owner, given),
        }
        few = self._few_on_day(owner, given)
        if few is not None:
            return self._take(
                owner, self._walk(ON_DAY, bound | {"nums": encode(few).decode()}), limit, examine
            )
        driver = _driver(given)
        walk, doing = DRIVERS[driver], statuses(given) if driver == "busy" else (given.status,)
        archived = {"exclude": (0,), "only": (1,), "include": (0, 1)}[given.archived]
        each = product(archived, doing)
        rows = [self._walk(walk, bound | {"archived": put, "status": status}) for put, status in each]
        if hot := list(self._walk(HOT, bound)):
            rows.append(iter(hot))
        merged = rows[0] if len(rows) == 1 else heapq.merge(*rows, reverse=True)
        return self._take(owner, self._spoken(owner, given, merged), limit, examine)

    async def titled(self, owner: str, terms: Sequence[Term], limit: int) -> list[Record] | None:
        num = self._owner(owner)
        found = self._searched(owner).matches(Wanted(num, terms, "title"), None, limit + 1).found
        if len(found) > limit:
            return None
        rows = (fetch(self._db, TITLED, (num, number)) for _, number, _ in found)
        return [record for row in chain.from_iterable(rows) if (record := _undamaged(owner, row))]

    async def changed(self, owner: str, given: Filter, after: str, limit: int, examine: int) -> Rescan:
        (known,) = numbers_of(after, 1)
        bound = self._bound(owner, given) | {"after": known, "examine": examine}
        if given.day is not None:
            self._searched(owner).follow()
        walk = self._spoken(owner, given, self._walk(CHANGED, bound))
        found = self._take(owner, walk, limit, examine)
        return Rescan(found.records, position_of([found.last.order_at if found.last else known]), found.ended)

    async def count(self, owner: str, given: Filter) -> int:
        day = None if given.day is None else day_number(given.day)
        nums = None if day is None else encode(self._searched(owner).spoken(self._owner(owner), day)).decode()
        return int(fetch(self._db, COUNT, self._bound(owner, given) | {"nums": nums})[0][0])

    async def spans(self, owner: str, num: int, name: str = CURRENT) -> Spans:
        return _whole_spans(owner, num, name, fetch(self._db, SPANS, (num, name)))

    async def span_lists(self, owner: str, num: int) -> dict[str, Spans]:
        rows = groupby(fetch(self._db, SPAN_LISTS, (num,)), itemgetter(0))
        return {name: _whole_spans(owner, num, name, [row[1:] for row in group]) for name, group in rows}

    async def checkpoints(self, owner: str, num: int) -> list[Checkpoint]:
        rows = fetch(self._db, CHECKPOINTS, (num,))
        if not all(crc is None or crc == checksum(owner, num, *row) for *row, crc in rows):
            raise StoreDamaged("a checkpoint was altered; run `hitherto doctor`")
        return [
            Checkpoint(id=id_, at=at, reason=reason, message_count=messages, token_count=token_count)
            for _, id_, at, reason, messages, token_count, _ in rows
        ]

    async def payloads(self, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
        found: list[bytes] = []
        num = self._owner(owner)
        for log, first, last, *_ in stretches:
            place = (position(log, first), position(log, last), num)
            rows = fetch(self._db, PAYLOADS, place)
            if missing := last - first + 1 - len(rows):
                raise StoreDamaged(f"{missing} entries are missing; run `hitherto doctor`")
            seeds = entry_seeds(owner, log, first, last)
            payloads = whole_payloads(seeds, rows)
            found += payloads or doubtful_payloads(seeds, fetch(self._db, DOUBTFUL_PAYLOADS, place))
        return found

    async def totals(self, owner: str, log: int, seq: int) -> Totals:
        pos = position(log, seq)
        rows = fetch(self._db, TOTALS, (pos, self._owner(owner)))
        if not rows:
            return Totals()
        self._check_beside(owner, pos, *rows[0])
        return Totals(*rows[0][2:-1])

    async def locate(self, owner: str, logs: Sequence[int], entry_id: str) -> list[EntryPlace]:
        num = self._owner(owner)
        found = [row for log in logs for row in fetch(self._db, LOCATE, (entry_id, log, num))]
        for row in found:
            self._check_beside(owner, *row)
        return [EntryPlace(row[0] >> SEQ_BITS, row[0] & SEQ_MASK) for row in found]

    def _check_beside(self, owner: str, pos: int, number: int, id_: str, *rest: int) -> None:
        """Raises `StoreDamaged` if what stands beside a payload is not what was written."""
        *sums, crc = rest
        place = log_seed(owner, pos >> SEQ_BITS) + (pos & SEQ_MASK)
        whole = crc is None or crc == beside_checksum(place, (number, id_, *sums))
        if not whole or not all(isinstance(each, int) for each in sums):
            raise StoreDamaged("what stands beside an entry was altered; run `hitherto doctor`")

    async def reaching(self, owner: str, log: int) -> list[int]:
        return [row[0] for row in fetch(self._db, REACHING, (log, self._owner(owner)))]

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
        wanted = Wanted(self._owner(owner), terms, kind, every, without, during)
        index, found = self._searched(owner), list[Match]()
        while len(found) < limit:
            asked = limit - len(found)
            located = index.matches(wanted, before, asked)
            found += self._there(index, located.found, wanted.owner, located.order)
            if len(located.found) < asked:
                break
            before = located.last
        return found

    def _there(self, index: SearchIndex, found: Sequence[Found], owner: int, order: int) -> list[Match]:
        """Those that this snapshot has. Each is looked up only if the index may know too much, or not their places."""
        if order == BY_TIME and index.is_settled(self._db):
            newest = fetch(self._db, NEWEST_DOCUMENT)[0][0]
            return [_match(key, order, pos) for key, number, pos in found if number <= newest]
        numbers = encode([number for _, number, _ in found]).decode()
        places = dict(fetch(self._db, DOCUMENTS, {"numbers": numbers, "owner": owner}))
        return [_match(key, order, places[number]) for key, number, _ in found if number in places]

    async def unindexed(self) -> int:
        return self._searched("").unindexed(self._db)

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
        # Documents of one log are numbered in the order of its entries.
        ends = (position(stretch.log, stretch.first), position(stretch.log, stretch.last))
        first, last = fetch(self._db, FIRST_NUMBER, ends), fetch(self._db, LAST_NUMBER, ends)
        if not first or not last:
            return []
        seqs, numbers = range(stretch.first, stretch.last + 1), range(first[0][0], last[0][0] + 1)
        wanted = Wanted(self._owner(owner), terms, role, without=without)
        part = Part(stretch.log, seqs, numbers)
        found = self._searched(owner).within(wanted, part, limit, backwards=backwards)
        bound = {"numbers": encode(found).decode(), "owner": self._owner(owner)}
        return [Spot(*row) for row in fetch(self._db, SPOTS, bound)]

    async def children(self, owner: str, session_id: str) -> list[Record]:
        nums = fetch(self._db, CHILDREN, (self._owner(owner), session_id))
        return self._listed(owner, [num for (num,) in nums])

    async def edits(self, owner: str, logs: Sequence[int]) -> list[EditBatch]:
        bound = {"logs": encode(sorted(set(logs))).decode(), "owner": self._owner(owner)}
        rows = fetch(self._db, EDITS, bound)
        return [EditBatch(pos >> SEQ_BITS, pos & SEQ_MASK, data, marks) for pos, data, marks in rows]

    async def edits_marked(
        self, owner: str, wanted: frozenset[int], log: int | None = None
    ) -> list[EditBatch]:
        if log is None:
            rows = self._db.execute(EDIT_MARKS, (self._owner(owner),))
        else:
            rows = self._db.execute(
                EDIT_MARKS_OF_LOG, (position(log, 0), position(log, SEQ_MASK), self._owner(owner))
            )
        found = [(pos, marks) for pos, marks in rows if has_any(marks, wanted)]
        return [
            EditBatch(pos >> SEQ_BITS, pos & SEQ_MASK, fetch(self._db, EDIT_DATA, (pos,))[0][0], marks)
            for pos, marks in found
        ]

    async def edits_reached(self, owner: str, ids: Sequence[str]) -> ReachedEdits:
        wanted = encode(sorted(set(ids))).decode()
        bound = {"ids": wanted, "owner": self._owner(owner), "generations": GENERATIONS}
        return reached_edits(fetch(self._db, EDITS_REACHED, bound))

    async def edits_due(self, owner: str, limit: int) -> list[int]:
        return [log for (log,) in fetch(self._db, EDITS_DUE, (self._owner(owner), limit))]

    async def changes(self, owner: str, after: str, limit: int) -> list[Change]:
        (known,) = numbers_of(after, 1)
        bound = {"owner": self._owner(owner), "after": known, "limit": limit}
        return [
            Change(position=position_of([number]), session=id_, kind=kind, revision=revision, key=key)
            for number, id_, kind, revision, key in fetch(self._db, CHANGES, bound)
        ]

    async def newest(self, owner: str) -> str:
        return position_of([int(fetch(self._db, NEWEST_CHANGE, {"owner": self._owner(owner)})[0][0])])

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        rows = fetch(self._db, MEMO, (self._owner(owner), method, key))
        return Memo(*rows[0]) if rows else None

    async def live(self, owner: str, num: int) -> bytes | None:
        rows = fetch(self._db, LIVE, (num,))
        return rows[0][0] if rows else None

    async def inbox(self, owner: str, num: int) -> list[Pending]:
        waiting = []
        for order, name, body, crc in fetch(self._db, INBOX, (num,)):
            if crc != checksum(owner, num, order, name, body):
                raise StoreDamaged(
                    "a waiting message was altered; run `hitherto doctor` to see what else was"
                )
            waiting.append(msgspec.convert(decode_json(body), Pending))
        return waiting

    async def inbox_size(self, owner: str, num: int) -> InboxSize:
        return InboxSize(*fetch(self._db, INBOX_SIZE, (num,))[0])

    async def inboxes(self) -> list[tuple[str, str]]:
        return fetch(self._db, INBOXES)

    async def running(self) -> list[tuple[str, str]]:
        return fetch(self._db, RUNNING)

    async def raw_copies(self, owner: str, num: int) -> list[RawCopy]:
        unpack = zstandard.ZstdDecompressor().decompress
        rows = fetch(self._db, RAW_COPIES, (num,))
        for name, digest, crc, data in rows:
            if crc is not None and crc != checksum(owner, num, name, digest):
                raise StoreDamaged("a raw copy belongs elsewhere; run `hitherto doctor`")
            if not isinstance(data, bytes) or hashlib.sha256(data).digest() != digest:
                raise StoreDamaged("a raw copy was altered, or is missing; run `hitherto doctor`")
        return [RawCopy(name, unpack(data)) for name, _, _, data in rows]

    async def raw_sizes(self, owner: str) -> list[tuple[str, int]]:
        return [(id_, size) for id_, size in fetch(self._db, RAW_SIZES, (self._owner(owner),))]

    async def spoken(self, owner: str, day: str, nums: Sequence[int]) -> set[int]:
        self._searched(owner).follow()
        return self._searched(owner).among(self._owner(owner), day_number(day), nums)

    async def activity(self, owner: str, first: int, last: int, most: int) -> Activity:
        found = self._searched(owner).activity(self._owner(owner), first, last, most)
        longest = (self._record(owner, BY_NUM, num) for num in found.longest)
        return Activity(found.days, found.shares, found.projects, [record for record in longest if record])

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        return facts.list_facts(self._db, self._known(owner), session_id)

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        return facts.find_facts(self._db, self._known(owner), wanted)

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        return facts.find_rivals(self._db, self._known(owner), wanted)

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        return facts.facts_behind(self._db, self._known(owner), fact_id)

    async def quarantined(self) -> list[QuarantinedLog]:
        return [
            QuarantinedLog(owner, log, at, why, tuple(self._runs(log)))
            for owner, log, at, why in fetch(self._db, QUARANTINED)
        ]

    def _runs(self, log: int) -> Iterator[Stretch]:
        """The entries of a log, in runs without a gap."""
        rows = fetch(self._db, RUNS, (position(log, 0), position(log, SEQ_MASK)))
        return (Stretch(log, first, last) for first, last in rows)

    async def stats(self, owner: str) -> Json:
        return statistics.count_all(self._db, self._owner(owner))

    async def facets(self, owner: str) -> Facets:
        return statistics.list_facets(self._db, self._owner(owner))

    async def log_after(self, owner: str, log: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
        return statistics.log_after(self._db, self._owner(owner), log, seq, limit)

    async def counted(self, owner: str, logs: Sequence[int]) -> dict[int, int]:
        return statistics.counted(self._db, self._owner(owner), logs)

    async def requests(
        self, owner: str, since: int, until: int, logs: Sequence[int] | None = None
    ) -> list[Request]:
        return statistics.requests(self._db, self._owner(owner), since, until, logs)

    async def session_usage(self, owner: str, ids: Sequence[str]) -> dict[str, KeptUsage]:
        rows = fetch(self._db, SESSION_USAGE, (self._owner(owner), encode(list(ids)).decode()))
        return {session_id: KeptUsage(*kept) for session_id, *kept in rows}

    async def projects(self, owner: str) -> list[str]:
        return statistics.list_projects(self._db, self._owner(owner))

    async def placeless(self, owner: str, limit: int) -> list[str]:
        return statistics.folders_without_project(self._db, self._owner(owner), limit)

    async def rooted(self, owner: str, root: str) -> str | None:
        return statistics.project_of_root(self._db, self._owner(owner), root)

    async def roots(self, owner: str, project: str) -> list[str]:
        return statistics.roots_of_project(self._db, self._owner(owner), project)

    async def token(self, digest: bytes) -> Token | None:
        return tokens.find_token(self._db, digest)

    async def tokens(self, owner: str | None) -> list[Token]:
        return tokens.list_tokens(self._db, owner)

    async def chats(self) -> list[str]:
        return [row[0] for row in fetch(self._db, CHATS)]

    async def silent(
        self, owner: str | None, chat: str, before: int, after: SilentChat | None, limit: int
    ) -> list[SilentChat]:
        heard_at, last_owner, last_id, _ = after or SilentChat(-1, "", "")
        bound = {
            "chat": chat,
            "before": before,
            "heard_at": heard_at,
            "last_owner": self._owner(last_owner),
            "last_id": last_id,
            "owner": None if owner is None else self._owner(owner),
            "limit": limit,
        }
        rows = fetch(self._db, SILENT, bound)
        return [SilentChat(at, name, row[1], _undamaged(name, tuple(row))) for at, name, *row in rows]

    async def duty(self, name: str) -> str | None:
        rows = fetch(self._db, DUTY, (name,))
        return rows[0][0] if rows else None

    async def access(self) -> int:
        return tokens.count_changed(self._db)

    async def link(self, owner: str, account: Account) -> Account | None:
        return tokens.find_link(self._db, owner, account)

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        return tokens.list_linked(self._db, owner, account)

    def _owner(self, owner: str) -> int:
        """The owner's number; 0, which nobody has, if there is none. Numbers stay, so they are looked up once."""
        known = self._owners.get(owner)
        if known is None:
            rows = fetch(self._db, OWNER, (owner,))
            if not rows:
                return 0
            known = self._owners[owner] = rows[0][0]
        return known

    def _known(self, owner: str) -> Owner:
        return Owner(self._owner(owner), owner)

    def _few_on_day(self, owner: str, given: Filter) -> list[int] | None:
        """The sessions of the day, if one is given and they are few."""
        if given.day is None:
            return None
        return self._searched(owner).spoken(self._owner(owner), day_number(given.day), FEW_ON_A_DAY)

    def _spoken(self, owner: str, given: Filter, rows: Iterator[_Seen]) -> Iterator[_Seen]:
        """The rows, of which only those pass that spoke on the day, if one is given."""
        if given.day is None:
            yield from rows
            return
        num, day = self._owner(owner), day_number(given.day)
        while some := list(islice(rows, LOOKED_AT)):
            there = self._searched(owner).among(num, day, [each for _, _, each, passes in some if passes])
            yield from ((at, id_, each, int(each in there)) for at, id_, each, _ in some)

    def _record(self, owner: str, sql: str, value: Any) -> Record | None:
        rows = fetch(self._db, sql, (self._owner(owner), value))
        return record_of(owner, rows[0]) if rows else None

    def _listed(self, owner: str, nums: Sequence[int]) -> list[Record]:
        """Sessions for a list, in this order; damaged ones are left out and reported only to callers who ask for them."""
        rows = fetch(self._db, LISTED, (encode(nums).decode(), self._owner(owner)))
        found = {row[0]: row for row in rows}
        return [
            record for num in nums if num in found and (record := _undamaged(owner, found[num])) is not None
        ]

    def _bound(self, owner: str, given: Filter) -> dict[str, Any]:
        """The parameters of `PASSES`; NULL asks for nothing."""
        terms = text_terms(given)
        return {
            "owner": self._owner(owner),
            "archived": {"exclude": 0, "only": 1, "include": None}[given.archived],
            "project": given.project,
            "cwd": None if given.cwd is None else given.cwd.encode("utf-8", "surrogatepass"),
            "agent_id": given.agent_id,
            "channel": given.channel,
            "source": given.source,
            "native": given.native,
            "status": given.status,
            "or_status": next(reversed(statuses(given)), None),
            "pinned": given.pinned,
            "created_after": given.created_after,
            "created_before": given.created_before,
            "updated_after": given.updated_after,
            "updated_before": given.updated_before,
            "tags": encode(given.tags).decode() if given.tags else None,
            "needles": encode([_needle(term) for term in terms]).decode() if terms else None,
        }

    def _floor(self, owner: str, given: Filter) -> int:
        """Below this no session of the list can pass; 0 where a stamp is ahead of its place in the list."""
        bounds = [bound for bound in (given.updated_after, given.created_after) if bound is not None]
        return max(bounds) if bounds and not fetch(self._db, AHEAD, (self._owner(owner),)) else 0

    def _walk(self, sql: str, bound: dict[str, Any]) -> Iterator[_Seen]:
        return cast("Iterator[_Seen]", self._db.execute(sql, bound))

    def _take(self, owner: str, rows: Iterator[_Seen], limit: int, examine: int) -> Scan:
        """The first rows that pass; one more is looked for, to know whether there is more."""
        nums: list[int] = []
        last: tuple[int, str] | None = None
        ended = True
        for examined, (at, id_, num, passes) in enumerate(rows, 1):
            if passes and len(nums) == limit:
                ended = False
                break
            last = at, id_
            if passes:
                nums.append(num)
            if examined == examine:
                ended = False
                break
        return Scan(self._listed(owner, nums), None if last is None else ListKey(*last), ended)


def _match(key: int, order: int, pos: int) -> Match:
    at, tie = key >> TIE_BITS, key & TIE_MASK
    return (
        Match(at, tie, order, pos >> SEQ_BITS, pos & SEQ_MASK) if pos > 0 else Match(at, tie, order, -pos, 0)
    )


def _whole_spans(owner: str, num: int, name: str, rows: Sequence[Sequence[Any]]) -> Spans:
    """The spans of a list. `StoreDamaged` if they are not what was written."""
    size = len(rows)
    for *span, order, crc in rows:
        if not is_span(num, *span[:3]):
            raise StoreDamaged("a span is damaged; run `hitherto doctor`")
        if crc is not None and crc != checksum(owner, num, name, order, size, *span):
            raise StoreDamaged("the spans of a session were altered; run `hitherto doctor`")
    return tuple(Span(*row[:5]) for row in rows)


def _undamaged(owner: str, row: tuple[Any, ...]) -> Record | None:
    try:
        return record_of(owner, row)
    except StoreDamaged:
        return None


def _driver(given: Filter) -> str:
    asked = {
        "tag": bool(given.tags),
        "pinned": given.pinned is True,
        "channel": given.channel is not None,
        "busy": given.status not in (None, "idle"),
        "agent_id": given.agent_id is not None,
        "source": given.source is not None,
        "project": given.project is not None,
        "cwd": given.cwd is not None,
        "time": True,
    }
    return next(name for name, holds in asked.items() if holds)


def _needle(term: Term) -> str:
    return f" {' '.join(term.tokens)}" + ("" if term.prefix else " ")
