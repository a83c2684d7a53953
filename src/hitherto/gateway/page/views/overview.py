"""`/overview`: charts of activity by day, agent, model and project; every mark links to its sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from msgspec.structs import asdict, replace

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.list_query import NATIVE, ListQuery, source_label
from hitherto.gateway.page.render.charts import Name, Piece, calendar, stacks
from hitherto.gateway.page.render.rows import row
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Facets, Json, Overview, Session, Share, Value
from hitherto.presentation import formats
from hitherto.values.days import today

YEAR = 365
RANGES = {30: "30 days", 90: "90 days", YEAR: "1 year"}
MEASURES = {"tokens": "Tokens", "cost": "Cost"}
DIVISIONS = {"agent": "Agent", "model": "Model"}
UNKNOWN = ""
"""The name for an unknown agent or model."""
STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "memory": "memory"}


class OverviewQuery(Value, frozen=True):
    """The query of the overview: how many days, which measure, grouped by what."""

    days: int = 90
    of: str = "tokens"
    by: str = "agent"

    def address_with(self, **changes: Any) -> str:
        """The address of the overview with changes."""
        usual = asdict(OverviewQuery())
        changed = {
            name: value for name, value in asdict(replace(self, **changes)).items() if value != usual[name]
        }
        return f"/overview?{urlencode(changed)}" if changed else "/overview"


class Length(NamedTuple):
    """A bar: its label, its link, its value as text, and its length in percent of the first bar."""

    name: str
    address: str
    text: str
    share: float


def parse_overview_query(query: Mapping[str, str]) -> OverviewQuery:
    """Parse the query; unknown values get the defaults."""
    usual, days = OverviewQuery(), {str(number): number for number in RANGES}
    return OverviewQuery(
        days=days.get(query.get("days", ""), usual.days),
        of=query["of"] if query.get("of") in MEASURES else usual.of,
        by=query["by"] if query.get("by") in DIVISIONS else usual.by,
    )


async def overview(caller: Caller, wanted: OverviewQuery) -> bytes:
    """Render the page. The calendar shows a year, everything else the chosen days."""
    until = today(now_ms())
    since, year = until - timedelta(days=wanted.days - 1), until - timedelta(days=YEAR - 1)
    facets = await caller.sessions.statistics.facets(caller.who)
    found = await caller.sessions.statistics.overview(caller.who, since_day=str(since), until_day=str(until))
    whole = found
    if wanted.days != YEAR:
        whole = await caller.sessions.statistics.overview(
            caller.who, since_day=str(year), until_day=str(until)
        )
    return templates.page(
        "overview.html",
        query=wanted,
        ranges=[(text, wanted.address_with(days=days), days == wanted.days) for days, text in RANGES.items()],
        measures=[(text, wanted.address_with(of=of), of == wanted.of) for of, text in MEASURES.items()],
        divisions=[(text, wanted.address_with(by=by), by == wanted.by) for by, text in DIVISIONS.items()],
        used=MEASURES[wanted.of],
        sums=_sums(found),
        calendar=calendar({day.day: day.messages for day in whole.days}, year, until),
        drawn=_Drawn(wanted, found, since, until),
        projects=_projects(found),
        longest=_longest(found.longest),
        health=_health(caller, facets, found.store),
    )


class _Drawn:
    """The usage of each day, by agent or by model, with labels and links."""

    def __init__(self, wanted: OverviewQuery, found: Overview, since: date, until: date) -> None:
        self._wanted = wanted
        shares = found.by_agent if wanted.by == "agent" else found.by_model
        self.stacks = stacks(
            ((each.day, each.name or UNKNOWN, self._value(each)) for each in shares), since, until
        )

    def label(self, name: str | None) -> str:
        if name is None:
            return "other"
        if name == UNKNOWN:
            return "Hitherto" if self._wanted.by == "agent" else "no model"
        return source_label(name) if self._wanted.by == "agent" else name

    def measured(self, value: float) -> str:
        if self._wanted.of == "cost":
            return formats.cost(value) if value else "$0"
        return formats.count(round(value))

    def behind(self, piece: Piece) -> str:
        """The address of the sessions of a piece: of its day and, if known, its agent."""
        return ListQuery().address_with(day=piece.day, **self._agent_filter(piece.name))

    def all_of(self, name: Name) -> str | None:
        """The address of the sessions of a name, if it is an agent."""
        known = self._agent_filter(name.name)
        return ListQuery().address_with(**known) if known else None

    def _agent_filter(self, name: str | None) -> dict[str, tuple[str, ...]]:
        if self._wanted.by != "agent" or name is None:
            return {}
        return {"sources": (NATIVE,)} if name == UNKNOWN else {"agents": (name,)}

    def _value(self, share: Share) -> float:
        return share.tokens if self._wanted.of == "tokens" else share.cost or 0.0


def _sums(found: Overview) -> list[tuple[str, str]]:
    costs = [day.cost for day in found.days if day.cost is not None]
    return [
        ("Active days", str(len(found.days))),
        ("Messages", formats.count(sum(day.messages for day in found.days))),
        ("Tokens", formats.count(sum(day.tokens for day in found.days))),
        ("Cost", formats.cost(sum(costs)) if costs else "–"),
    ]


def _projects(found: Overview) -> list[Length]:
    most = max((each.messages for each in found.projects), default=1)
    return [
        Length(
            formats.folder(each.project),
            ListQuery().address_with(projects=(each.project,)),
            f"{formats.count(each.messages)} {formats.plural(each.messages, 'message')}, {formats.counted(each.sessions, 'session')}",
            round(100 * each.messages / most, 1),
        )
        for each in found.projects
    ]


def _longest(sessions: Iterable[Session]) -> list[Length]:
    longest = sorted(sessions, key=lambda session: -session.message_count)
    rows = [row(session, now_ms()) for session in longest]
    most = max((each.session.message_count for each in rows), default=1) or 1
    return [
        Length(
            each.title,
            each.address,
            f"{formats.count(each.session.message_count)} {formats.plural(each.session.message_count, 'message')}",
            round(100 * each.session.message_count / most, 1),
        )
        for each in rows
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
