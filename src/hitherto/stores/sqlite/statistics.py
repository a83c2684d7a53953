"""Numbers about an owner's sessions, and the projects that they belong to."""

from __future__ import annotations

from hitherto.model import Facets, Json
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.rows import MICROS, OwnerReading
from hitherto.values.facets import COUNT as COUNTED
from hitherto.values.facets import LISTED, MOST, facets

STATS = """
SELECT
    count(*), sum(archived), sum(pinned), sum(message_count), sum(token_count), sum(bytes), sum(cost),
    sum(error_count), min(created_at), max(updated_at),
    (SELECT count(*) FROM fact WHERE owner = :owner),
    (SELECT count(*) FROM checkpoint WHERE session IN (SELECT num FROM session WHERE owner = :owner))
FROM session WHERE owner = :owner
"""
BY_SOURCE = (
    "SELECT source, count(*) FROM session WHERE owner = ? AND source IS NOT NULL GROUP BY source ORDER BY 1"
)
BY_AGENT = "SELECT agent_id, count(*) FROM session WHERE owner = ? AND agent_id IS NOT NULL GROUP BY agent_id ORDER BY 1"

FACETS = """
SELECT kind, value, sessions FROM facet WHERE owner = :owner AND kind = :kind ORDER BY sessions DESC, value LIMIT :most
"""
# From one name to the next: as many steps as there are projects, however many sessions.
PROJECTS = """
WITH RECURSIVE known (name) AS (
    SELECT min(project) FROM session WHERE owner = ?1 AND project IS NOT NULL
    UNION ALL
    SELECT (SELECT min(project) FROM session WHERE owner = ?1 AND project > known.name) FROM known WHERE name IS NOT NULL
)
SELECT name FROM known WHERE name IS NOT NULL
"""
PLACELESS = """
SELECT DISTINCT cwd FROM session INDEXED BY session_placeless
WHERE owner = ? AND project IS NULL AND cwd IS NOT NULL ORDER BY cwd LIMIT ?
"""
ROOTED = "SELECT project FROM root WHERE owner = ? AND root = ?"
ROOTS = "SELECT root FROM root WHERE owner = ? AND project = ? ORDER BY root"


class CountReading(OwnerReading):
    """See `ports.Reader`."""

    async def stats(self, owner: str) -> Json:
        num = self._owner(owner)
        row = fetch(self._db, STATS, {"owner": num})[0]
        (
            sessions,
            archived,
            pinned,
            messages,
            tokens,
            size,
            cost,
            errors,
            oldest,
            newest,
            facts,
            checkpoints,
        ) = row
        return {
            "sessions": sessions,
            "archived": archived or 0,
            "pinned": pinned or 0,
            "messages": messages or 0,
            "tokens": tokens,
            "bytes": size or 0,
            "cost": None if cost is None else cost / MICROS,
            "errors": errors or 0,
            "by_source": dict(fetch(self._db, BY_SOURCE, (num,))),
            "by_agent": dict(fetch(self._db, BY_AGENT, (num,))),
            "oldest": oldest,
            "newest": newest,
            "facts": facts,
            "checkpoints": checkpoints,
        }

    async def facets(self, owner: str) -> Facets:
        bound = {"owner": self._owner(owner), "most": MOST}
        return facets(
            row for kind in (COUNTED, *LISTED) for row in fetch(self._db, FACETS, bound | {"kind": kind})
        )

    async def projects(self, owner: str) -> list[str]:
        return [row[0] for row in fetch(self._db, PROJECTS, (self._owner(owner),))]

    async def placeless(self, owner: str, limit: int) -> list[str]:
        found = fetch(self._db, PLACELESS, (self._owner(owner), limit))
        return [cwd.decode("utf-8", "surrogatepass") for (cwd,) in found]

    async def rooted(self, owner: str, root: str) -> str | None:
        rows = fetch(self._db, ROOTED, (self._owner(owner), root))
        return rows[0][0] if rows else None

    async def roots(self, owner: str, project: str) -> list[str]:
        return [row[0] for row in fetch(self._db, ROOTS, (self._owner(owner), project))]
