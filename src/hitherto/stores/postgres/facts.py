"""Facts as rows: what all have is in columns of its own, the rest in one of JSON; beside it what they are found by.

`ports` says what each function promises.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hitherto.errors import StoreDamaged
from hitherto.model import Fact, decode_json, encode
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements
from hitherto.values.checksums import checksum
from hitherto.values.facts import FactQuery, RivalQuery, marks_of, text_digest

_FACT = "id, at, text, kind, session, entries, more, agent, person, subject, outdone_by, said, crc"
FACTS = f"""
SELECT {_FACT} FROM fact
WHERE owner = %(owner)s AND (%(session)s::text IS NULL OR session = %(session)s) ORDER BY at DESC, id DESC
"""
_HOLDS = "NOT EXISTS (SELECT 1 FROM fact AS n WHERE n.owner = f.owner AND n.id = f.outdone_by)"
_WANTED = f"""
f.owner = %(owner)s AND (%(session)s::text IS NULL OR f.session = %(session)s)
AND (%(agent)s::text IS NULL OR f.agent = %(agent)s) AND (%(person)s::text IS NULL OR f.person = %(person)s)
AND (NOT %(nobody)s::boolean OR f.person IS NULL) AND {_HOLDS}
"""
FIND_FACTS = f"""
SELECT {_FACT} FROM fact AS f WHERE {_WANTED} ORDER BY at DESC, id DESC LIMIT %(limit)s OFFSET %(offset)s
"""
MARKED_FACTS = f"""
SELECT {", ".join(f"f.{name}" for name in _FACT.split(", "))}
FROM fact_mark AS m JOIN fact AS f ON f.owner = m.owner AND f.id = m.id
WHERE m.owner = %(owner)s AND m.mark = %(mark)s AND {_WANTED}
ORDER BY m.at DESC, m.id DESC LIMIT %(limit)s OFFSET %(offset)s
"""
UNMARKED_FACTS = f"""
SELECT {_FACT} FROM fact AS f WHERE said IS NULL AND {_WANTED} ORDER BY at DESC, id DESC LIMIT %(limit)s
"""
RIVALS = f"""
SELECT {_FACT}, {_HOLDS} FROM fact AS f WHERE owner = %(owner)s
AND agent IS NOT DISTINCT FROM %(agent)s AND person IS NOT DISTINCT FROM %(person)s AND id IN (
    SELECT id FROM fact WHERE owner = %(owner)s AND said IS NULL
    UNION SELECT id FROM fact WHERE owner = %(owner)s AND said = ANY(%(said)s)
    UNION SELECT id FROM fact WHERE owner = %(owner)s AND subject = ANY(%(subjects)s)
)
"""
FACTS_BEHIND = f"""
WITH RECURSIVE behind (id) AS (
    SELECT id FROM fact WHERE owner = %(owner)s AND id = %(id)s
    UNION
    SELECT f.id FROM behind AS b JOIN fact AS f ON f.owner = %(owner)s AND f.outdone_by = b.id
)
SELECT {_FACT} FROM fact WHERE owner = %(owner)s AND id IN (SELECT id FROM behind)
"""
PUT_FACT = """
INSERT INTO fact (owner, id, at, text, kind, session, entries, more, agent, person, subject, outdone_by, said, crc)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (owner, id) DO UPDATE SET at = excluded.at, text = excluded.text, kind = excluded.kind,
    session = excluded.session, entries = excluded.entries, more = excluded.more, agent = excluded.agent,
    person = excluded.person, subject = excluded.subject, outdone_by = excluded.outdone_by, said = excluded.said,
    crc = excluded.crc
"""
DROP_MARKS = "DELETE FROM fact_mark WHERE owner = %s AND id = ANY(%s)"
PUT_MARK = "INSERT INTO fact_mark (owner, mark, at, id) VALUES (%s, %s, %s, %s)"
DROP_FACTS = "DELETE FROM fact WHERE owner = %s AND id = ANY(%s)"
MORE = ("agent_id", "identity_id", "cwd", "confidence", "subject", "invalidated_by")


def fact_values(fact: Fact) -> tuple[object, ...]:
    """The values of a row, behind its owner."""
    more = {name: value for name in MORE if (value := getattr(fact, name)) is not None}
    entries = encode(fact.entries).decode()
    kept = (fact.id, fact.at, fact.text, fact.kind, fact.session, entries, encode(more).decode())
    found_by = (
        fact.agent_id,
        fact.identity_id,
        fact.subject,
        fact.invalidated_by,
        text_digest(fact.text),
    )
    return (*kept, *found_by)


def is_whole(owner: str, row: Row) -> bool:
    """Whether a row of a fact is what was written."""
    *checked, crc = row
    return crc is None or bool(crc == checksum(owner, *checked))


def fact_of(owner: str, row: Row) -> Fact:
    """The fact in a row. `StoreDamaged` if it is not what was written."""
    if not is_whole(owner, row):
        raise StoreDamaged(
            f"the fact {row[0]!r:.60} was altered; forget it, or run `hitherto doctor` to see what else was"
        )
    fact_id, at, text, kind, session, entries, more, *_ = row
    known = tuple(decode_json(entries.encode()))
    return Fact(
        id=fact_id, at=at, text=text, kind=kind, session=session, entries=known, **decode_json(more.encode())
    )


async def list_facts(statements: Statements, owner: str, session_id: str | None) -> list[Fact]:
    """See `ports.Reader.facts`."""
    rows = await statements.rows(FACTS, {"owner": owner, "session": session_id})
    return [fact_of(owner, row) for row in rows]


async def find_facts(statements: Statements, owner: str, wanted: FactQuery) -> list[Fact]:
    params = {
        "owner": owner,
        "session": wanted.session,
        "agent": wanted.agent_id,
        "person": wanted.identity_id,
        "nobody": wanted.nobody,
        "limit": wanted.limit,
        "offset": wanted.offset,
    }
    if wanted.mark is None:
        return [fact_of(owner, row) for row in await statements.rows(FIND_FACTS, params)]
    rows = await statements.rows(MARKED_FACTS, {**params, "mark": wanted.mark})
    return [fact_of(owner, row) for row in (*rows, *await statements.rows(UNMARKED_FACTS, params))]


async def find_rivals(statements: Statements, owner: str, wanted: RivalQuery) -> list[Fact]:
    params = {
        "owner": owner,
        "agent": wanted.agent_id,
        "person": wanted.identity_id,
        "said": list(wanted.said),
        "subjects": list(wanted.subjects),
    }
    found = ((fact_of(owner, row[:-1]), row[-1]) for row in await statements.rows(RIVALS, params))
    return [replace(fact, invalidated_by=None) if holds else fact for fact, holds in found]


async def facts_behind(statements: Statements, owner: str, fact_id: str) -> list[Fact]:
    rows = await statements.rows(FACTS_BEHIND, {"owner": owner, "id": fact_id})
    # What was altered can be forgotten all the same; nobody is shown its words.
    return [fact_of(owner, row) if is_whole(owner, row) else Fact(id=row[0], at=0, text="") for row in rows]


async def put_facts(statements: Statements, owner: str, facts: Sequence[Fact]) -> None:
    if facts:
        await statements.queue(DROP_MARKS, (owner, [fact.id for fact in facts]))
        rows = [(owner, *fact_values(fact)) for fact in facts]
        await statements.queue_many(PUT_FACT, [(*row, checksum(*row)) for row in rows])
        marks = [(owner, mark, fact.at, fact.id) for fact in facts for mark in marks_of(fact)]
        await statements.queue_many(PUT_MARK, marks)


async def forget_facts(statements: Statements, owner: str, ids: Sequence[str]) -> None:
    await statements.queue(DROP_FACTS, (owner, list(ids)))
