"""Looking for damage. What is derived (tags, counts, days, the search index) can be mended, what nothing explains is set
aside, the rest is reported. Nothing is removed."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import apsw

from hitherto.errors import StoreDamaged
from hitherto.model import Lease
from hitherto.ports import Health
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.migrate import writing
from hitherto.stores.sqlite.rows import CHECKED, crc_of, is_whole
from hitherto.stores.sqlite.search_index import SearchIndex
from hitherto.stores.sqlite.tokens import is_whole as is_token_whole
from hitherto.values.checksums import (
    beside_checksum,
    checksum,
    entry_checksum,
    is_lease_whole,
    is_read_whole,
    lease_checksum,
    session_place,
)
from hitherto.values.scopes import is_rule_whole

_CHECKED = ", ".join(CHECKED)
_OF_SESSION = "JOIN session AS s ON s.num = r.session JOIN owner AS o ON o.num = s.owner"
_PLACE = "session_place(o.name, s.id, s.num)"
_LEASE = "o.name, s.num, s.lease_holder, s.lease_fence, s.lease_acquired, s.lease_expires"
_SEED = "checksum(o.name, e.pos >> 24) + (e.pos & 16777215)"
_BESIDE = f"beside_checksum({_SEED}, e.number, e.id, e.tokens, e.errors, e.cost, e.bytes)"
_SPAN = """checksum(o.name, r.session, r.name, r.ord,
    (SELECT count(*) FROM span AS n WHERE n.session = r.session AND n.name = r.name),
    r.log, r.first, r.last, r.kind, r.expands)"""
_CHECKPOINT = "checksum(o.name, r.session, r.ord, r.id, r.at, r.reason, r.message_count, r.token_count)"
_FACT = "checksum(o.name, f.id, f.session, f.at, f.body, f.agent, f.person, f.subject, f.outdone_by, f.said)"
_TOKEN = "t.id, t.digest, o.name, t.scopes, t.role, t.label, t.created_at, t.revoked_at"
_RAW_COPY = "checksum(o.name, r.session, r.name, r.digest)"

ALTERED = {
    "sessions": f"""FROM session AS s LEFT JOIN owner AS o ON o.num = s.owner
    WHERE s.crc <> crc_of(o.name, {_CHECKED}) OR s.place_crc <> {_PLACE}""",
    "entries": f"""FROM entry AS e LEFT JOIN owner AS o ON o.num = e.owner
    WHERE NOT is_whole({_SEED}, e.payload, e.place_crc, e.crc, e.erased)
        OR e.row_crc <> {_BESIDE} OR typeof(e.tokens) <> 'integer' OR typeof(e.errors) <> 'integer'
        OR typeof(e.cost) <> 'integer' OR typeof(e.bytes) <> 'integer'""",
    "spans": f"FROM span AS r {_OF_SESSION} WHERE r.crc <> {_SPAN}",
    "checkpoints": f"""FROM checkpoint AS r {_OF_SESSION}
    WHERE r.crc <> {_CHECKPOINT} OR r.message_count > 0 AND NOT EXISTS (
        SELECT 1 FROM span AS p WHERE p.session = r.session AND p.name = r.id)""",
    "facts": f"FROM fact AS f LEFT JOIN owner AS o ON o.num = f.owner WHERE f.crc <> {_FACT}",
    "waiting messages": f"FROM inbox AS r {_OF_SESSION} WHERE r.crc <> checksum(o.name, r.session, r.ord, r.id, r.body)",
    "tokens": f"""FROM token AS t LEFT JOIN owner AS o ON o.num = t.owner
    WHERE NOT is_token_whole({_TOKEN}, t.crc) OR NOT is_rule_whole(t.id, t.rule, t.rule_crc)""",
    "raw copies": f"""FROM raw_copy AS r {_OF_SESSION} LEFT JOIN raw_blob AS b ON b.digest = r.digest
    WHERE r.crc <> {_RAW_COPY} OR r.digest IS NOT sha256_of(b.data)""",
}
"""Rows that are not what was written, or not where: from where to take them."""
_ALTERED_LEASES = f"""
FROM session AS s JOIN owner AS o ON o.num = s.owner
WHERE s.lease_fence IS NOT NULL AND NOT is_lease_whole({_LEASE}, s.lease_crc)
"""
COUNT_LEASES = f"SELECT count(*) {_ALTERED_LEASES}"
# A new fence: whoever held it must not go on.
END_LEASES = f"""
UPDATE session SET lease_fence = (lease_fence | 65535) + 1, lease_expires = 0, lease_crc = NULL
WHERE num IN (SELECT s.num {_ALTERED_LEASES})
"""
_ALTERED_READ_MARKS = """
FROM session AS s JOIN owner AS o ON o.num = s.owner
WHERE s.read_crc IS NOT NULL AND NOT is_read_whole(o.name, s.num, s.read_at, s.read_crc)
"""
COUNT_READ_MARKS = f"SELECT count(*) {_ALTERED_READ_MARKS}"
# As if it had never been read: only who reads it could say.
FORGET_READ_MARKS = (
    f"UPDATE session SET read_at = NULL, read_crc = NULL WHERE num IN (SELECT s.num {_ALTERED_READ_MARKS})"
)
MISSING_ENTRIES = """
SELECT count(*) FROM span AS p JOIN session AS s ON s.num = p.session
WHERE typeof(p.log) <> 'integer' OR typeof(p.first) <> 'integer' OR typeof(p.last) NOT IN ('integer', 'null')
OR p.last IS NULL AND p.log <> p.session
OR coalesce(p.last, s.head) >= p.first AND (
    SELECT count(*) FROM entry AS e
    WHERE e.pos BETWEEN (p.log << 24 | p.first) AND (p.log << 24 | coalesce(p.last, s.head)) AND e.owner = s.owner
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
 WHERE p.session = s.num AND p.name = '' AND p.kind <> 'reset' AND coalesce(p.last, s.head) >= p.first)
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


# What was written before there were checksums, or by an older program beside this one. Behind everything else: a checksum
# says that a row is right.
ADD_CHECKSUMS = (
    f"UPDATE session AS s SET crc = crc_of(o.name, {_CHECKED}) FROM owner AS o WHERE o.num = s.owner AND s.crc IS NULL",
    f"UPDATE session AS s SET place_crc = {_PLACE} FROM owner AS o WHERE o.num = s.owner AND s.place_crc IS NULL",
    f"""UPDATE session AS s SET lease_crc = lease_checksum({_LEASE}) FROM owner AS o
    WHERE o.num = s.owner AND s.lease_fence IS NOT NULL AND s.lease_crc IS NOT lease_checksum({_LEASE})""",
    """UPDATE session AS s SET read_crc = checksum(o.name, s.num, s.read_at) FROM owner AS o
    WHERE o.num = s.owner AND s.read_at IS NOT NULL AND s.read_crc IS NULL""",
    f"""UPDATE entry AS e SET crc = crc32(e.payload), row_crc = {_BESIDE},
        place_crc = entry_checksum(o.name, e.pos >> 24, e.pos & 16777215, e.payload)
    FROM owner AS o WHERE o.num = e.owner AND (e.place_crc IS NULL OR e.row_crc IS NULL OR e.crc IS NULL OR e.erased = 1
        AND e.place_crc <> entry_checksum(o.name, e.pos >> 24, e.pos & 16777215, e.payload))""",
    f"UPDATE span AS r SET crc = {_SPAN} FROM session AS s JOIN owner AS o ON o.num = s.owner WHERE s.num = r.session AND r.crc IS NULL",
    f"""UPDATE checkpoint AS r SET crc = {_CHECKPOINT} FROM session AS s JOIN owner AS o ON o.num = s.owner
    WHERE s.num = r.session AND r.crc IS NULL""",
    f"UPDATE fact AS f SET crc = {_FACT} FROM owner AS o WHERE o.num = f.owner AND f.crc IS NULL",
    f"UPDATE token AS t SET crc = checksum({_TOKEN}) FROM owner AS o WHERE o.num = t.owner AND t.crc IS NOT checksum({_TOKEN})",
    f"""UPDATE raw_copy AS r SET crc = {_RAW_COPY} FROM session AS s JOIN owner AS o ON o.num = s.owner
    WHERE s.num = r.session AND r.crc IS NULL""",
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
    *(_Rule(f"altered {rows}", f"SELECT count(*) {altered}", None) for rows, altered in ALTERED.items()),
    _Rule("entries behind spans", MISSING_ENTRIES, None),
    _Rule("heads of logs", WRONG_HEADS, None),
    _Rule("orphaned logs", ORPHANS, SET_ORPHANS_ASIDE, "moved to quarantine", trusts=False),
    _Rule("quarantine", COUNT_EXPLAINED, RELEASE_EXPLAINED, "explained again, and released"),
    _Rule("leases", COUNT_LEASES, END_LEASES, "ended", trusts=False),
    _Rule("read marks", COUNT_READ_MARKS, FORGET_READ_MARKS, "forgotten", trusts=False),
    _Rule("message counts", WRONG_COUNTS, MEND_COUNTS),
    _Rule("tags", WRONG_TAGS, MEND_TAGS),
    _Rule("numbers of sessions", WRONG_FACETS, MEND_FACETS),
)


def _lease(*row: Any) -> tuple[str, int, Lease]:
    owner, num, holder, fence, acquired, expires = row
    return owner, num, Lease(holder=holder, fence=fence, acquired_at=acquired, expires_at=expires)


def _is_lease_whole(*row: Any) -> bool:
    *lease, crc = row
    try:
        return is_lease_whole(*_lease(*lease), crc)
    except TypeError:  # the disk has made something else of a number
        return False


def _session_place(owner: Any, session_id: Any, num: int) -> int:
    """No checksum if the disk has made something else of the id."""
    return session_place(owner, session_id, num) if isinstance(session_id, str) else -1


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "checksum": checksum,
    "beside_checksum": lambda place, *beside: beside_checksum(place, beside),
    "session_place": _session_place,
    "crc_of": lambda owner, *checked: crc_of(owner, checked),
    "crc32": crc32,
    "is_whole": is_whole,
    "entry_checksum": entry_checksum,
    "lease_checksum": lambda *row: lease_checksum(*_lease(*row)),
    "is_lease_whole": _is_lease_whole,
    "is_read_whole": is_read_whole,
    "is_token_whole": is_token_whole,
    "is_rule_whole": is_rule_whole,
    "sha256_of": lambda data: hashlib.sha256(data).digest() if isinstance(data, bytes) else None,
}
"""What the statements above call."""


def check(db: apsw.Connection, index: SearchIndex, *, repair: bool, at: int) -> Health:
    """Check the file, the rules above and the search index; `at` is the time of what is set aside."""
    for name, function in FUNCTIONS.items():
        db.create_scalar_function(name, function, deterministic=True)
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
    if repair and sound:
        _add_checksums(db, repaired)
    names = ["file integrity", *(rule.name for rule in RULES)]
    if not index.read_only:
        _check_index(index, problems, repaired, repair=repair)
        _check_days(index, problems, repaired, repair=repair)
        names += ["search index", "days"]
        _remember(db, problems)
    return Health(checked=tuple(names), problems=tuple(problems), repaired=tuple(repaired))


def _add_checksums(db: apsw.Connection, repaired: list[str]) -> None:
    added = 0
    for statement in ADD_CHECKSUMS:
        with writing(db):
            db.execute(statement)
            added += db.changes()
    if added:
        repaired.append(f"checksums: {added} rows had none, and have one now")


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
