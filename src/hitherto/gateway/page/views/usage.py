"""`/usage`: what was used and cost by day, week or month, and by project, model or agent, in local time; `/usage.csv`: the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

from msgspec.structs import asdict, replace

from hitherto.errors import InvalidInput
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.list_query import NATIVE, ListQuery, source_label
from hitherto.gateway.page.render.charts import Name, Piece, Stacks, calendar, days_between, stacks
from hitherto.gateway.page.render.rows import UNTITLED, address
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Facets, Json, Value
from hitherto.presentation import formats, usage
from hitherto.service.admin.spending import PERIODS, By, Period, UsageReport, UsageRow, checked_zone
from hitherto.values.days import today
from hitherto.values.usage.requests import UsageSum

YEAR = 365
RANGES = {30: "30 days", 90: "90 days", YEAR: "1 year"}
MEASURES = {"cost": "Cost", "tokens": "Tokens"}
DIVISIONS: dict[By, str] = {"project": "Project", "model": "Model", "agent": "Agent"}
DEAREST, LINES = 10, 40
UNKNOWN = ""
"""The name for what is of no project, model or agent that is known."""
UNNAMED = {"agent": "Hitherto", "model": "no model", "project": "no project"}
STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "memory": "memory"}
SECONDS = 5.0
"""So long, at most, messages are counted that are not counted yet."""


class UsageQuery(Value, frozen=True):
    """The query of the page: how many days, in which periods, which measure, by what, and in which time zone."""

    days: int = 30
    per: Period = "day"
    of: str = "cost"
    by: By = "project"
    zone: str = "UTC"

    def address_with(self, path: str = "/usage", **changes: Any) -> str:
        """The address of the page with changes; the zone is the browser's."""
        usual = asdict(UsageQuery(zone=self.zone))
        changed = {
            name: value for name, value in asdict(replace(self, **changes)).items() if value != usual[name]
        }
        return f"{path}?{urlencode(changed)}" if changed else path


class Length(NamedTuple):
    """A bar: its label, its link, its value as text, and its length in percent of the first bar."""

    name: str
    address: str
    text: str
    share: float


class Line(NamedTuple):
    """A period of the table: its sum, and what is of each name."""

    period: str
    address: str
    total: str
    cells: tuple[str, ...]


def parse_usage_query(query: Mapping[str, str], zone: str = "UTC") -> UsageQuery:
    """Parse the query; unknown values get the defaults."""
    usual, days = UsageQuery(), {str(number): number for number in RANGES}
    try:
        checked_zone(zone)
    except InvalidInput:
        zone = usual.zone
    return UsageQuery(
        days=days.get(query.get("days", ""), usual.days),
        per=cast(Period, query["per"]) if query.get("per") in PERIODS else usual.per,
        of=query["of"] if query.get("of") in MEASURES else usual.of,
        by=cast(By, query["by"]) if query.get("by") in DIVISIONS else usual.by,
        zone=zone,
    )


async def usage_page(caller: Caller, wanted: UsageQuery) -> bytes:
    """Render the page. The calendar shows a year of messages, everything else the chosen days."""
    report = await _report(caller, wanted, period=wanted.per, by=wanted.by)
    dearest = await _report(caller, wanted, period=None, by="session")
    until = today(now_ms())
    year = until - timedelta(days=YEAR - 1)
    active = await caller.sessions.statistics.overview(caller.who, since_day=str(year), until_day=str(until))
    facets = await caller.sessions.statistics.facets(caller.who)
    return templates.page(
        "usage.html",
        query=wanted,
        report=report,
        ranges=[(text, wanted.address_with(days=days), days == wanted.days) for days, text in RANGES.items()],
        periods=[(per.capitalize(), wanted.address_with(per=per), per == wanted.per) for per in PERIODS],
        measures=[(text, wanted.address_with(of=of), of == wanted.of) for of, text in MEASURES.items()],
        divisions=[(text, wanted.address_with(by=by), by == wanted.by) for by, text in DIVISIONS.items()],
        csv=wanted.address_with("/usage.csv"),
        sums=_sums(report),
        drawn=_Drawn(wanted, report),
        dearest=_dearest(dearest.rows),
        calendar=calendar({day.day: day.messages for day in active.days}, year, until),
        health=_health(caller, facets, active.store),
    )


async def usage_csv(caller: Caller, wanted: UsageQuery) -> bytes:
    """The rows of the page for a spreadsheet."""
    return (await _report(caller, wanted, period=wanted.per, by=wanted.by)).csv.encode("utf-8", "replace")


async def _report(caller: Caller, wanted: UsageQuery, *, period: Period | None, by: By) -> UsageReport:
    until = datetime.fromtimestamp(now_ms() / 1_000, checked_zone(wanted.zone)).date()
    since = until - timedelta(days=wanted.days - 1)
    return await caller.sessions.spending.report(
        caller.who,
        since_day=str(since),
        until_day=str(until),
        period=period,
        by=by,
        zone=wanted.zone,
        seconds=SECONDS,
    )


class _Drawn:
    """The report as a chart and as a table, with labels and links."""

    def __init__(self, wanted: UsageQuery, report: UsageReport) -> None:
        self._wanted, self._rows = wanted, report.rows
        first, last = date.fromisoformat(report.since), date.fromisoformat(report.until)
        columns = list(dict.fromkeys(_begin(_period(day, wanted.per)) for day in days_between(first, last)))
        values = [
            (_begin(row.period or ""), row.name or UNKNOWN, self._value(row.usage)) for row in self._rows
        ]
        self.stacks: Stacks = stacks(values, [date.fromisoformat(each) for each in columns])

    @property
    def lines(self) -> Iterator[Line]:
        """The newest periods in which something was used."""
        periods = sorted({row.period for row in self._rows if row.period}, reverse=True)
        for period in periods[:LINES]:
            mine = [row for row in self._rows if row.period == period]
            shown = [name.name for name in self.stacks.names]
            cells = (
                _total(
                    row
                    for row in mine
                    if (row.name or UNKNOWN) == name or (name is None and (row.name or UNKNOWN) not in shown)
                )
                for name in shown
            )
            yield Line(
                period,
                ListQuery().address_with(**_span(period)),
                self.told(_total(mine)),
                tuple(self.told(cell) if cell.requests else "" for cell in cells),
            )

    def label(self, name: str | None) -> str:
        """What a name is called."""
        if name is None:
            return "other"
        if name == UNKNOWN:
            return UNNAMED[self._wanted.by]
        by = {"agent": source_label, "project": formats.folder}.get(self._wanted.by, str)
        return by(name)

    def told(self, used: UsageSum) -> str:
        """What was used, in the chosen measure."""
        return (
            formats.about_cost(used) if self._wanted.of == "cost" else formats.count(used.input + used.output)
        )

    def measured(self, value: float) -> str:
        """A value of the chart."""
        if self._wanted.of == "cost":
            return formats.cost(value) if value else "$0"
        return formats.count(round(value))

    def period_of(self, piece: Piece) -> str:
        """The period of a piece, as the table calls it."""
        return _period(date.fromisoformat(piece.day), self._wanted.per)

    def behind(self, piece: Piece) -> str:
        """The address of the sessions of a piece: those last active in its period and, if known, of its name."""
        return ListQuery().address_with(**_span(self.period_of(piece)), **self._filter(piece.name))

    def all_of(self, name: Name) -> str | None:
        """The address of the sessions of a name, if there is a filter for it."""
        known = self._filter(name.name)
        return ListQuery().address_with(**known) if known else None

    def _filter(self, name: str | None) -> dict[str, tuple[str, ...]]:
        if name is None or self._wanted.by == "model":
            return {}
        if name == UNKNOWN:
            return {"sources": (NATIVE,)} if self._wanted.by == "agent" else {}
        return {"agents" if self._wanted.by == "agent" else "projects": (name,)}

    def _value(self, used: UsageSum) -> float:
        return used.cost or 0.0 if self._wanted.of == "cost" else float(used.input + used.output)


def _period(day: date, per: Period) -> str:
    if per == "month":
        return f"{day:%Y-%m}"
    return "{:04}-W{:02}".format(*day.isocalendar()) if per == "week" else str(day)


def _begin(period: str) -> str:
    """The first day of a period."""
    if "W" in period:
        return str(date.fromisocalendar(int(period[:4]), int(period[6:]), 1))
    return period if len(period) > 7 else f"{period}-01"


def _span(period: str) -> dict[str, str]:
    """The first and the last day of a period, as the list takes them."""
    first = date.fromisoformat(_begin(period))
    if "W" in period:
        last = first + timedelta(days=6)
    else:
        last = first if len(period) > 7 else (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return {"since": str(first), "until": str(last)}


def _total(rows: Iterable[UsageRow]) -> UsageSum:
    """What several rows used together."""
    found = [asdict(row.usage) for row in rows]
    return UsageSum(**{name: sum(each[name] for each in found) for name in asdict(UsageSum())})


def _sums(report: UsageReport) -> list[tuple[str, str, str]]:
    used = report.total
    hits = f"{used.cache_read * 100 // used.input}%" if used.input else "–"
    return [
        ("Cost", formats.about_cost(used) if used.requests else "–", usage.cost(used)),
        ("Tokens in", formats.count(used.input), f"{formats.grouped(used.input)} tokens"),
        ("Tokens out", formats.count(used.output), f"{formats.grouped(used.output)} tokens"),
        ("Cache hits", hits, f"{formats.grouped(used.cache_read)} of {formats.grouped(used.input)} tokens in came from the cache"),
        ("Sessions", formats.grouped(report.sessions), f"{formats.counted(used.requests, 'request')}"),
    ]  # fmt: skip


def _dearest(rows: Iterable[UsageRow]) -> list[Length]:
    found = [row for row in rows if row.usage.cost][:DEAREST]
    most = max((row.usage.cost or 0.0 for row in found), default=1.0)
    return [
        Length(
            row.title or UNTITLED,
            address(row.name or ""),
            formats.about_cost(row.usage),
            round(100 * (row.usage.cost or 0.0) / most, 1),
        )
        for row in found
    ]


def _health(caller: Caller, facets: Facets, store: Json) -> list[tuple[str, str]]:
    """Facts about the store. Its size only for the local owner: on a shared server it includes other owners."""
    facts = [
        ("Sessions", formats.grouped(facets.total)),
        ("Archived", formats.grouped(facets.archived)),
        (
            "Database",
            " ".join(filter(None, (STORES[store["kind"]], store.get("sqlite") or store.get("server")))),
        ),
    ]
    if "schema" in store:
        facts.append(("Schema", f"version {store['schema']}"))
    if caller.who == LOCAL:
        facts.append(("Size", formats.size(store["bytes"])))
    return facts
