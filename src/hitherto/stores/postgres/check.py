"""Looking for damage, mending what is derived from the rest (tags, titles, counters, the words of the search), and setting
aside what nothing explains. Nothing is removed.

Everything is looked at in transactions of a moderate size, while the store is in use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from hitherto.model import Lease, decode_entry, search_text
from hitherto.ports import Health, Record
from hitherto.stores.postgres import search
from hitherto.stores.postgres.partitions import LED_BY_OWNER
from hitherto.stores.postgres.pending_rows import (
    DROP_TAGS,
    DROP_TITLE,
    PUT_TAG,
    PUT_TITLE,
    tag_values,
    title_values,
)
from hitherto.stores.postgres.read_tx import is_entry_whole
from hitherto.stores.postgres.rows import (
    COLUMNS,
    OWN,
    Row,
    is_session_whole,
    session_checksum,
    whole_records,
)
from hitherto.stores.postgres.statistics import days_of, kept_days, recount
from hitherto.stores.postgres.tokens import is_whole as is_token_whole
from hitherto.stores.postgres.transactions import ANY_PLAN, READ, UNHURRIED, WRITE, Statements, Transactions
from hitherto.values import words
from hitherto.values.checksums import (
    checksum,
    entry_seeds,
    is_lease_whole,
    is_read_whole,
    lease_checksum,
    read_checksum,
)
from hitherto.values.scopes import is_rule_whole

NUM = OWN.index("num")
BATCH = 500
MOST_TOLD = 100

# Entries that a view of a session needs, and whether they are there.
HOLES = """
SELECT s.owner, s.id, p.name FROM span p JOIN session s ON s.owner = p.owner AND s.num = p.num
WHERE s.owner = %(owner)s AND p.owner = %(owner)s AND greatest(coalesce(p.last_seq, s.head) - p.first_seq + 1, 0) <> (
    SELECT count(*) FROM entry e
    WHERE e.owner = %(owner)s AND e.log = p.log AND e.seq BETWEEN p.first_seq AND coalesce(p.last_seq, s.head)
) LIMIT %(most)s
"""
# Where a log ends: at the session's head, by entries or by the sums of removed ones.
HEADS = """
SELECT s.owner, s.id FROM session s LEFT JOIN LATERAL (
    SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM (
        (SELECT * FROM (SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM entry e
         WHERE e.owner = %(owner)s AND e.log = s.num ORDER BY seq DESC LIMIT 1) newest)
        UNION ALL
        (SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM removed_sums r
         WHERE r.owner = %(owner)s AND r.log = s.num ORDER BY seq DESC LIMIT 1)
    ) ends ORDER BY seq DESC LIMIT 1
) e ON true
WHERE s.owner = %(owner)s AND (s.head, s.total_tokens, s.total_errors, s.total_cost, s.total_bytes) IS DISTINCT FROM (
    coalesce(e.seq, 0), coalesce(e.total_tokens, 0), coalesce(e.total_errors, 0), coalesce(e.total_cost, 0),
    coalesce(e.total_bytes, 0))
LIMIT %(most)s
"""
# The sums at the two ends of a span are looked up by log and place: among all entries of the owner, each session would cost as
# much as all of them.
COUNTERS = """
SELECT s.owner, s.id FROM session s LEFT JOIN LATERAL (
    SELECT sum(p.last_seq - p.first_seq + 1) AS messages,
           sum(upto.total_tokens - coalesce(before.total_tokens, 0)) AS tokens,
           sum(upto.total_errors - coalesce(before.total_errors, 0)) AS errors,
           sum(upto.total_cost - coalesce(before.total_cost, 0)) AS cost,
           sum(upto.total_bytes - coalesce(before.total_bytes, 0)) AS bytes
    FROM (SELECT owner, log, first_seq, coalesce(last_seq, s.head) AS last_seq FROM span
          WHERE owner = %(owner)s AND num = s.num AND name = '' AND kind <> 'reset') p
    LEFT JOIN LATERAL (
        SELECT total_tokens, total_errors, total_cost, total_bytes FROM entry
        WHERE owner = %(owner)s AND log = p.log AND seq = p.last_seq
        UNION ALL
        SELECT total_tokens, total_errors, total_cost, total_bytes FROM removed_sums
        WHERE owner = %(owner)s AND log = p.log AND seq = p.last_seq
        LIMIT 1
    ) upto ON true
    LEFT JOIN LATERAL (
        SELECT total_tokens, total_errors, total_cost, total_bytes FROM entry
        WHERE owner = %(owner)s AND log = p.log AND seq = p.first_seq - 1
        UNION ALL
        SELECT total_tokens, total_errors, total_cost, total_bytes FROM removed_sums
        WHERE owner = %(owner)s AND log = p.log AND seq = p.first_seq - 1
        LIMIT 1
    ) before ON true
    WHERE p.last_seq >= p.first_seq
) c ON true
WHERE s.owner = %(owner)s AND ((s.message_count, coalesce(s.token_count, 0), s.error_count, s.bytes)
    IS DISTINCT FROM (coalesce(c.messages, 0), coalesce(c.tokens, 0), coalesce(c.errors, 0), coalesce(c.bytes, 0))
    OR round(coalesce(s.cost, 0) * 1000000) < coalesce(c.cost, 0)
    -- The cost of what left the context stays, and a checkpoint holds that.
    OR round(coalesce(s.cost, 0) * 1000000) > coalesce(c.cost, 0)
    AND NOT EXISTS (SELECT FROM checkpoint k WHERE k.owner = %(owner)s AND k.num = s.num))
LIMIT %(most)s
"""
_ORPHANS = """
SELECT owner, log FROM (SELECT DISTINCT owner, log FROM entry WHERE owner = %(owner)s) e
WHERE NOT EXISTS (SELECT FROM session s WHERE s.owner = %(owner)s AND s.num = e.log)
  AND NOT EXISTS (SELECT FROM span p WHERE p.owner = %(owner)s AND p.log = e.log)
  AND NOT EXISTS (SELECT FROM garbage g WHERE g.owner = %(owner)s AND g.unreached = e.log)
  AND NOT EXISTS (SELECT FROM quarantine q WHERE q.owner = %(owner)s AND q.log = e.log)
"""
ORPHANS = f"SELECT count(*) FROM ({_ORPHANS}) o"
SET_ORPHANS_ASIDE = f"""
WITH moved AS (
    INSERT INTO quarantine (owner, log, at, why)
    SELECT owner, log, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
           'no session has it, and nothing says that one was deleted' FROM ({_ORPHANS}) o
    ON CONFLICT DO NOTHING RETURNING 1
) SELECT count(*) FROM moved
"""
_EXPLAINED = """quarantine q WHERE q.owner = %(owner)s AND (
        EXISTS (SELECT FROM session s WHERE s.owner = %(owner)s AND s.num = q.log)
        OR EXISTS (SELECT FROM span p WHERE p.owner = %(owner)s AND p.log = q.log))"""
EXPLAINED = f"SELECT count(*) FROM {_EXPLAINED}"
RELEASE_EXPLAINED = f"WITH gone AS (DELETE FROM {_EXPLAINED} RETURNING 1) SELECT count(*) FROM gone"
ANALYZE = "ANALYZE session, title, entry, fact, fact_mark, tag, live, memo, raw_copy"
KEEP_PROBLEMS = """
INSERT INTO known_problems (one, problems) VALUES (1, %s) ON CONFLICT (one) DO UPDATE SET problems = excluded.problems
"""
NO_PROBLEMS = "DELETE FROM known_problems"

SESSIONS = f"""
SELECT {COLUMNS} FROM session WHERE owner = %(owner)s AND num > %(num)s ORDER BY num LIMIT %(batch)s
"""
LOCKED_SESSIONS = f"{SESSIONS} FOR UPDATE"
TAGS = "SELECT id, tag, archived, order_at FROM tag WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])"
TITLES = """
SELECT t.num, t.text, t.words = document_words(t.number, %(mark)s, s.words) || moment_marks(t.said, %(mark)s)
FROM unnest(%(nums)s::bigint[], %(words)s::text[]) s (num, words)
JOIN title t ON t.owner = %(owner)s AND t.num = s.num
"""
_NO_SESSION = "NOT EXISTS (SELECT FROM session s WHERE s.owner = %(owner)s AND"
_STRAY_TAGS = f"tag t WHERE t.owner = %(owner)s AND {_NO_SESSION} s.id = t.id)"
_STRAY_TITLES = f"title t WHERE t.owner = %(owner)s AND {_NO_SESSION} s.num = t.num)"
STRAYS = f"SELECT (SELECT count(*) FROM {_STRAY_TAGS}) + (SELECT count(*) FROM {_STRAY_TITLES})"
DROP_STRAYS = f"""
WITH tags AS (DELETE FROM {_STRAY_TAGS} RETURNING 1), titles AS (DELETE FROM {_STRAY_TITLES} RETURNING 1)
SELECT (SELECT count(*) FROM tags) + (SELECT count(*) FROM titles)
"""

ENTRIES = """
SELECT log, seq, role, payload FROM entry
WHERE owner = %(owner)s AND (log, seq) > (%(log)s, %(seq)s) AND number IS NOT NULL
ORDER BY log, seq LIMIT %(batch)s
"""
_GIVEN = "unnest(%(logs)s::bigint[], %(seqs)s::bigint[], %(words)s::text[]) g (log, seq, words)"
_STALE = """e.owner = %(owner)s AND e.log = g.log AND e.seq = g.seq AND e.number IS NOT NULL
    AND e.words IS DISTINCT FROM document_words(e.number, %(mark)s, g.words) || moment_marks(e.said, %(mark)s)"""
STALE_WORDS = f"SELECT count(*) FROM entry e JOIN {_GIVEN} ON {_STALE}"
MEND_WORDS = f"""
WITH mended AS (
    UPDATE entry e SET words = document_words(e.number, %(mark)s, g.words) || moment_marks(e.said, %(mark)s) FROM {_GIVEN} WHERE {_STALE} RETURNING 1
) SELECT count(*) FROM mended
"""

_STRAY_DAYS = f"day d WHERE d.owner = %(owner)s AND {_NO_SESSION} s.num = d.num)"
STRAY_DAYS = f"SELECT count(*) FROM {_STRAY_DAYS}"
DROP_STRAY_DAYS = f"WITH gone AS (DELETE FROM {_STRAY_DAYS} RETURNING 1) SELECT count(*) FROM gone"
# Whoever has anything at all, also what nothing explains.
OWNERS = " UNION ".join(f"SELECT DISTINCT owner FROM {table}" for table in LED_BY_OWNER)
LOCK_LANES = "SELECT 1 FROM lane WHERE owner = %s ORDER BY lane FOR UPDATE"
WRONG_FACETS = """
SELECT count(*) FROM (SELECT value, kind, lane, sessions FROM facet WHERE owner = %(owner)s) kept
FULL JOIN (SELECT value, kind, lane, sessions FROM facet_as_it_should_be WHERE owner = %(owner)s) right_ones
    USING (kind, value, lane)
WHERE kept.sessions IS DISTINCT FROM right_ones.sessions
"""
MEND_FACETS = (
    "DELETE FROM facet WHERE owner = %(owner)s",
    """INSERT INTO facet (owner, kind, value, lane, sessions)
    SELECT owner, kind, value, lane, sessions FROM facet_as_it_should_be WHERE owner = %(owner)s""",
)


class _Verdict(NamedTuple):
    """Whether a row is what was written, and the checksums that it lacks."""

    whole: bool
    lacks: tuple[int | bytes, ...] | None


class _Summed(NamedTuple):
    """Rows with checksums: batch after batch in the order of their key, which begins behind `start`; those of an owner, unless
    they are the store's own."""

    rows: str
    start: tuple[object, ...]
    judge: Callable[[Row], _Verdict]
    give: str

    def starts(self, owners: Sequence[str]) -> list[Row]:
        """Where to begin: for each owner, or once."""
        return [(owner, *self.start[1:]) for owner in owners] if " owner = %s" in self.rows else [self.start]


def _judge_session(row: Row) -> _Verdict:
    expected = session_checksum(row[2:])
    known = row[2 + OWN.index("crc")]
    return _Verdict(is_session_whole(row[2:]), None if known == expected else (expected,))


def _judge_lease(row: Row) -> _Verdict:
    owner, num, holder, fence, acquired, expires, known = row
    if holder is None:
        return _Verdict(known is None, None)
    lease = Lease(holder=holder, fence=fence, acquired_at=acquired, expires_at=expires)
    expected = lease_checksum(owner, num, lease)
    return _Verdict(is_lease_whole(owner, num, lease, known), None if known == expected else (expected,))


def _judge_read_mark(row: Row) -> _Verdict:
    owner, num, read_at, known = row
    expected = read_checksum(owner, num, read_at)
    lacks = None if expected is None or known == expected else (expected,)
    return _Verdict(is_read_whole(owner, num, read_at, known), lacks)


def _judge_entry(row: Row) -> _Verdict:
    owner, log, seq, payload, crc, erased, *beside, row_crc = row
    (seed,) = entry_seeds(owner, log, seq, seq)
    expected = (crc32(payload) + seed, checksum(owner, log, seq, *beside))
    whole = is_entry_whole(seed, payload, crc, erased) and row_crc in (None, expected[1])
    return _Verdict(whole, None if (crc, row_crc) == expected else expected)


def _judge_checkpoint(row: Row) -> _Verdict:
    *checked, crc, has_spans = row
    verdict = _judge((*checked, crc))
    return verdict._replace(whole=verdict.whole and has_spans)


def _judge_token(row: Row) -> _Verdict:
    *checked, crc, rule, rule_crc = row
    expected = checksum(*checked)
    whole = is_token_whole((*checked, crc)) and is_rule_whole(row[0], rule, rule_crc)
    return _Verdict(whole, None if crc == expected else (expected,))


def _judge_raw_copy(row: Row) -> _Verdict:
    owner, num, name, found, digest, crc = row
    expected = (found, checksum(owner, num, name, found))
    return _Verdict(
        digest in (None, found) and crc in (None, expected[1]),
        None if (digest, crc) == expected else expected,
    )


def _judge(row: Row) -> _Verdict:
    """By a checksum of all that is before it."""
    *checked, crc = row
    expected = checksum(*checked)
    return _Verdict(crc in (None, expected), None if crc == expected else (expected,))


def _batch(columns: str, table: str, *key: str) -> str:
    """A statement with a place for each column of the key: the owner, if that leads it, and what the last batch came to."""
    equal, rest = ("owner = %s AND ", key[1:]) if key[0] == "owner" else ("", key)
    led, bound = ", ".join(rest), ", ".join("%s" for _ in rest)
    return f"SELECT {', '.join(key)}, {columns} FROM {table} WHERE {equal}({led}) > ({bound}) ORDER BY {led} LIMIT {BATCH}"


SUMMED = {
    "sessions": _Summed(
        _batch(COLUMNS, "session", "owner", "num"),
        ("", 0),
        _judge_session,
        "UPDATE session SET crc = %s WHERE owner = %s AND num = %s",
    ),
    "leases": _Summed(
        _batch(
            "lease_holder, lease_fence, lease_acquired_at, lease_expires_at, lease_crc",
            "session",
            "owner",
            "num",
        ),
        ("", 0),
        _judge_lease,
        "UPDATE session SET lease_crc = %s WHERE owner = %s AND num = %s",
    ),
    "read marks": _Summed(
        _batch("read_at, read_crc", "session", "owner", "num"),
        ("", 0),
        _judge_read_mark,
        "UPDATE session SET read_crc = %s WHERE owner = %s AND num = %s",
    ),
    "entries": _Summed(
        _batch(
            "payload, crc, number IS NULL, id, role, total_tokens, total_errors, total_cost, total_bytes, row_crc",
            "entry",
            "owner",
            "log",
            "seq",
        ),
        ("", 0, 0),
        _judge_entry,
        "UPDATE entry SET crc = %s, row_crc = %s WHERE owner = %s AND log = %s AND seq = %s",
    ),
    "spans": _Summed(
        _batch(
            "(SELECT count(*) FROM span n WHERE n.owner = p.owner AND n.num = p.num AND n.name = p.name),"
            " log, first_seq, last_seq, kind, expands, crc",
            "span p",
            "owner",
            "num",
            "name",
            "ordinal",
        ),
        ("", 0, "", 0),
        _judge,
        "UPDATE span SET crc = %s WHERE owner = %s AND num = %s AND name = %s AND ordinal = %s",
    ),
    "checkpoints": _Summed(
        _batch(
            "at, reason, message_count, token_count, crc, message_count = 0 OR EXISTS ("
            "SELECT FROM span p WHERE p.owner = c.owner AND p.num = c.num AND p.name = c.id)",
            "checkpoint c",
            "owner",
            "num",
            "id",
        ),
        ("", 0, ""),
        _judge_checkpoint,
        "UPDATE checkpoint SET crc = %s WHERE owner = %s AND num = %s AND id = %s",
    ),
    "facts": _Summed(
        _batch(
            "at, text, kind, session, entries, more, agent, person, subject, outdone_by, said, crc",
            "fact",
            "owner",
            "id",
        ),
        ("", ""),
        _judge,
        "UPDATE fact SET crc = %s WHERE owner = %s AND id = %s",
    ),
    "waiting messages": _Summed(
        _batch("id, body, crc", "inbox", "owner", "num", "ordinal"),
        ("", 0, 0),
        _judge,
        "UPDATE inbox SET crc = %s WHERE owner = %s AND num = %s AND ordinal = %s",
    ),
    "tokens": _Summed(
        _batch(
            "digest, owner, scopes, role, label, created_at, revoked_at, crc, rule, rule_crc", "token", "id"
        ),
        ("",),
        _judge_token,
        "UPDATE token SET crc = %s WHERE id = %s",
    ),
    "raw copies": _Summed(
        _batch("sha256(data), digest, crc", "raw_copy", "owner", "num", "name"),
        ("", 0, ""),
        _judge_raw_copy,
        "UPDATE raw_copy SET digest = %b, crc = %s WHERE owner = %s AND num = %s AND name = %s",
    ),
}
# Rows that need not stay as they are, once altered: how to mend one, and what that is.
MENDED = {
    # A new fence: whoever held it must not go on.
    "leases": (
        """UPDATE session SET lease_fence = (lease_fence | 65535) + 1, lease_expires_at = 0, lease_crc = NULL
        WHERE owner = %s AND num = %s""",
        "ended",
    ),
    # As if it had never been read: only who reads it could say.
    "read marks": (
        "UPDATE session SET read_at = NULL, read_crc = NULL WHERE owner = %s AND num = %s",
        "forgotten",
    ),
}

# What only a person can judge: the statement, and what its rows say of a session.
DAMAGE = (
    (HOLES, "spans reach entries that are not there"),
    (HEADS, "its log does not end where it should"),
    (COUNTERS, "its counters differ from its entries"),
)
# What can be mended in one statement: how to count it, how to mend it, and what it is.
UNEXPLAINED = "logs that nothing explains"
LEFTOVERS = (
    (EXPLAINED, RELEASE_EXPLAINED, "logs in quarantine were explained again"),
    (STRAYS, DROP_STRAYS, "tags and titles belonged to no session"),
    (STRAY_DAYS, DROP_STRAY_DAYS, "days belonged to no session"),
)
CHECKED = (
    "every row is what was written, where it was written",
    "every span reaches entries that exist",
    "every log ends where its session says",
    "every session's counters equal what its entries say",
    "nothing unreachable is forgotten",
    "lists by tag hold every session",
    "the search holds every title and every entry",
    "the numbers of sessions are right",
    "every session is counted on the days of its entries",
)


async def check(transactions: Transactions, *, repair: bool) -> Health:
    """Everything that can be wrong with the tables: owner by owner, so that each statement is about one node of a
    distributed database."""
    owners = [row[0] for row in await transactions.run(READ, lambda tx: tx.rows(OWNERS))]
    problems = [
        problem
        for statement, what in DAMAGE
        for owner in owners
        for problem in await _damage(transactions, owner, statement, what)
    ][: MOST_TOLD * len(DAMAGE)]
    mended, lacking = list[str](), 0
    for name, summed in SUMMED.items():
        mend, done = MENDED.get(name, (None, "")) if repair else (None, "")
        judged = [await _judged(transactions, start, summed, mend) for start in summed.starts(owners)]
        lacking += sum(each.lacking for each in judged)
        altered = sum(each.altered for each in judged)
        if altered and mend:
            mended.append(f"{name}: {altered} altered, and {done}")
        elif altered:
            problems.append(f"{name}: {altered} altered")
    # To set something aside needs no trust in the rest; what is derived from damaged rows is left as it is.
    orphans = SET_ORPHANS_ASIDE if repair else ORPHANS
    aside = sum([await _count(transactions, owner, repair, orphans) for owner in owners])
    unexplained = [f"{aside} {UNEXPLAINED}{', moved to quarantine' if repair else ''}"] if aside else []
    sets_aside, repair = repair, repair and not problems
    derived = [
        f"{count} {what}" for what, count in (await _derived(transactions, owners, repair)).items() if count
    ]
    if repair and lacking:
        given = [
            await _given(transactions, start, summed)
            for summed in SUMMED.values()
            for start in summed.starts(owners)
        ]
        derived.append(f"checksums: {sum(given)} rows had none, and have one now")
    problems += [] if sets_aside else unexplained
    problems += [] if repair else derived
    await _remember(transactions, problems)
    return Health(
        checked=CHECKED,
        problems=tuple(problems),
        repaired=(
            *mended,
            *(unexplained if sets_aside else ()),
            *(derived if repair else ()),
        ),
    )


async def _derived(transactions: Transactions, owners: Sequence[str], repair: bool) -> dict[str, int]:
    """How much of what follows from the rest is wrong, or was."""
    counts: Counter[str] = Counter()
    for owner in owners:
        for counting, mending, what in LEFTOVERS:
            counts[what] += await _count(transactions, owner, repair, mending if repair else counting)
        for what, look in DERIVED.items():
            counts[what] += await look(transactions, owner, repair)
    return counts


async def forget_samples(tx: Statements) -> None:
    """Draw samples of the tables anew: those that the planner has may be words that are gone."""
    await tx.queue(UNHURRIED)
    await tx.queue(ANALYZE)


class _Judged(NamedTuple):
    """How many rows were altered, and how many lack a checksum."""

    altered: int
    lacking: int


async def _judged(transactions: Transactions, start: Row, summed: _Summed, mend: str | None) -> _Judged:
    """How the rows are, batch by batch; those that were altered are mended if there is a way."""
    altered, lacking, last = 0, 0, start
    while True:

        async def work(tx: Statements, after: Row = last) -> tuple[int, int, Row | None]:
            rows = await tx.rows(f"{summed.rows} FOR UPDATE" if mend else summed.rows, after)
            verdicts = [(summed.judge(row), row[: len(after)]) for row in rows]
            wrong = [key for verdict, key in verdicts if not verdict.whole]
            if mend:
                await tx.queue_many(mend, wrong)
            return (
                len(wrong),
                sum(verdict.whole and verdict.lacks is not None for verdict, _ in verdicts),
                verdicts[-1][1] if len(verdicts) == BATCH else None,
            )

        wrong, few, reached = await transactions.run(WRITE if mend else READ, work)
        altered, lacking = altered + wrong, lacking + few
        if reached is None:
            return _Judged(altered, lacking)
        last = reached


async def _given(transactions: Transactions, start: Row, summed: _Summed) -> int:
    """Give a checksum to rows that are right and have none; returns how many."""
    given, last = 0, start
    while True:

        async def work(tx: Statements, after: Row = last) -> tuple[int, Row | None]:
            rows = await tx.rows(f"{summed.rows} FOR UPDATE", after)
            lacking = [
                (*verdict.lacks, *row[: len(after)])
                for row in rows
                if (verdict := summed.judge(row)).whole and verdict.lacks is not None
            ]
            await tx.queue_many(summed.give, lacking)
            return len(lacking), rows[-1][: len(after)] if len(rows) == BATCH else None

        count, reached = await transactions.run(WRITE, work)
        given += count
        if reached is None:
            return given
        last = reached


async def _remember(transactions: Transactions, problems: list[str]) -> None:
    """While a problem is known, nothing is collected."""

    async def work(tx: Statements) -> None:
        if problems:
            await tx.queue(KEEP_PROBLEMS, ("\n".join(problems),))
        else:
            await tx.queue(NO_PROBLEMS)

    await transactions.run(WRITE, work)


async def _damage(transactions: Transactions, owner: str, statement: str, what: str) -> list[str]:
    async def work(tx: Statements) -> list[Row]:
        await tx.queue(UNHURRIED)
        await tx.queue(ANY_PLAN)
        return await tx.rows(statement, {"owner": owner, "most": MOST_TOLD})

    rows = await transactions.run(READ, work)
    return [f"owner {row[0]!r}, session {row[1]!r}: {what}" for row in rows]


async def _count(transactions: Transactions, owner: str, repair: bool, statement: str) -> int:
    async def work(tx: Statements) -> int:
        await tx.queue(UNHURRIED)
        await tx.queue(ANY_PLAN)
        return int((await tx.rows(statement, {"owner": owner}))[0][0])

    return await transactions.run(WRITE if repair else READ, work)


Mend = Callable[[Statements, str, Sequence[Record], bool], Awaitable[int]]


async def _sessions(mend: Mend, transactions: Transactions, owner: str, repair: bool) -> int:
    """How many sessions were not as they should be, batch by batch."""
    found, last = 0, 0
    while True:

        async def work(tx: Statements, after: int = last) -> tuple[int, int | None]:
            params = {"owner": owner, "num": after, "batch": BATCH}
            rows = await tx.rows(LOCKED_SESSIONS if repair else SESSIONS, params)
            # What was altered is told of elsewhere.
            count = await mend(tx, owner, whole_records(rows), repair) if rows else 0
            return count, rows[-1][NUM] if len(rows) == BATCH else None

        count, reached = await transactions.run(WRITE if repair else READ, work)
        found += count
        if reached is None:
            return found
        last = reached


async def _mend_tags(tx: Statements, owner: str, records: Sequence[Record], repair: bool) -> int:
    known = defaultdict(set)
    params = {"owner": owner, "ids": [each.session.id for each in records]}
    for session_id, *rest in await tx.rows(TAGS, params):
        known[session_id].add(tuple(rest))
    wrong = [each for each in records if known[each.session.id] != set(map(_listed, tag_values(each)))]
    for record in wrong if repair else ():
        await tx.queue(DROP_TAGS, (record.owner, record.session.id, list(record.session.tags)))
        await tx.queue_many(PUT_TAG, tag_values(record))
    return len(wrong)


def _listed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values[2:]


async def _mend_titles(tx: Statements, owner: str, records: Sequence[Record], repair: bool) -> int:
    values = [title_values(each) for each in records]
    params = {
        "owner": owner,
        "mark": search.mark(owner),
        "nums": [each["num"] for each in values],
        "words": [each["words"] for each in values],
    }
    known = {num: text for num, text, fresh in await tx.rows(TITLES, params) if fresh}
    wrong = [each for each in values if known.get(each["num"], "") != each["text"]]
    for each in wrong if repair else ():
        await tx.queue(DROP_TITLE, (owner, each["num"]))
        if each["text"]:
            await tx.queue(PUT_TITLE, each)
    return len(wrong)


async def _mend_days(tx: Statements, owner: str, records: Sequence[Record], repair: bool) -> int:
    kept = await kept_days(tx, owner, [each.num for each in records])
    wrong = [each for each in records if kept[each.num] != await days_of(tx, owner, each.num)]
    for record in wrong if repair else ():
        await recount(tx, owner, record.num)
    return len(wrong)


async def _facets(transactions: Transactions, owner: str, repair: bool) -> int:
    """How many numbers of sessions were wrong: nobody changes them meanwhile."""

    async def work(tx: Statements) -> int:
        await tx.queue(UNHURRIED)
        await tx.queue(ANY_PLAN)
        if repair:
            await tx.queue(LOCK_LANES, (owner,))
        wrong = int((await tx.rows(WRONG_FACETS, {"owner": owner}))[0][0])
        for statement in MEND_FACETS if wrong and repair else ():
            await tx.queue(statement, {"owner": owner})
        return wrong

    return await transactions.run(WRITE if repair else READ, work)


async def _entries(transactions: Transactions, owner: str, repair: bool) -> int:
    """How many entries had other words than they should, batch by batch."""
    found, last = 0, (0, 0)
    while True:

        async def work(tx: Statements, after: tuple[int, int] = last) -> tuple[int, tuple[int, int] | None]:
            params = {"owner": owner, "log": after[0], "seq": after[1], "batch": BATCH}
            rows = await tx.rows(ENTRIES, params)
            if not rows:
                return 0, None
            count = await tx.rows(MEND_WORDS if repair else STALE_WORDS, _entry_words(owner, rows))
            return int(count[0][0]), (rows[-1][0], rows[-1][1]) if len(rows) == BATCH else None

        count, reached = await transactions.run(WRITE if repair else READ, work)
        found += count
        if reached is None:
            return found
        last = reached


def _entry_words(owner: str, rows: Sequence[Row]) -> dict[str, Any]:
    logs, seqs, roles, payloads = map(list, zip(*rows, strict=True))
    texts = (words.searchable(search_text(decode_entry(payload))) for payload in payloads)
    vectors = [search.vector(owner, role, text) for role, text in zip(roles, texts, strict=True)]
    return {"owner": owner, "mark": search.mark(owner), "logs": logs, "seqs": seqs, "words": vectors}


DERIVED: Mapping[str, Callable[[Transactions, str, bool], Awaitable[int]]] = {
    "sessions were listed under wrong tags or not at all": partial(_sessions, _mend_tags),
    "numbers of sessions were wrong": _facets,
    "titles were not found by their words": partial(_sessions, _mend_titles),
    "entries were not found by their words": _entries,
    "sessions were counted on wrong days": partial(_sessions, _mend_days),
}
"""What follows from the rest, batch by batch: what may be wrong, and how many there are of it, or were."""
