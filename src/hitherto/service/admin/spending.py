"""Reports: what was used and cost by day, week and month, project, agent, model, branch and session."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from hitherto.errors import InvalidInput
from hitherto.limits import LARGEST_NUMBER
from hitherto.model import Filter, Session, Value, agent_of
from hitherto.ports import ListKey, Reader
from hitherto.values.usage.requests import Request, UsageSum, each_once, sum_of

Period = Literal["day", "week", "month"]
By = Literal["project", "agent", "model", "branch", "session"]
PERIODS: tuple[Period, ...] = get_args(Period)
GROUPS: tuple[By, ...] = get_args(By)
COLUMNS = (
    "period", "name", "sessions", "requests", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "cost_usd", "reported_usd", "estimated_usd", "unpriced_requests",
)  # fmt: skip
FEW_LOGS = 200
_LEAST, _MOST = 0.8, 5.0
"""Between these shares of the estimate, what an agent says that a session cost is about the same requests."""


class UsageRow(Value, frozen=True):
    """What was used in one period, or of one thing; `name` is None for what is of none that is known."""

    period: str | None
    name: str | None
    sessions: int
    usage: UsageSum
    title: str | None = None

    @property
    def columns(self) -> tuple[object, ...]:
        """The values of `COLUMNS`."""
        used = self.usage
        counts = (used.requests, used.input, used.output, used.cache_read, used.cache_write)
        cost = None if used.cost is None else f"{used.cost:.6f}"
        money = (cost, f"{used.reported:.6f}", f"{used.estimated:.6f}", used.unpriced)
        return (self.period, self.name, self.sessions, *counts, *money)


class UsageReport(Value, frozen=True):
    """What was used between two days, both included, in the time of `zone`.

    `complete` is False while some messages are not counted yet: the next report has them.
    """

    since: str
    until: str
    zone: str
    rows: tuple[UsageRow, ...]
    total: UsageSum
    sessions: int
    complete: bool

    @property
    def csv(self) -> str:
        """The rows as comma-separated values, with a header line."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row.columns for row in self.rows)
        return text.getvalue().rstrip("\n")


class Labels(NamedTuple):
    """The sessions that logs are shown under, and the order in which they claim what several have."""

    sessions: dict[int, Session]

    @property
    def rank(self) -> dict[int, tuple[int, str]]:
        return {log: (session.created_at, session.id) for log, session in self.sessions.items()}


async def load_requests(tx: Reader, owner: str, begin: int, end: int) -> tuple[list[Request], Labels]:
    """The requests of a time, with what agents said of their cost, and the sessions that they belong to."""
    found = await tx.requests(owner, begin, end)
    labels = await _labels(tx, owner, {request.log for request in found})
    families = families_of(labels)
    if not families:
        return found, labels
    logs = sorted({log for family in families.values() for log in family.logs})
    whole = await tx.requests(owner, 0, LARGEST_NUMBER, logs)
    paid = {(each.log, each.seq): each for each in charged(whole, families, labels)}
    return [paid.get((each.log, each.seq), each) for each in found], labels


async def _labels(tx: Reader, owner: str, logs: set[int]) -> Labels:
    found: dict[int, Session] = {}
    if len(logs) > FEW_LOGS:
        below: ListKey | None = None
        while True:
            scan = await tx.scan(owner, Filter(archived="include"), below, 1_000, 1_000)
            found |= {record.num: record.session for record in scan.records if record.num in logs}
            if scan.ended or (below := scan.last) is None:
                break
    for log in logs - found.keys():
        nums = [log, *sorted(await tx.reaching(owner, log))]
        for num in nums:
            if (record := await tx.by_num(owner, num)) is not None:
                found[log] = record.session
                break
    return Labels(found)


class _Family(NamedTuple):
    """A session of which its agent says what it cost until a time, with its subagents, by their logs."""

    cost: int
    until: int
    logs: list[int]


def families_of(labels: Labels) -> dict[str, _Family]:
    found: dict[str, _Family] = {}
    for log, session in labels.sessions.items():
        cost, until = session.meta.get("cost"), session.meta.get("cost_at")
        if (
            session.source == "claude"
            and isinstance(cost, int | float)
            and isinstance(until, int)
            and cost > 0
        ):
            found[session.id] = _Family(round(cost * 1_000_000), until, [log])
    for log, session in labels.sessions.items():
        if session.parent in found and session.source == "claude":
            found[session.parent].logs.append(log)
    return found


def charged(whole: Sequence[Request], families: Mapping[str, _Family], labels: Labels) -> Iterable[Request]:
    """The requests of these sessions at what their agent said that all of them cost: in proportion to the estimates.

    Requests that leave no answer, such as those for titles, are part of it. If it cannot be about the same requests, the
    estimates stay.
    """
    once = list(each_once(whole, labels.rank))
    for family in families.values():
        logs = set(family.logs)
        covered = [each for each in once if each.log in logs and each.at <= family.until and each.cost]
        estimated = sum(each.cost or 0 for each in covered)
        if estimated and _LEAST <= family.cost / estimated <= _MOST:
            share = family.cost / estimated
            yield from (
                each._replace(cost=round((each.cost or 0) * share), reported=True) for each in covered
            )


def rows_of(
    found: Sequence[Request], labels: Labels, local: tzinfo, period: Period | None, by: By | None
) -> list[UsageRow]:
    groups: defaultdict[tuple[str | None, str | None], list[Request]] = defaultdict(list)
    day_of = _day_finder(local)
    name_of = _NAMES[by] if by is not None else None
    period_of = _PERIODS[period] if period is not None else None
    for request in found:
        when = None if period_of is None else period_of(day_of(request.at))
        name = None if name_of is None else name_of(request, labels.sessions[request.log])
        groups[when, name].append(request)
    titles = {session.id: session.title for session in labels.sessions.values()} if by == "session" else {}
    rows = [
        UsageRow(
            period=when,
            name=name,
            title=titles.get(name or ""),
            sessions=len({request.log for request in requests}),
            usage=sum_of(requests),
        )
        for (when, name), requests in groups.items()
    ]
    return sorted(rows, key=lambda row: (row.period or "", -(row.usage.cost or 0), row.name or ""))


_NAMES: Mapping[By, Callable[[Request, Session], str | None]] = {
    "project": lambda _, session: session.project,
    "agent": lambda _, session: agent_of(session),
    "model": lambda request, _: request.model or None,
    "branch": lambda _, session: session.branch,
    "session": lambda _, session: session.id,
}
_PERIODS: Mapping[Period, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{:04}-W{:02}".format(*day.isocalendar()),
    "month": lambda day: f"{day:%Y-%m}",
}


def _day_finder(local: tzinfo) -> Callable[[int], date]:
    """The day of a moment in this zone; of each quarter of an hour it is found once: clocks change on none else."""
    known: dict[int, date] = {}

    def day_of(at: int) -> date:
        quarter = at // 900_000
        if quarter not in known:
            known[quarter] = datetime.fromtimestamp(quarter * 900, local).date()
        return known[quarter]

    return day_of


def moment_of(day: date, local: tzinfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=local).timestamp() * 1_000)


def checked_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except (TypeError, ValueError):
        raise InvalidInput(f"a day is written like 2026-11-15, not {text!r:.40}") from None


def checked_zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        if name[:1] in "+-":
            return timezone(datetime.strptime(name, "%z").utcoffset() or timedelta())
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InvalidInput(f"a time zone is written like Europe/Berlin or +02:00, not {name!r:.60}") from None
