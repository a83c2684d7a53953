"""What was said on which day, and what sessions have in common: counters that are kept, and how they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from hitherto.model import Entry, Facets, Json, decode_entry
from hitherto.ports import Activity, KeptUsage
from hitherto.stores.postgres.rows import COLUMNS, Row, whole_records
from hitherto.stores.postgres.transactions import ANY_PLAN, Statements
from hitherto.values.days import DayModel, Tally, day_number, missing_forms, tallies
from hitherto.values.facets import COUNT, LISTED, MOST, Traits, count_changes, facets
from hitherto.values.usage.requests import Request

COUNT_FACET = """
INSERT INTO facet AS f (owner, lane, kind, value, sessions) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (owner, kind, value, lane) DO UPDATE SET sessions = f.sessions + excluded.sessions
"""
DROP_FACET = "DELETE FROM facet WHERE owner = %s AND lane = %s AND kind = %s AND value = %s AND sessions <= 0"
FACETS = """
SELECT kind, value, sum(sessions)::bigint AS number FROM facet
WHERE owner = %s AND kind = %s GROUP BY kind, value ORDER BY number DESC, value LIMIT %s
"""

ADD_DAY = """
INSERT INTO day AS d (owner, num, day, model, messages, tokens, cost) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (owner, num, day, model) DO UPDATE SET
    messages = d.messages + excluded.messages, tokens = d.tokens + excluded.tokens, cost = d.cost + excluded.cost
"""
DROP_EMPTY_DAYS = "DELETE FROM day WHERE owner = %s AND num = %s AND messages <= 0"
DROP_DAYS = "DELETE FROM day WHERE owner = %s AND num = %s"
DAYS = """
SELECT num, day, model, messages, tokens, cost FROM day WHERE owner = %s AND num = ANY(%s::bigint[])
"""
FORMS = "SELECT payload FROM entry WHERE owner = %s AND log = %s AND id = ANY(%s)"
LOG = """
SELECT seq, payload FROM entry WHERE owner = %s AND log = %s AND seq > %s ORDER BY seq LIMIT %s
"""
BATCH = 1_000
MICROS = 1_000_000
SESSIONS = "SELECT owner, num FROM session ORDER BY owner, num"
IS_THERE = "SELECT 1 FROM session WHERE owner = %s AND num = %s"

SPOKEN = "SELECT DISTINCT num FROM day WHERE owner = %s AND day = %s AND num = ANY(%s::bigint[])"
SOME_SPOKEN = "SELECT count(*) FROM (SELECT 1 FROM day WHERE owner = %s AND day = %s LIMIT %s) found"

_WITHIN = "d.owner = %(owner)s AND d.day BETWEEN %(first)s AND %(last)s"
_SUMS = "sum(d.messages)::bigint, sum(d.tokens)::bigint, sum(d.cost)::bigint"
_JOINED = "day d JOIN session s ON s.owner = d.owner AND s.num = d.num"
PER_DAY = f"""
SELECT d.day, count(DISTINCT d.num), {_SUMS} FROM day d WHERE {_WITHIN} GROUP BY d.day ORDER BY d.day
"""
SHARES = f"""
SELECT d.day, coalesce(s.source, s.agent_id, '') AS agent, d.model, {_SUMS} FROM {_JOINED} WHERE {_WITHIN}
GROUP BY d.day, agent, d.model ORDER BY d.day, agent, d.model
"""
BUSIEST = f"""
SELECT s.project, count(DISTINCT d.num), {_SUMS} FROM {_JOINED} WHERE {_WITHIN} AND s.project IS NOT NULL
GROUP BY s.project ORDER BY sum(d.messages) DESC, s.project LIMIT %(most)s
"""
LONGEST = f"""
SELECT {COLUMNS} FROM session JOIN (
    SELECT d.num AS long, sum(d.messages) AS said FROM day d WHERE {_WITHIN}
    GROUP BY d.num ORDER BY said DESC, d.num LIMIT %(most)s
) longest ON owner = %(owner)s AND num = long ORDER BY said DESC, num
"""
# From one name to the next: as many steps as there are projects, however many sessions.
PROJECTS = """
WITH RECURSIVE known AS (
    SELECT (SELECT min(project) FROM session WHERE owner = %(owner)s AND project IS NOT NULL) AS name
    UNION ALL
    SELECT (SELECT min(project) FROM session WHERE owner = %(owner)s AND project IS NOT NULL AND project > known.name)
    FROM known WHERE known.name IS NOT NULL
)
SELECT name FROM known WHERE name IS NOT NULL ORDER BY name
"""
PLACELESS = """
SELECT DISTINCT cwd FROM session WHERE owner = %s AND project IS NULL AND cwd IS NOT NULL ORDER BY cwd LIMIT %s
"""
ROOTED = "SELECT project FROM root WHERE owner = %s AND root = %s"
ROOTS = "SELECT root FROM root WHERE owner = %s AND project = %s ORDER BY root"
PUT_ROOT = """
INSERT INTO root (owner, root, project) VALUES (%s, %s, %s)
ON CONFLICT (owner, root) DO UPDATE SET project = excluded.project
"""
STATS = """
SELECT count(*), count(*) FILTER (WHERE archived), count(*) FILTER (WHERE pinned),
       coalesce(sum(message_count), 0)::bigint, sum(token_count)::bigint, coalesce(sum(bytes), 0)::bigint,
       coalesce(sum(error_count), 0)::bigint,
       min(created_at), max(updated_at),
       (SELECT count(*) FROM fact WHERE owner = %(owner)s),
       (SELECT count(*) FROM checkpoint WHERE owner = %(owner)s)
FROM session WHERE owner = %(owner)s
"""
STAT_NAMES = (
    "sessions", "archived", "pinned", "messages", "tokens", "bytes", "errors", "oldest", "newest",
    "facts", "checkpoints",
)  # fmt: skip
BY_SOURCE = """
SELECT source, count(*) FROM session WHERE owner = %s AND source IS NOT NULL GROUP BY source ORDER BY source
"""
BY_AGENT = """
SELECT agent_id, count(*) FROM session WHERE owner = %s AND agent_id IS NOT NULL GROUP BY agent_id ORDER BY agent_id
"""

LOG_AFTER = "SELECT seq, payload FROM entry WHERE owner = %s AND log = %s AND seq > %s ORDER BY seq LIMIT %s"
COUNTED_TO = "SELECT log, head FROM counted WHERE owner = %s AND log = ANY(%s::bigint[])"
_REQUEST = "log, seq, at, model, key, input, output, cache_read, cache_write, cost, reported"
REQUESTS = f"SELECT {_REQUEST} FROM request WHERE owner = %s AND at >= %s AND at < %s ORDER BY log, seq"
REQUESTS_OF = f"""
SELECT {_REQUEST} FROM request WHERE owner = %s AND at >= %s AND at < %s AND log = ANY(%s::bigint[]) ORDER BY log, seq
"""
PUT_REQUEST = f"""
INSERT INTO request (owner, {_REQUEST})
SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s
ON CONFLICT (owner, log, seq) DO UPDATE SET
    at = excluded.at, model = excluded.model, key = excluded.key, input = excluded.input, output = excluded.output,
    cache_read = excluded.cache_read, cache_write = excluded.cache_write, cost = excluded.cost, reported = excluded.reported
"""
DROP_REQUEST = "DELETE FROM request WHERE owner = %s AND log = %s AND seq = %s"
PUT_COUNTED = """
INSERT INTO counted AS c (owner, log, head) VALUES (%s, %s, %s)
ON CONFLICT (owner, log) DO UPDATE SET head = greatest(c.head, excluded.head)
"""
IS_REACHED = """
SELECT EXISTS (SELECT FROM session WHERE owner = %(owner)s AND num = %(log)s)
    OR EXISTS (SELECT FROM span WHERE owner = %(owner)s AND log = %(log)s)
"""
# Of the logs of a session that is about to go: those that no other one has or reaches.
_UNREACHED = """
r.owner = %(owner)s AND r.log IN (
    SELECT %(num)s::bigint UNION SELECT log FROM span WHERE owner = %(owner)s AND num = %(num)s
)
    AND NOT EXISTS (SELECT FROM session s WHERE s.owner = r.owner AND s.num = r.log AND s.num <> %(num)s)
    AND NOT EXISTS (SELECT FROM span p WHERE p.owner = r.owner AND p.log = r.log AND p.num <> %(num)s)
"""
# Each request once, as it is where most was written.
REPORTED = """
SELECT sum(cost)::bigint FROM (
    SELECT DISTINCT ON (key) cost FROM request WHERE owner = %s AND reported AND cost > 0 ORDER BY key, output DESC
) once
"""
SESSION_USAGE = """
SELECT s.id, s.revision, greatest(s.head, s.message_count), u.revision, u.body
FROM session s LEFT JOIN session_usage u ON u.owner = s.owner AND u.num = s.num
WHERE s.owner = %s AND s.id = ANY(%s::text[])
"""
PUT_SESSION_USAGE = """
INSERT INTO session_usage AS u (owner, num, revision, body)
SELECT owner, num, %(revision)s, %(body)b FROM session WHERE owner = %(owner)s AND num = %(num)s
ON CONFLICT (owner, num) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE u.revision <= excluded.revision
"""
DROP_REQUESTS = (f"DELETE FROM request r WHERE {_UNREACHED}", f"DELETE FROM counted r WHERE {_UNREACHED}")


async def count_all(statements: Statements, owner: str) -> Json:
    """See `ports.Reader.stats`."""
    await statements.queue(ANY_PLAN)
    numbers = dict(zip(STAT_NAMES, (await statements.rows(STATS, {"owner": owner}))[0], strict=True))
    ((cost,),) = await statements.rows(REPORTED, (owner,))
    return {
        **numbers,
        "cost": None if cost is None else cost / MICROS,
        "by_source": dict(await statements.rows(BY_SOURCE, (owner,))),
        "by_agent": dict(await statements.rows(BY_AGENT, (owner,))),
    }


async def list_facets(statements: Statements, owner: str) -> Facets:
    """See `ports.Reader.facets`."""
    found = [row for kind in (COUNT, *LISTED) for row in await statements.rows(FACETS, (owner, kind, MOST))]
    return facets((kind, value, number) for kind, value, number in found)


async def active_sessions(statements: Statements, owner: str, day: str, nums: Sequence[int]) -> set[int]:
    found = await statements.rows(SPOKEN, (owner, day_number(day), list(nums)))
    return {row[0] for row in found}


async def is_crowded(statements: Statements, owner: str, day: str, few: int) -> bool:
    """Whether the day has more than a few."""
    return int((await statements.rows(SOME_SPOKEN, (owner, day_number(day), few + 1)))[0][0]) > few


async def activity(statements: Statements, owner: str, first: int, last: int, most: int) -> Activity:
    await statements.queue(ANY_PLAN)
    bound = {"owner": owner, "first": first, "last": last, "most": most}
    days, shares, projects, longest = [
        await statements.rows(statement, bound, plan_anew=True)
        for statement in (PER_DAY, SHARES, BUSIEST, LONGEST)
    ]
    return Activity(
        days=[(day, sessions, Tally(*sums)) for day, sessions, *sums in days],
        shares=[(day, agent, model, Tally(*sums)) for day, agent, model, *sums in shares],
        projects=[(name, sessions, Tally(*sums)) for name, sessions, *sums in projects],
        longest=whole_records(longest),
    )


async def log_after(
    statements: Statements, owner: str, log: int, seq: int, limit: int
) -> list[tuple[int, bytes]]:
    """See `ports.Reader.log_after`."""
    rows = await statements.rows(LOG_AFTER, (owner, log, seq, limit))
    return [(place, bytes(payload)) for place, payload in rows]


async def counted(statements: Statements, owner: str, logs: Sequence[int]) -> dict[int, int]:
    """See `ports.Reader.counted`."""
    return dict(await statements.rows(COUNTED_TO, (owner, list(logs))))


async def requests(
    statements: Statements, owner: str, since: int, until: int, logs: Sequence[int] | None
) -> list[Request]:
    """See `ports.Reader.requests`."""
    bound = (owner, since, until)
    rows = (
        await statements.rows(REQUESTS, bound)
        if logs is None
        else await statements.rows(REQUESTS_OF, (*bound, list(logs)))
    )
    return [Request(*row) for row in rows]


async def put_requests(
    statements: Statements, owner: str, log: int, head: int, found: Sequence[Request], gone: Sequence[int]
) -> None:
    """See `ports.Writer.put_requests`."""
    if not (await statements.rows(IS_REACHED, {"owner": owner, "log": log}))[0][0]:
        return
    await statements.queue_many(PUT_REQUEST, [(owner, *each) for each in found])
    await statements.queue_many(DROP_REQUEST, [(owner, log, seq) for seq in gone])
    await statements.queue(PUT_COUNTED, (owner, log, head))


async def session_usage(statements: Statements, owner: str, ids: Sequence[str]) -> dict[str, KeptUsage]:
    """See `ports.Reader.session_usage`."""
    rows = await statements.rows(SESSION_USAGE, (owner, list(ids)))
    return {
        session_id: KeptUsage(revision, size, counted, None if body is None else bytes(body))
        for session_id, revision, size, counted, body in rows
    }


async def list_projects(statements: Statements, owner: str) -> list[str]:
    return [row[0] for row in await statements.rows(PROJECTS, {"owner": owner})]


async def folders_without_project(statements: Statements, owner: str, limit: int) -> list[str]:
    return [row[0] for row in await statements.rows(PLACELESS, (owner, limit))]


async def project_of_root(statements: Statements, owner: str, root: str) -> str | None:
    row = await statements.row(ROOTED, (owner, root))
    return None if row is None else str(row[0])


async def roots_of_project(statements: Statements, owner: str, project: str) -> list[str]:
    return [row[0] for row in await statements.rows(ROOTS, (owner, project))]


async def count(
    statements: Statements, owner: str, lane: int, old: Traits | None, new: Traits | None
) -> None:
    """Follow a session that was `old` and is `new`. Behind its lane's lock: two who count there wait for each other."""
    change, place = count_changes(old, new), (owner, lane)
    await statements.queue_many(COUNT_FACET, [(*place, *mark, number) for mark, number in change.items()])
    await statements.queue_many(
        DROP_FACET, [(*place, *mark) for mark, number in change.items() if number < 0]
    )


async def add_days(statements: Statements, owner: str, num: int, entries: Sequence[Entry]) -> None:
    """Count entries that were appended to a session's log."""
    said = tallies(entries, await _forms(statements, owner, num, entries))
    await statements.queue_many(ADD_DAY, list(_rows(owner, num, said)))
    if any(tally.messages <= 0 for tally in said.values()):
        await statements.queue(DROP_EMPTY_DAYS, (owner, num))


async def recount(statements: Statements, owner: str, num: int) -> None:
    """Count a session's log anew, entries of which are gone; a session that is gone has no days."""
    await statements.queue(DROP_DAYS, (owner, num))
    if await statements.row(IS_THERE, (owner, num)) is not None:
        said = await days_of(statements, owner, num)
        await statements.queue_many(ADD_DAY, list(_rows(owner, num, said)))


async def count_all_days(statements: Statements) -> None:
    """Count the log of every session; for a store in which none was counted yet."""
    for owner, num in await statements.rows(SESSIONS):
        said = await days_of(statements, owner, num)
        await statements.queue_many(ADD_DAY, list(_rows(owner, num, said)))


async def days_of(statements: Statements, owner: str, num: int) -> dict[DayModel, Tally]:
    """What a session's log says."""
    entries = [entry async for entry in _log(statements, owner, num)]
    return {said: tally for said, tally in tallies(entries, {}).items() if tally.messages > 0}


async def kept_days(
    statements: Statements, owner: str, nums: Sequence[int]
) -> defaultdict[int, dict[DayModel, Tally]]:
    """What the counters of these sessions of an owner say."""
    found: defaultdict[int, dict[DayModel, Tally]] = defaultdict(dict)
    for num, day, model, *sums in await statements.rows(DAYS, (owner, list(nums))):
        found[num][DayModel(day, model)] = Tally(*sums)
    return found


def _rows(owner: str, num: int, said: dict[DayModel, Tally]) -> Iterable[tuple[Any, ...]]:
    return ((owner, num, day, model, *tally) for (day, model), tally in said.items())


async def _log(statements: Statements, owner: str, num: int) -> AsyncIterator[Entry]:
    """The entries of a log, without what makes them large: only what is counted is kept of each."""
    last = 0
    while True:
        rows = await statements.rows(LOG, (owner, num, last, BATCH))
        for seq, payload in rows:
            last, entry = seq, decode_entry(payload)
            yield Entry(
                id=entry.id,
                at=entry.at,
                role=entry.role,
                model=entry.model,
                usage=entry.usage,
                tokens=entry.tokens,
            )
        if len(rows) < BATCH:
            return


async def _forms(statements: Statements, owner: str, num: int, entries: Sequence[Entry]) -> dict[str, Entry]:
    """The forms that amended entries had before, as far as they are not among them."""
    names = missing_forms(entries)
    if not names:
        return {}
    found: list[Row] = await statements.rows(FORMS, (owner, num, names))
    return {entry.id: entry for entry in (decode_entry(payload) for (payload,) in found)}
