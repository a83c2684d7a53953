"""Lists of sessions: which index leads, and what a filter means in SQL.

One condition of the filter leads: its index is walked in the order of the list, at most `examine` rows of it. The
others are checked row by row. So a page costs the same among a million sessions as among a hundred.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hitherto.model import Filter
from hitherto.ports import ListKey
from hitherto.stores.postgres import search
from hitherto.stores.postgres.rows import COLUMNS, FIELDS, OWN
from hitherto.values.days import day_number
from hitherto.values.filters import statuses, text_terms

START = ListKey(search.NO_END, "")
"""Above every session of a list."""

# What each field of a filter asks of a session `s`.
CONDITIONS = {
    "cwd": "hashtextextended(s.cwd, 0) = hashtextextended(%(cwd)s, 0) AND s.cwd = %(cwd)s",
    "project": "s.project = %(project)s",
    "agent_id": "s.agent_id = %(agent_id)s",
    "channel": "s.channel = %(channel)s",
    "source": "s.source = %(source)s",
    "native": "(s.source IS NULL) = %(native)s",
    "status": "s.status = ANY(%(statuses)s)",
    "pinned": "s.pinned = %(pinned)s",
    "created_after": "s.created_at >= %(created_after)s",
    "created_before": "s.created_at < %(created_before)s",
    "updated_after": "s.updated_at >= %(updated_after)s",
    "updated_before": "s.updated_at < %(updated_before)s",
    "tags": """(SELECT count(*) FROM tag t
                WHERE t.owner = s.owner AND t.id = s.id AND t.tag = ANY(%(tags)s)) = %(tag_count)s""",
    "day": "(SELECT true FROM day d WHERE d.owner = s.owner AND d.num = s.num AND d.day = %(day)s LIMIT 1)",
    # No EXISTS: PostgreSQL would turn that into a join, and collect all titles that match.
    "text": """(SELECT t.words @@ %(text)s::tsquery FROM title t
                WHERE t.owner = s.owner AND t.num = s.num)""",
}
ARCHIVED = {"exclude": "NOT s.archived", "only": "s.archived", "include": "true"}

# Fields that have an index in the order of lists, the ones that leave the fewest sessions first. Repeating the
# condition of a partial index is what lets PostgreSQL use it.
LEADERS = {
    "status": "s.status = %(status)s AND s.status <> 'idle'",
    "pinned": "s.pinned",
    "cwd": f"{CONDITIONS['cwd']} AND s.cwd IS NOT NULL",
    "channel": f"{CONDITIONS['channel']} AND s.channel IS NOT NULL",
    "source": f"{CONDITIONS['source']} AND s.source IS NOT NULL",
    "project": f"{CONDITIONS['project']} AND s.project IS NOT NULL",
    "agent_id": f"{CONDITIONS['agent_id']} AND s.agent_id IS NOT NULL",
}

WAITING = "s.status = 'waiting' AND s.status <> 'idle'"
"""Beside those whose status is `running`: in the order of the list, each by itself."""

LED_BY_SESSIONS = f"""
SELECT {COLUMNS} FROM session s
WHERE s.owner = %(owner)s AND {{archived}} AND {{leader}} AND {{bound}}
  AND (s.order_at, s.id) < (%(below_at)s, %(below_id)s)
ORDER BY s.order_at DESC, s.id DESC LIMIT %(examine)s
"""
# Ordered by the tag's own columns, in which PostgreSQL sees the order of the index.
LED_BY_TAG = f"""
SELECT {", ".join(f"t.{name}" if name in ("order_at", "id") else f"s.{name}" for name in (*OWN, *FIELDS))} FROM (
    SELECT t.order_at, t.id FROM tag t
    WHERE t.owner = %(owner)s AND {{archived}} AND t.tag = %(tag)s AND {{bound}}
      AND (t.order_at, t.id) < (%(below_at)s, %(below_id)s)
    ORDER BY t.order_at DESC, t.id DESC LIMIT %(examine)s
) t CROSS JOIN LATERAL (SELECT s.* FROM session s WHERE s.owner = %(owner)s AND s.id = t.id OFFSET 0) s
ORDER BY t.order_at DESC, t.id DESC
"""
# A day has no index in the order of lists: its sessions are looked up and put in order, if they are not too many.
# The fence (OFFSET 0) makes PostgreSQL do so, and not walk the list until it has met them.
LED_BY_DAY = f"""
SELECT {COLUMNS} FROM (
    SELECT DISTINCT d.num AS spoken FROM day d WHERE d.owner = %(owner)s AND d.day = %(day)s
) d CROSS JOIN LATERAL (SELECT s.* FROM session s WHERE s.owner = %(owner)s AND s.num = d.spoken OFFSET 0) s
WHERE {{archived}} AND (s.order_at, s.id) < (%(below_at)s, %(below_id)s)
ORDER BY s.order_at DESC, s.id DESC LIMIT %(examine)s
"""
# What stands below the lower bound of a list by time, and yet is of that time.
LED_BY_AHEAD = f"""
SELECT {COLUMNS} FROM session s
WHERE s.owner = %(owner)s AND s.updated_at > s.order_at AND s.order_at < %(updated_after)s AND {{archived}} AND {{leader}}
  AND (s.order_at, s.id) < (%(below_at)s, %(below_id)s)
ORDER BY s.order_at DESC, s.id DESC LIMIT %(examine)s
"""
MERGED = """
SELECT s.* FROM ({parts}) s ORDER BY s.order_at DESC, s.id DESC LIMIT %(examine)s
"""

PAGE = """
SELECT {columns} FROM ({examined}) s WHERE {conditions} ORDER BY {order} LIMIT %(limit)s
"""
LAST_EXAMINED = """
SELECT {key}, s.id FROM ({examined}) s ORDER BY {order} OFFSET %(examine)s - 1 LIMIT 1
"""
COUNT = """
SELECT count(*) FROM session s WHERE s.owner = %(owner)s AND {conditions}
"""
LOOSE_TITLES = f"""
SELECT t.text FROM session s JOIN title t ON t.owner = s.owner AND t.num = s.num
WHERE s.owner = %(owner)s AND {{conditions}} AND t.{search.IS_LOOSE}
"""
LISTED = ("s.order_at", "s.order_at DESC, s.id DESC")


class Walk(NamedTuple):
    """A bounded walk: the statement for what passes, the one for how far it came, and the values for both."""

    page: str
    last_examined: str
    params: dict[str, Any]
    all_pass: bool


def listed(
    owner: str, given: Filter, below: ListKey | None, limit: int, examine: int, *, crowded: bool = False
) -> Walk:
    """By falling `(order_at, id)`. `crowded` says that the day has too many sessions to be put in order."""
    params = _params(owner, given, limit, examine) | _below(given, below)
    if given.day is not None and not crowded:
        examined = LED_BY_DAY.format(archived=ARCHIVED[given.archived])
        return _walk(examined, LISTED, _conditions(given, without="day"), params)
    leader = _leader(given)
    return _walk(_examined(given, leader), LISTED, _conditions(given, without=leader), params)


def _examined(given: Filter, leader: str | None) -> str:
    """The rows to look at, in order; from several indexes if need be."""
    since = given.updated_after is not None
    halves = ("exclude", "only") if given.archived == "include" else (given.archived,)
    led_by = LEADERS.get(leader or "", "true")
    leaders = [led_by, WAITING] if leader == "status" and len(statuses(given)) > 1 else [led_by]
    parts = [_led(leader, half, led, since=since) for half in halves for led in leaders]
    if since:
        led = CONDITIONS[leader] if leader else "true"
        parts.append(LED_BY_AHEAD.format(archived=ARCHIVED[given.archived], leader=led))
    if len(parts) == 1:
        return parts[0]
    return MERGED.format(parts=" UNION ALL ".join(f"({part})" for part in parts))


class Counted(NamedTuple):
    """The statement that counts what passes, the one for the titles among it that must be looked at themselves."""

    all: str
    loose_titles: str
    params: dict[str, Any]


def counted(owner: str, given: Filter) -> Counted:
    """How many pass."""
    conditions = " AND ".join([ARCHIVED[given.archived], *_conditions(given)])
    return Counted(
        COUNT.format(conditions=conditions),
        LOOSE_TITLES.format(conditions=conditions),
        _params(owner, given, 0, 0),
    )


def _walk(examined: str, by: tuple[str, str], conditions: list[str], params: dict[str, Any]) -> Walk:
    key, order = by
    page = PAGE.format(
        columns=COLUMNS, examined=examined, conditions=" AND ".join(conditions) or "true", order=order
    )
    return Walk(
        page, LAST_EXAMINED.format(key=key, examined=examined, order=order), params, all_pass=not conditions
    )


def _leader(given: Filter) -> str | None:
    if given.tags:
        return "tags"
    return next((name for name in LEADERS if _leads(name, getattr(given, name))), None)


def _leads(name: str, value: object) -> bool:
    return value is not None and (name, value) not in (("status", "idle"), ("pinned", False))


def _led(leader: str | None, archived: str, led_by: str, *, since: bool) -> str:
    """Rows that an index leads to. Nothing but the few sessions ahead of their place is newer than its place."""
    bound = "s.order_at >= %(updated_after)s" if since else "true"
    if leader == "tags":
        return LED_BY_TAG.format(archived=_of_tag(ARCHIVED[archived]), bound=_of_tag(bound))
    return LED_BY_SESSIONS.format(archived=ARCHIVED[archived], bound=bound, leader=led_by)


def _of_tag(condition: str) -> str:
    return condition.replace("s.", "t.")


def _conditions(given: Filter, without: str | None = None) -> list[str]:
    """What is asked beyond `archived` and the leader."""
    asked = {name for name in CONDITIONS if getattr(given, name) not in (None, ())}
    if not text_terms(given):
        asked.discard("text")
    if without != "tags" or len(given.tags) == 1:
        asked.discard(without or "")
    return [condition for name, condition in CONDITIONS.items() if name in asked]


def _params(owner: str, given: Filter, limit: int, examine: int) -> dict[str, Any]:
    return {
        **{name: getattr(given, name) for name in CONDITIONS},
        "owner": owner,
        "day": None if given.day is None else day_number(given.day),
        "statuses": list(statuses(given)),
        "tags": list(given.tags),
        "tag": given.tags[0] if given.tags else None,
        "tag_count": len(given.tags),
        "text": search.query(owner, text_terms(given)),
        "limit": limit,
        "examine": examine,
    }


def _below(given: Filter, below: ListKey | None) -> dict[str, Any]:
    """Where to begin: no session stands above its time."""
    before = START if given.updated_before is None else ListKey(given.updated_before, "")
    at, session_id = min(below or START, before)
    return {"below_at": at, "below_id": session_id}
