"""Facts as rows, over a connection. `ports` says what each function promises; owners are given by their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec.structs import replace

from hitherto.errors import StoreDamaged
from hitherto.model import Fact, decode_json, encode
from hitherto.stores.sqlite.connection import fetch
from hitherto.values.checksums import checksum
from hitherto.values.facts import FactQuery, RivalQuery, marks_of, text_digest

_CHECKED = ("id", "session", "at", "body", "agent", "person", "subject", "outdone_by", "said")
COLUMNS = ", ".join((*_CHECKED, "crc"))
FACTS = f"""
SELECT {COLUMNS} FROM fact WHERE owner = :owner AND (:session IS NULL OR session = :session) ORDER BY at DESC, id DESC
"""
_HOLDS = "NOT EXISTS (SELECT 1 FROM fact AS n WHERE n.owner = f.owner AND n.id = f.outdone_by)"
_WANTED = f"""
f.owner = :owner AND (:session IS NULL OR f.session = :session) AND (:agent IS NULL OR f.agent = :agent)
AND (:person IS NULL OR f.person = :person) AND (NOT :nobody OR f.person IS NULL) AND {_HOLDS}
"""
FIND_FACTS = (
    f"SELECT {COLUMNS} FROM fact AS f WHERE {_WANTED} ORDER BY at DESC, id DESC LIMIT :limit OFFSET :offset"
)
# In the order of the marks, newest first, so that it ends with the last one that is wanted.
MARKED_FACTS = f"""
SELECT {", ".join(f"f.{name}" for name in (*_CHECKED, "crc"))} FROM fact_mark AS m CROSS JOIN fact AS f ON f.owner = m.owner AND f.id = m.id
WHERE m.owner = :owner AND m.mark = :mark AND {_WANTED} ORDER BY m.at DESC, m.id DESC LIMIT :limit OFFSET :offset
"""
UNMARKED_FACTS = (
    f"SELECT {COLUMNS} FROM fact AS f WHERE said IS NULL AND {_WANTED} ORDER BY at DESC, id DESC LIMIT :limit"
)
RIVALS = f"""
SELECT {COLUMNS}, {_HOLDS} FROM fact AS f WHERE owner = :owner AND agent IS :agent AND person IS :person AND id IN (
    SELECT id FROM fact WHERE owner = :owner AND said IS NULL
    UNION SELECT r.id FROM json_each(:said) CROSS JOIN fact AS r ON r.owner = :owner AND r.said = value
    UNION SELECT r.id FROM json_each(:subjects) CROSS JOIN fact AS r ON r.owner = :owner AND r.subject = value
)
"""
FACTS_BEHIND = f"""
WITH RECURSIVE behind (id) AS (
    SELECT id FROM fact WHERE owner = :owner AND id = :id
    UNION
    SELECT f.id FROM behind AS b CROSS JOIN fact AS f ON f.owner = :owner AND f.outdone_by = b.id
)
SELECT {COLUMNS} FROM fact WHERE owner = :owner AND id IN (SELECT id FROM behind)
"""
PUT_FACT = """
INSERT INTO fact (owner, id, session, at, body, agent, person, subject, outdone_by, said, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_MARK = "INSERT INTO fact_mark (owner, mark, at, id) VALUES (?, ?, ?, ?)"
FORGET_FACT = "DELETE FROM fact WHERE owner = ? AND id = ?"


class Owner(NamedTuple):
    """Whose facts they are."""

    num: int
    name: str


def list_facts(db: apsw.Connection, owner: Owner, session_id: str | None) -> list[Fact]:
    """See `ports.Reader.facts`."""
    return [_fact(owner, row) for row in fetch(db, FACTS, {"owner": owner.num, "session": session_id})]


def find_facts(db: apsw.Connection, owner: Owner, wanted: FactQuery) -> list[Fact]:
    bound = {
        "owner": owner.num,
        "session": wanted.session,
        "agent": wanted.agent_id,
        "person": wanted.identity_id,
        "nobody": wanted.nobody,
        "limit": wanted.limit,
        "offset": wanted.offset,
    }
    if wanted.mark is None:
        return [_fact(owner, row) for row in fetch(db, FIND_FACTS, bound)]
    found = fetch(db, MARKED_FACTS, {**bound, "mark": wanted.mark})
    return [_fact(owner, row) for row in (*found, *fetch(db, UNMARKED_FACTS, bound))]


def find_rivals(db: apsw.Connection, owner: Owner, wanted: RivalQuery) -> list[Fact]:
    bound = {
        "owner": owner.num,
        "agent": wanted.agent_id,
        "person": wanted.identity_id,
        "said": encode(wanted.said).decode(),
        "subjects": encode(wanted.subjects).decode(),
    }
    found = ((_fact(owner, row), holds) for *row, holds in fetch(db, RIVALS, bound))
    return [replace(fact, invalidated_by=None) if holds else fact for fact, holds in found]


def facts_behind(db: apsw.Connection, owner: Owner, fact_id: str) -> list[Fact]:
    rows = fetch(db, FACTS_BEHIND, {"owner": owner.num, "id": fact_id})
    # What was altered can be forgotten all the same; nobody is shown its words.
    return [
        _fact(owner, row) if is_whole(owner.name, *row) else Fact(id=row[0], at=0, text="") for row in rows
    ]


def put_facts(db: apsw.Connection, owner: Owner, facts: Sequence[Fact]) -> None:
    for fact in facts:
        kept = (fact.id, fact.session, fact.at, encode(fact))
        found_by = (
            fact.agent_id,
            fact.identity_id,
            fact.subject,
            fact.invalidated_by,
            text_digest(fact.text),
        )
        db.execute(FORGET_FACT, (owner.num, fact.id))
        db.execute(PUT_FACT, (owner.num, *kept, *found_by, checksum(owner.name, *kept, *found_by)))
        db.executemany(PUT_MARK, [(owner.num, mark, fact.at, fact.id) for mark in marks_of(fact)])


def forget_facts(db: apsw.Connection, owner: int, ids: Sequence[str]) -> None:
    db.executemany(FORGET_FACT, [(owner, fact_id) for fact_id in ids])


_facts = msgspec.json.Decoder(Fact)


def is_whole(owner: str, *row: Any) -> bool:
    """Whether a row of `COLUMNS` is what was written."""
    *checked, crc = row
    return crc is None or bool(crc == checksum(owner, *checked))


def _fact(owner: Owner, row: Sequence[Any]) -> Fact:
    if not is_whole(owner.name, *row):
        raise StoreDamaged(
            f"the fact {row[0]!r:.60} was altered; forget it, or run `hitherto doctor` to see what else was"
        )
    body = row[3]
    try:
        return _facts.decode(body)
    except msgspec.DecodeError:  # lone surrogates
        return msgspec.convert(decode_json(body), Fact)
