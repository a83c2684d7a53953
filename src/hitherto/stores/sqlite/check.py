"""Looking for damage. What is derived (tags, counts, days, the search index) can be mended; the rest is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from hitherto.errors import StoreDamaged
from hitherto.ports import Health
from hitherto.stores.sqlite.connection import fetch, transaction
from hitherto.stores.sqlite.rows import CHECKED, crc_of, is_whole
from hitherto.stores.sqlite.search_index import SearchIndex

ALTERED_SESSIONS = f"""
SELECT count(*) FROM session AS s WHERE crc <> crc_of((SELECT name FROM owner WHERE num = s.owner), {", ".join(CHECKED)})
"""
ALTERED_ENTRIES = """
SELECT count(*) FROM entry
WHERE NOT is_whole(payload, crc) OR typeof(tokens) <> 'integer' OR typeof(errors) <> 'integer'
    OR typeof(cost) <> 'integer' OR typeof(bytes) <> 'integer'
"""
MISSING_ENTRIES = """
SELECT count(*) FROM span AS p JOIN session AS s ON s.num = p.session
WHERE typeof(p.log) <> 'integer' OR typeof(p.first) <> 'integer' OR typeof(p.last) NOT IN ('integer', 'null')
OR p.last IS NULL AND p.log <> p.session
OR coalesce(p.last, s.head) >= p.first AND (
    SELECT count(*) FROM entry AS e
    WHERE e.pos BETWEEN (p.log << 24 | p.first) AND (p.log << 24 | coalesce(p.last, s.head))
) <> coalesce(p.last, s.head) - p.first + 1
"""
ORPHANS = """
SELECT count(DISTINCT pos >> 24) FROM entry
WHERE pos >> 24 NOT IN (SELECT num FROM session)
    AND pos >> 24 NOT IN (SELECT log FROM span)
    AND pos >> 24 NOT IN (SELECT log FROM garbage)
"""
COLLECT_ORPHANS = """
INSERT OR IGNORE INTO garbage (log)
SELECT DISTINCT pos >> 24 FROM entry
WHERE pos >> 24 NOT IN (SELECT num FROM session) AND pos >> 24 NOT IN (SELECT log FROM span)
"""
COUNTED = """
(SELECT coalesce(sum(coalesce(p.last, s.head) - p.first + 1), 0) FROM span AS p
 WHERE p.session = s.num AND p.name = '' AND coalesce(p.last, s.head) >= p.first)
"""
WRONG_COUNTS = f"SELECT count(*) FROM session AS s WHERE s.message_count <> {COUNTED}"
MEND_COUNTS = (
    f"UPDATE session AS s SET message_count = {COUNTED}, crc = NULL WHERE s.message_count <> {COUNTED}"
)
WRONG_HEADS = """
SELECT count(*) FROM session AS s
WHERE s.head < coalesce((SELECT max(pos) & 16777215 FROM entry WHERE pos BETWEEN s.num << 24 AND (s.num + 1 << 24) - 1), 0)
"""
TAGS_AS_THEY_SHOULD_BE = """
SELECT s.owner, t.value, s.archived, s.order_at, s.id, s.num
FROM session AS s, json_each(CAST(s.tags AS TEXT)) AS t WHERE s.tags IS NOT NULL
"""
WRONG_TAGS = f"""
SELECT count(*) FROM (
    SELECT * FROM ({TAGS_AS_THEY_SHOULD_BE} EXCEPT SELECT owner, tag, archived, order_at, id, session FROM tag)
    UNION ALL
    SELECT * FROM (SELECT owner, tag, archived, order_at, id, session FROM tag EXCEPT {TAGS_AS_THEY_SHOULD_BE}))
"""
MEND_TAGS = (
    f"DELETE FROM tag; INSERT INTO tag (owner, tag, archived, order_at, id, session) {TAGS_AS_THEY_SHOULD_BE}"
)


FACETS_AS_THEY_SHOULD_BE = f"""
SELECT owner, kind, value, count(*) FROM (
    SELECT owner, 'count' AS kind, iif(archived, 'archived', 'total') AS value FROM session
    UNION ALL SELECT owner, 'count', 'pinned' FROM session WHERE archived = 0 AND pinned = 1
    UNION ALL SELECT owner, 'agent', coalesce(source, agent_id) FROM session WHERE archived = 0
    UNION ALL SELECT owner, 'project', project FROM session WHERE archived = 0
    UNION ALL SELECT owner, 'source', source FROM session WHERE archived = 0
    UNION ALL SELECT owner, 'tag', value FROM ({TAGS_AS_THEY_SHOULD_BE}) WHERE archived = 0
) WHERE value IS NOT NULL GROUP BY owner, kind, value
"""
WRONG_FACETS = f"""
SELECT count(*) FROM (
    SELECT * FROM ({FACETS_AS_THEY_SHOULD_BE} EXCEPT SELECT owner, kind, value, sessions FROM facet)
    UNION ALL
    SELECT * FROM (SELECT owner, kind, value, sessions FROM facet EXCEPT {FACETS_AS_THEY_SHOULD_BE}))
"""
MEND_FACETS = (
    f"DELETE FROM facet; INSERT INTO facet (owner, kind, value, sessions) {FACETS_AS_THEY_SHOULD_BE}"
)


DAMAGE = (apsw.CorruptError, apsw.SQLError, UnicodeDecodeError)
"""What SQLite says of a file that it cannot make sense of, as far as other questions may still be answered."""


class _Rule(NamedTuple):
    """A query that counts what is wrong, and the statement that mends it (None: a person has to look)."""

    name: str
    wrong: str
    mend: str | None


RULES = (
    _Rule("altered sessions", ALTERED_SESSIONS, None),
    _Rule("altered entries", ALTERED_ENTRIES, None),
    _Rule("entries behind spans", MISSING_ENTRIES, None),
    _Rule("heads of logs", WRONG_HEADS, None),
    _Rule("orphaned logs", ORPHANS, COLLECT_ORPHANS),
    _Rule("message counts", WRONG_COUNTS, MEND_COUNTS),
    _Rule("tags", WRONG_TAGS, MEND_TAGS),
    _Rule("numbers of sessions", WRONG_FACETS, MEND_FACETS),
)


def check(db: apsw.Connection, index: SearchIndex, *, repair: bool) -> Health:
    """Check the file, the rules above and the search index."""
    db.create_scalar_function("crc_of", lambda *row: crc_of(*row), deterministic=True)
    db.create_scalar_function("is_whole", lambda *row: is_whole(*row), deterministic=True)
    problems = list(_broken(db))
    repaired: list[str] = []
    # What cannot be read is not gone: nothing is mended, or collected, by what is left of a file that is damaged.
    mend = repair and not problems
    for rule in RULES:
        try:
            _check_rule(db, rule, problems, repaired, repair=mend)
        except DAMAGE as error:
            problems.append(f"{rule.name}: cannot be checked: {error}")
    _check_index(index, problems, repaired, repair=repair)
    _check_days(index, problems, repaired, repair=repair)
    names = ("file integrity", *(rule.name for rule in RULES), "search index", "days")
    return Health(checked=names, problems=tuple(problems), repaired=tuple(repaired))


def _broken(db: apsw.Connection) -> Iterator[str]:
    """What is wrong with the file itself."""
    try:
        for (answer,) in db.execute("PRAGMA integrity_check"):
            if answer != "ok":
                yield f"integrity: {answer}"
    except apsw.CorruptError as error:
        yield f"integrity: {error}"


def _check_rule(
    db: apsw.Connection, rule: _Rule, problems: list[str], repaired: list[str], *, repair: bool
) -> None:
    count = fetch(db, rule.wrong)[0][0]
    if count and repair and rule.mend is not None:
        with transaction(db):
            db.execute(rule.mend)
        repaired.append(f"{rule.name}: {count} repaired")
    elif count:
        problems.append(f"{rule.name}: {count} wrong")


def _check_index(index: SearchIndex, problems: list[str], repaired: list[str], *, repair: bool) -> None:
    if index.is_whole():
        index.purge()
        return
    if not repair:
        problems.append("search index: incomplete; run doctor with repair")
        return
    try:
        _rebuild(index)
    except (apsw.Error, StoreDamaged) as error:
        problems.append(f"search index: cannot be rebuilt: {error}")
    else:
        repaired.append("search index: rebuilt")


def _rebuild(index: SearchIndex) -> None:
    try:
        index.rebuild()
    except (apsw.Error, StoreDamaged):
        index.replace()


def _check_days(index: SearchIndex, problems: list[str], repaired: list[str], *, repair: bool) -> None:
    try:
        wrong = index.wrong_days(repair=repair)
    except (apsw.Error, StoreDamaged):
        return  # the index is not whole, which is reported above
    if wrong:
        (repaired if repair else problems).append(f"days: {wrong} {'repaired' if repair else 'wrong'}")
