"""What was said on which day: a table beside the search index, in the same file and fed together with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from hitherto.model import Entry, decode_entry, encode
from hitherto.stores.sqlite.connection import fetch
from hitherto.values.days import DayModel, Tally, missing_forms, tallies

SCHEMA = """
DROP TABLE IF EXISTS day;
CREATE TABLE day (
    owner    INTEGER NOT NULL,
    day      INTEGER NOT NULL,
    session  INTEGER NOT NULL,
    model    TEXT NOT NULL,
    agent    TEXT NOT NULL,
    project  TEXT,
    messages INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    cost     INTEGER NOT NULL,
    PRIMARY KEY (owner, day, session, model)
) WITHOUT ROWID;
CREATE INDEX day_session ON day (session);
"""
FORGET = "DELETE FROM day"
ADD = """
INSERT INTO day (owner, day, session, model, agent, project, messages, tokens, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, day, session, model) DO UPDATE SET
    messages = messages + excluded.messages, tokens = tokens + excluded.tokens, cost = cost + excluded.cost
"""
DROP_EMPTY = "DELETE FROM day WHERE session = ? AND messages <= 0"
DROP_SESSION = "DELETE FROM day WHERE session = ?"
RESTATE = "UPDATE day SET agent = ?, project = ? WHERE session = ?"
SPOKEN = "SELECT DISTINCT session FROM day WHERE owner = ? AND day = ? ORDER BY session"
CROWDED = "SELECT 1 FROM day WHERE owner = ? AND day = ? LIMIT 1 OFFSET ?"
AMONG = """
SELECT DISTINCT d.session FROM json_each(?3) AS j CROSS JOIN day AS d
WHERE d.owner = ?1 AND d.day = ?2 AND d.session = j.value
"""
DAYS = """
SELECT day, count(DISTINCT session), sum(messages), sum(tokens), sum(cost) FROM day
WHERE owner = ? AND day BETWEEN ? AND ? GROUP BY day ORDER BY day
"""
SHARES = """
SELECT day, agent, model, sum(messages), sum(tokens), sum(cost) FROM day
WHERE owner = ? AND day BETWEEN ? AND ? GROUP BY day, agent, model ORDER BY day, agent, model
"""
PROJECTS = """
SELECT project, count(DISTINCT session), sum(messages), sum(tokens), sum(cost) FROM day
WHERE owner = ? AND day BETWEEN ? AND ? AND project IS NOT NULL
GROUP BY project ORDER BY sum(messages) DESC, project LIMIT ?
"""
LONGEST = """
SELECT session FROM day WHERE owner = ? AND day BETWEEN ? AND ?
GROUP BY session ORDER BY sum(messages) DESC, session LIMIT ?
"""
ALL = "SELECT owner, day, session, model, agent, project, messages, tokens, cost FROM day"

# Of the main file.
SESSIONS = """
SELECT s.num, s.owner, coalesce(s.source, s.agent_id, ''), s.project FROM json_each(?) AS j CROSS JOIN session AS s
WHERE s.num = j.value
"""
FORMS = """
SELECT e.payload FROM json_each(?2) AS j CROSS JOIN entry AS e WHERE e.id = j.value AND e.pos >> 24 = ?1
"""
LOG = """
SELECT payload FROM entry WHERE pos BETWEEN ?1 << 24 AND (?1 + 1 << 24) - 1 AND number <= ?2 ORDER BY pos
"""
LOGS = "SELECT num FROM session ORDER BY num"


class Restated(NamedTuple):
    """A session whose days must be recounted or relabelled."""

    number: int
    session: int
    recount: bool


class Spoken(NamedTuple):
    """Days as they are asked for: in which sessions something was said, how much, where and by whom."""

    days: list[tuple[int, int, Tally]]
    shares: list[tuple[int, str, str, Tally]]
    projects: list[tuple[str, int, Tally]]
    longest: list[int]


def read(payload: bytes) -> Entry | None:
    """The entry; None if it cannot be read, which must not keep others from being counted."""
    try:
        return decode_entry(payload)
    except Exception:  # noqa: BLE001 - whatever it is, it is that entry's
        return None


def add(index: apsw.Connection, main: apsw.Connection, entries: Iterable[tuple[int, Entry]]) -> None:
    """Count entries, each with the number of its log. Logs of sessions that are gone have no days."""
    logs: defaultdict[int, list[Entry]] = defaultdict(list)
    for log, entry in entries:
        logs[log].append(entry)
    for log, owner, agent, project in fetch(main, SESSIONS, (encode(list(logs)).decode(),)):
        said = tallies(logs[log], _forms(main, log, logs[log]))
        rows = [(owner, day, log, model, agent, project, *tally) for (day, model), tally in said.items()]
        index.executemany(ADD, rows)
        if any(tally.messages <= 0 for tally in said.values()):
            index.execute(DROP_EMPTY, (log,))


def restate(index: apsw.Connection, main: apsw.Connection, given: Sequence[Restated], upto: int) -> None:
    """Recount or relabel the days of these sessions, as far as their documents have been fed."""
    known = {
        row[0]: row[2:] for row in fetch(main, SESSIONS, (encode([one.session for one in given]).decode(),))
    }
    for one in given:
        if one.session not in known:
            index.execute(DROP_SESSION, (one.session,))
        elif one.recount:
            recount(index, main, one.session, upto)
        else:
            index.execute(RESTATE, (*known[one.session], one.session))


def recount(index: apsw.Connection, main: apsw.Connection, session: int, upto: int) -> None:
    """Count all entries of a session's log anew."""
    index.execute(DROP_SESSION, (session,))
    add(index, main, ((session, entry) for entry in _log(main, session, upto)))


def differing(index: apsw.Connection, main: apsw.Connection, upto: int) -> list[int]:
    """The sessions whose days are not what their entries say, or that are not there at all."""
    kept: defaultdict[int, set[tuple[object, ...]]] = defaultdict(set)
    for owner, day, session, *rest in fetch(index, ALL):
        kept[session].add((owner, day, *rest))
    wrong = []
    for (session,) in fetch(main, LOGS):
        if kept.pop(session, set()) != _expected(main, session, upto):
            wrong.append(session)
    return wrong + list(kept)


def activity(index: apsw.Connection, owner: int, first: int, last: int, most: int) -> Spoken:
    """What was said in these days."""
    bound = (owner, first, last)
    return Spoken(
        days=[(day, sessions, Tally(*sums)) for day, sessions, *sums in fetch(index, DAYS, bound)],
        shares=[
            (day, agent, model, Tally(*sums)) for day, agent, model, *sums in fetch(index, SHARES, bound)
        ],
        projects=[
            (name, sessions, Tally(*sums)) for name, sessions, *sums in fetch(index, PROJECTS, (*bound, most))
        ],
        longest=[session for (session,) in fetch(index, LONGEST, (*bound, most))],
    )


def _expected(main: apsw.Connection, session: int, upto: int) -> set[tuple[object, ...]]:
    ((_, owner, agent, project),) = fetch(main, SESSIONS, (f"[{session}]",))
    said: dict[DayModel, Tally] = tallies(_log(main, session, upto), {})
    return {
        (owner, day, model, agent, project, *tally)
        for (day, model), tally in said.items()
        if tally.messages > 0
    }


def _log(main: apsw.Connection, log: int, upto: int) -> Iterator[Entry]:
    for (payload,) in main.execute(LOG, (log, upto)):
        if (entry := read(payload)) is not None:
            yield entry


def _forms(main: apsw.Connection, log: int, entries: Sequence[Entry]) -> dict[str, Entry]:
    """The forms that amended entries had before, as far as they are not among them."""
    names = missing_forms(entries)
    if not names:
        return {}
    found = (read(payload) for (payload,) in fetch(main, FORMS, (log, encode(names).decode())))
    return {entry.id: entry for entry in found if entry is not None}
