"""Looking for damage, and mending what is derived from the rest: tags, titles and the words of the search.

Everything is looked at in transactions of a moderate size, while the store is in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from recollect import words
from recollect.filters import title_text
from recollect.model import decode_entry, search_text
from recollect.ports import Health, Record
from recollect.stores.postgres import lexemes
from recollect.stores.postgres.holding import DROP_TAGS, DROP_TITLE, PUT_TAG, PUT_TITLE, tag_values, title_values
from recollect.stores.postgres.rows import COLUMNS, Row, record_of
from recollect.stores.postgres.transactions import READ, WRITE, Statements, Transactions

BATCH = 500
MOST_TOLD = 100

UNHURRIED = "SELECT set_config('statement_timeout', '0', true)"

# Entries that a view of a session needs, and whether they are there.
HOLES = """
SELECT s.owner, s.id, p.name FROM span p JOIN session s ON s.owner = p.owner AND s.num = p.num
WHERE greatest(coalesce(p.last_seq, s.head) - p.first_seq + 1, 0) <> (
    SELECT count(*) FROM entry e
    WHERE e.owner = p.owner AND e.log = p.log AND e.seq BETWEEN p.first_seq AND coalesce(p.last_seq, s.head)
) LIMIT %(most)s
"""
# Where a log ends: at the session's head, by entries or by the sums of removed ones.
HEADS = """
SELECT s.owner, s.id FROM session s LEFT JOIN LATERAL (
    SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM (
        (SELECT * FROM (SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM entry e
         WHERE e.owner = s.owner AND e.log = s.num ORDER BY seq DESC LIMIT 1) newest)
        UNION ALL
        (SELECT seq, total_tokens, total_errors, total_cost, total_bytes FROM removed_sums r
         WHERE r.owner = s.owner AND r.log = s.num ORDER BY seq DESC LIMIT 1)
    ) ends ORDER BY seq DESC LIMIT 1
) e ON true
WHERE (s.head, s.total_tokens, s.total_errors, s.total_cost, s.total_bytes) IS DISTINCT FROM (
    coalesce(e.seq, 0), coalesce(e.total_tokens, 0), coalesce(e.total_errors, 0), coalesce(e.total_cost, 0),
    coalesce(e.total_bytes, 0))
LIMIT %(most)s
"""
COUNTERS = """
WITH sums AS (
    SELECT owner, log, seq, total_tokens, total_errors, total_cost, total_bytes FROM entry
    UNION ALL
    SELECT owner, log, seq, total_tokens, total_errors, total_cost, total_bytes FROM removed_sums
)
SELECT s.owner, s.id FROM session s LEFT JOIN LATERAL (
    SELECT sum(p.last_seq - p.first_seq + 1) AS messages,
           sum(upto.total_tokens - coalesce(before.total_tokens, 0)) AS tokens,
           sum(upto.total_errors - coalesce(before.total_errors, 0)) AS errors,
           sum(upto.total_cost - coalesce(before.total_cost, 0)) AS cost,
           sum(upto.total_bytes - coalesce(before.total_bytes, 0)) AS bytes
    FROM (SELECT owner, log, first_seq, coalesce(last_seq, s.head) AS last_seq FROM span
          WHERE owner = s.owner AND num = s.num AND name = '') p
    LEFT JOIN sums upto ON upto.owner = p.owner AND upto.log = p.log AND upto.seq = p.last_seq
    LEFT JOIN sums before ON before.owner = p.owner AND before.log = p.log AND before.seq = p.first_seq - 1
    WHERE p.last_seq >= p.first_seq
) c ON true
WHERE (s.message_count, coalesce(s.token_count, 0), s.error_count, round(coalesce(s.cost, 0) * 1000000), s.bytes)
    IS DISTINCT FROM (coalesce(c.messages, 0), coalesce(c.tokens, 0), coalesce(c.errors, 0), coalesce(c.cost, 0),
                      coalesce(c.bytes, 0))
LIMIT %(most)s
"""
ORPHANS = """
SELECT owner, log FROM (SELECT DISTINCT owner, log FROM entry) e
WHERE NOT EXISTS (SELECT FROM session s WHERE s.owner = e.owner AND s.num = e.log)
  AND NOT EXISTS (SELECT FROM span p WHERE p.owner = e.owner AND p.log = e.log)
  AND NOT EXISTS (SELECT FROM garbage g WHERE g.owner = e.owner AND g.log = e.log)
"""
QUEUE_ORPHANS = f"INSERT INTO garbage (owner, log) {ORPHANS} ON CONFLICT DO NOTHING"

SESSIONS = f"""
SELECT {COLUMNS} FROM session WHERE (owner, num) > (%(owner)s, %(num)s) ORDER BY owner, num LIMIT %(batch)s
"""  # noqa: S608 - made of constants
LOCKED_SESSIONS = f"{SESSIONS} FOR UPDATE"
TAGS = """
SELECT t.owner, t.id, t.tag, t.archived, t.order_at
FROM unnest(%(owners)s::text[], %(ids)s::text[]) s (owner, id) JOIN tag t ON t.owner = s.owner AND t.id = s.id
"""
TITLES = """
SELECT t.owner, t.num, t.text, t.words = document_words(t.number, s.mark, s.words)
FROM unnest(%(owners)s::text[], %(nums)s::bigint[], %(marks)s::text[], %(words)s::text[]) s (owner, num, mark, words)
JOIN title t ON t.owner = s.owner AND t.num = s.num
"""
STRAY_TAGS = "SELECT FROM tag t WHERE NOT EXISTS (SELECT FROM session s WHERE s.owner = t.owner AND s.id = t.id)"
STRAY_TITLES = "SELECT FROM title t WHERE NOT EXISTS (SELECT FROM session s WHERE s.owner = t.owner AND s.num = t.num)"

ENTRIES = """
SELECT owner, log, seq, role, payload FROM entry
WHERE (owner, log, seq) > (%(owner)s, %(log)s, %(seq)s) AND number IS NOT NULL
ORDER BY owner, log, seq LIMIT %(batch)s
"""
_GIVEN = """unnest(%(owners)s::text[], %(logs)s::bigint[], %(seqs)s::bigint[], %(marks)s::text[], %(words)s::text[])
    g (owner, log, seq, mark, words)"""
_STALE = """e.owner = g.owner AND e.log = g.log AND e.seq = g.seq AND e.number IS NOT NULL
    AND e.words IS DISTINCT FROM document_words(e.number, g.mark, g.words)"""
STALE_WORDS = f"SELECT count(*) FROM entry e JOIN {_GIVEN} ON {_STALE}"
MEND_WORDS = f"""
WITH mended AS (
    UPDATE entry e SET words = document_words(e.number, g.mark, g.words) FROM {_GIVEN} WHERE {_STALE} RETURNING 1
) SELECT count(*) FROM mended
"""  # noqa: S608 - made of constants
