"""Looking for damage. What is derived (tags, counts, days, the search index) can be mended, what nothing explains is set
aside, the rest is reported. Nothing is removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from hitherto.errors import StoreDamaged
from hitherto.ports import Health
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.migrate import writing
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
    AND pos >> 24 NOT IN (SELECT unreached FROM garbage)
    AND pos >> 24 NOT IN (SELECT log FROM quarantine)
"""
SET_ORPHANS_ASIDE = """
INSERT OR IGNORE INTO quarantine (log, at, why)
SELECT DISTINCT pos >> 24, :at, 'no session has it, and nothing says that one was deleted' FROM entry
WHERE pos >> 24 NOT IN (SELECT num FROM session)
    AND pos >> 24 NOT IN (SELECT log FROM span)
    AND pos >> 24 NOT IN (SELECT unreached FROM garbage)
"""
EXPLAINED = "FROM quarantine WHERE log IN (SELECT num FROM session) OR log IN (SELECT log FROM span)"
COUNT_EXPLAINED = f"SELECT count(*) {EXPLAINED}"
RELEASE_EXPLAINED = f"DELETE {EXPLAINED}"
KEEP_PROBLEMS = "INSERT OR REPLACE INTO known_problems (one, problems) VALUES (1, ?)"
NO_PROBLEMS = "DELETE FROM known_problems"
HAS_PROBLEMS = "SELECT 1 FROM known_problems"
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
    """A query that counts what is wrong, and the statement that mends it (None: a person has to look).

    What is derived is mended only if nothing is wrong with what it is derived from; setting aside needs no such trust.
    """

    name: str
    wrong: str
    mend: str | None
    done: str = "repaired"
    trusts: bool = True


RULES = (
    _Rule("altered sessions", ALTERED_SESSIONS, None),
    _Rule("altered entries", ALTERED_ENTRIES, None),
    _Rule("entries behind spans", MISSING_ENTRIES, None),
    _Rule("heads of logs", WRONG_HEADS, None),
    _Rule("orphaned logs", ORPHANS, SET_ORPHANS_ASIDE, "moved to quarantine", trusts=False),
    _Rule("quarantine", COUNT_EXPLAINED, RELEASE_EXPLAINED, "explained again, and released"),
    _Rule("message counts", WRONG_COUNTS, MEND_COUNTS),
    _Rule("tags", WRONG_TAGS, MEND_TAGS),
    _Rule("numbers of sessions", WRONG_FACETS, MEND_FACETS),
)


def check(db: apsw.Connection, index: SearchIndex, *, repair: bool, at: int) -> Health:
    """Check the file, the rules above and the search index; `at` is the time of what is set aside."""
    db.create_scalar_function("crc_of", lambda *row: crc_of(*row), deterministic=True)
    db.create_scalar_function("is_whole", lambda *row: is_whole(*row), deterministic=True)
    problems = list(_broken(db))
    repaired: list[str] = []
    counts = _counted(db, problems)
    # What cannot be read is not gone: nothing is mended by what is left of a file that is damaged.
    readable = not problems
    sound = readable and not any(count for rule, count in counts.items() if rule.mend is None)
    for rule, count in counts.items():
        if count and repair and rule.mend is not None and (sound or (readable and not rule.trusts)):
            with writing(db):
                db.execute(rule.mend, {"at": at} if ":at" in rule.mend else ())
            repaired.append(f"{rule.name}: {count} {rule.done}")
        elif count:
            problems.append(f"{rule.name}: {count} wrong")
    names = ["file integrity", *(rule.name for rule in RULES)]
    if not index.read_only:
        _check_index(index, problems, repaired, repair=repair)
        _check_days(index, problems, repaired, repair=repair)
        names += ["search index", "days"]
        _remember(db, problems)
    return Health(checked=tuple(names), problems=tuple(problems), repaired=tuple(repaired))


def _counted(db: apsw.Connection, problems: list[str]) -> dict[_Rule, int]:
    """How much is wrong by each rule, as far as it can be told."""
    counts = {}
    for rule in RULES:
        try:
            counts[rule] = int(fetch(db, rule.wrong)[0][0])
        except DAMAGE as error:
            problems.append(f"{rule.name}: cannot be checked: {error}")
    return counts


def _remember(db: apsw.Connection, problems: list[str]) -> None:
    """While a problem is known, nothing is collected."""
    with contextlib.suppress(apsw.Error):  # then there is worse than that, and it is reported
        if problems:
            with writing(db):
                db.execute(KEEP_PROBLEMS, ("\n".join(problems),))
        elif fetch(db, HAS_PROBLEMS):
            with writing(db):
                db.execute(NO_PROBLEMS)


def _broken(db: apsw.Connection) -> Iterator[str]:
    """What is wrong with the file itself."""
    try:
        for (answer,) in db.execute("PRAGMA integrity_check"):
            if answer != "ok":
                yield f"integrity: {answer}"
    except apsw.CorruptError as error:
        yield f"integrity: {error}"


def _check_index(index: SearchIndex, problems: list[str], repaired: list[str], *, repair: bool) -> None:
    if index.is_whole():
        index.purge()
        return
    if not repair:
        problems.append("search index: incomplete; `hitherto doctor --repair` rebuilds it")
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
