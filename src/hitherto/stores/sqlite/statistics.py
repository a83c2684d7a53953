"""Numbers about an owner's sessions, and the projects that they belong to."""

from __future__ import annotations

import apsw

from hitherto.model import Facets, Json
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.rows import MICROS
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


def count_all(db: apsw.Connection, owner: int) -> Json:
    """See `ports.Reader.stats`."""
    row = fetch(db, STATS, {"owner": owner})[0]
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
        "by_source": dict(fetch(db, BY_SOURCE, (owner,))),
        "by_agent": dict(fetch(db, BY_AGENT, (owner,))),
        "oldest": oldest,
        "newest": newest,
        "facts": facts,
        "checkpoints": checkpoints,
    }


def list_facets(db: apsw.Connection, owner: int) -> Facets:
    bound = {"owner": owner, "most": MOST}
    return facets(row for kind in (COUNTED, *LISTED) for row in fetch(db, FACETS, bound | {"kind": kind}))


def list_projects(db: apsw.Connection, owner: int) -> list[str]:
    return [row[0] for row in fetch(db, PROJECTS, (owner,))]


def folders_without_project(db: apsw.Connection, owner: int, limit: int) -> list[str]:
    found = fetch(db, PLACELESS, (owner, limit))
    return [cwd.decode("utf-8", "surrogatepass") for (cwd,) in found]


def project_of_root(db: apsw.Connection, owner: int, root: str) -> str | None:
    rows = fetch(db, ROOTED, (owner, root))
    return None if not rows else str(rows[0][0])


def roots_of_project(db: apsw.Connection, owner: int, project: str) -> list[str]:
    return [row[0] for row in fetch(db, ROOTS, (owner, project))]
