"""Numbers about an owner's sessions, and the projects that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from hitherto.model import Facets, Json, encode
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.rows import MICROS
from hitherto.values.facets import COUNT as COUNTED
from hitherto.values.facets import LISTED, MOST, facets
from hitherto.values.usage.requests import Request

STATS = """
SELECT
    count(*), sum(archived), sum(pinned), sum(message_count), sum(token_count), sum(bytes), sum(error_count),
    min(created_at), max(updated_at),
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

LOG_AFTER = """
SELECT pos & 16777215, payload FROM entry WHERE pos > ?1 << 24 | ?2 AND pos <= ?1 << 24 | 16777215 AND owner = ?3
ORDER BY pos LIMIT ?4
"""
COUNTED_TO = "SELECT log, head FROM counted WHERE owner = ?1 AND log IN (SELECT value FROM json_each(?2))"
_REQUEST = "pos >> 24, pos & 16777215, at, model, key, input, output, cache_read, cache_write, cost, reported"
REQUESTS = f"SELECT {_REQUEST} FROM request WHERE owner = ? AND at >= ? AND at < ? ORDER BY pos"
REQUESTS_OF = f"""
WITH chosen (log) AS (SELECT value FROM json_each(?4))
SELECT {_REQUEST} FROM chosen CROSS JOIN request
WHERE owner = ?1 AND pos BETWEEN log << 24 AND log << 24 | 16777215 AND at >= ?2 AND at < ?3 ORDER BY pos
"""
IS_REACHED = (
    "SELECT EXISTS (SELECT 1 FROM session WHERE num = ?1) OR EXISTS (SELECT 1 FROM span WHERE log = ?1)"
)
PUT_REQUEST = f"INSERT OR REPLACE INTO request VALUES ({', '.join('?' * 11)})"
DROP_REQUEST = "DELETE FROM request WHERE owner = ? AND pos = ?"
PUT_COUNTED = """
INSERT INTO counted (owner, log, head) VALUES (?, ?, ?)
ON CONFLICT (owner, log) DO UPDATE SET head = max(head, excluded.head)
"""
# Each request once, as it is where most was written.
REPORTED = """
SELECT sum(cost) FROM (SELECT cost, max(output) FROM request WHERE owner = ? AND reported AND cost > 0 GROUP BY key)
"""
PUT_SESSION_USAGE = """
INSERT INTO session_usage (session, revision, body) SELECT num, ?2, ?3 FROM session WHERE num = ?1
ON CONFLICT (session) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE revision <= excluded.revision
"""
LOGS_OF = "SELECT log FROM span WHERE session = ?1 UNION SELECT ?1"
DROP_REQUESTS = "DELETE FROM request WHERE owner = ?1 AND pos BETWEEN ?2 << 24 AND ?2 << 24 | 16777215"
DROP_COUNTED = "DELETE FROM counted WHERE owner = ?1 AND log = ?2"


def count_all(db: apsw.Connection, owner: int) -> Json:
    """See `ports.Reader.stats`."""
    row, ((cost,),) = fetch(db, STATS, {"owner": owner})[0], fetch(db, REPORTED, (owner,))
    (
        sessions,
        archived,
        pinned,
        messages,
        tokens,
        size,
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


def log_after(db: apsw.Connection, owner: int, log: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
    """See `ports.Reader.log_after`."""
    return [(place, payload) for place, payload in fetch(db, LOG_AFTER, (log, seq, owner, limit))]


def counted(db: apsw.Connection, owner: int, logs: Sequence[int]) -> dict[int, int]:
    """See `ports.Reader.counted`."""
    return dict(fetch(db, COUNTED_TO, (owner, encode(list(logs)).decode())))


def requests(
    db: apsw.Connection, owner: int, since: int, until: int, logs: Sequence[int] | None
) -> list[Request]:
    """See `ports.Reader.requests`."""
    bound = (owner, since, until)
    rows = (
        fetch(db, REQUESTS, bound)
        if logs is None
        else fetch(db, REQUESTS_OF, (*bound, encode(list(logs)).decode()))
    )
    return [Request(*row)._replace(reported=bool(row[-1])) for row in rows]


def put_requests(
    db: apsw.Connection, owner: int, log: int, head: int, found: Sequence[Request], gone: Sequence[int]
) -> None:
    """See `ports.Writer.put_requests`."""
    if not fetch(db, IS_REACHED, (log,))[0][0]:
        return
    db.executemany(PUT_REQUEST, [(owner, log << 24 | seq, *rest) for _, seq, *rest in found])
    db.executemany(DROP_REQUEST, [(owner, log << 24 | seq) for seq in gone])
    db.execute(PUT_COUNTED, (owner, log, head))


def drop_requests(db: apsw.Connection, owner: int, logs: Sequence[int]) -> None:
    """Drop those of logs that no session has or reaches any more."""
    for log in logs:
        if not fetch(db, IS_REACHED, (log,))[0][0]:
            db.execute(DROP_REQUESTS, (owner, log))
            db.execute(DROP_COUNTED, (owner, log))


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
