"""Facts as rows."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from hitherto.model import Fact, decode_json, encode
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.rows import OwnerReading
from hitherto.values.facts import FactQuery, RivalQuery

FACTS = """
SELECT body FROM fact WHERE owner = :owner AND (:session IS NULL OR session = :session) ORDER BY at DESC, id DESC
"""
_HOLDS = "NOT EXISTS (SELECT 1 FROM fact AS n WHERE n.owner = f.owner AND n.id = f.outdone_by)"
_WANTED = f"""
f.owner = :owner AND (:session IS NULL OR f.session = :session) AND (:agent IS NULL OR f.agent = :agent)
AND (:person IS NULL OR f.person = :person) AND {_HOLDS}
"""
FIND_FACTS = (
    f"SELECT body FROM fact AS f WHERE {_WANTED} ORDER BY at DESC, id DESC LIMIT :limit OFFSET :offset"
)
# In the order of the marks, newest first, so that it ends with the last one that is wanted.
MARKED_FACTS = f"""
SELECT f.body FROM fact_mark AS m CROSS JOIN fact AS f ON f.owner = m.owner AND f.id = m.id
WHERE m.owner = :owner AND m.mark = :mark AND {_WANTED} ORDER BY m.at DESC, m.id DESC LIMIT :limit OFFSET :offset
"""
UNMARKED_FACTS = (
    f"SELECT body FROM fact AS f WHERE said IS NULL AND {_WANTED} ORDER BY at DESC, id DESC LIMIT :limit"
)
RIVALS = f"""
SELECT body, {_HOLDS} FROM fact AS f WHERE owner = :owner AND agent IS :agent AND person IS :person AND id IN (
    SELECT id FROM fact WHERE owner = :owner AND said IS NULL
    UNION SELECT r.id FROM json_each(:said) CROSS JOIN fact AS r ON r.owner = :owner AND r.said = value
    UNION SELECT r.id FROM json_each(:subjects) CROSS JOIN fact AS r ON r.owner = :owner AND r.subject = value
)
"""
FACTS_BEHIND = """
WITH RECURSIVE behind (id) AS (
    SELECT id FROM fact WHERE owner = :owner AND id = :id
    UNION
    SELECT f.id FROM behind AS b CROSS JOIN fact AS f ON f.owner = :owner AND f.outdone_by = b.id
)
SELECT body FROM fact WHERE owner = :owner AND id IN (SELECT id FROM behind)
"""


class FactReading(OwnerReading):
    """See `ports.Reader`."""

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        bound = {"owner": self._owner(owner), "session": session_id}
        return [_fact(body) for (body,) in fetch(self._db, FACTS, bound)]

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        bound = {
            "owner": self._owner(owner),
            "session": wanted.session,
            "agent": wanted.agent_id,
            "person": wanted.identity_id,
            "limit": wanted.limit,
            "offset": wanted.offset,
        }
        if wanted.mark is None:
            return [_fact(body) for (body,) in fetch(self._db, FIND_FACTS, bound)]
        found = fetch(self._db, MARKED_FACTS, {**bound, "mark": wanted.mark})
        return [_fact(body) for (body,) in (*found, *fetch(self._db, UNMARKED_FACTS, bound))]

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        bound = {
            "owner": self._owner(owner),
            "agent": wanted.agent_id,
            "person": wanted.identity_id,
            "said": encode(wanted.said).decode(),
            "subjects": encode(wanted.subjects).decode(),
        }
        found = ((_fact(body), holds) for body, holds in fetch(self._db, RIVALS, bound))
        return [replace(fact, invalidated_by=None) if holds else fact for fact, holds in found]

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        bound = {"owner": self._owner(owner), "id": fact_id}
        return [_fact(body) for (body,) in fetch(self._db, FACTS_BEHIND, bound)]


_facts = msgspec.json.Decoder(Fact)


def _fact(body: bytes) -> Fact:
    try:
        return _facts.decode(body)
    except msgspec.DecodeError:  # lone surrogates
        return msgspec.convert(decode_json(body), Fact)
