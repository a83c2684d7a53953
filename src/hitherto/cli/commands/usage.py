"""`hitherto usage`."""

from __future__ import annotations

from datetime import date, timedelta

import click

from hitherto.cli.command import command
from hitherto.cli.options.values import day, local_zone
from hitherto.cli.terminal.output import Output, clean
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.service.admin.spending import GROUPS, PERIODS, By, Period, UsageReport, UsageRow
from hitherto.values.usage.requests import UsageSum

SPANS: dict[Period | None, timedelta] = {
    None: timedelta(days=29),
    "day": timedelta(days=29),
    "week": timedelta(weeks=11),
    "month": timedelta(days=364),
}
"""How far back a report goes unless --since says."""
UNCOUNTED = "Some messages are not counted yet: run it again for all of them."


@command(
    "hitherto usage",
    "hitherto usage week --by project",
    "hitherto usage --by model --since 2026-11-01 --csv > november.csv",
    opens="read",
)
@click.argument("period", type=click.Choice(PERIODS), required=False)
@click.option(
    "--by", type=click.Choice(GROUPS), help="One row for each project, agent, model, branch or session."
)
@click.option("--since", callback=day, metavar="DAY", help="The first day, such as 2026-11-01.")
@click.option("--until", callback=day, metavar="DAY", help="The last day; default: today.")
@click.option("--project", help="Only this project.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values with a header line.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    period: Period | None,
    by: By | None,
    since: str | None,
    until: str | None,
    project: str | None,
    as_csv: bool,
) -> None:
    """Show what your sessions used and cost, by day, week or month, in local time.

    A cost with ≈ is wholly or partly an estimate by the prices of that day; others were reported by the agent. What forks and
    copies of a session share counts once. In a pipe, the fields are those of --csv, separated by tabs.
    """
    if out.json and as_csv:
        raise click.UsageError("use either --json or --csv, not both")
    last = date.fromisoformat(until) if until else date.today()
    shown: Period | None = period or (None if by else "day")
    report = await sessions.spending.report(
        LOCAL,
        since_day=since or (last - SPANS[shown]).isoformat(),
        until_day=last.isoformat(),
        period=shown,
        by=by,
        zone=local_zone(),
        project=None if project is None else await sessions.projects.called(LOCAL, project),
    )
    if not report.complete:
        out.note(UNCOUNTED)
    if out.json:
        out.document(_document(report))
    elif as_csv:
        out.text(report.csv)
    elif out.terminal:
        _show(out, report, by)
    else:
        for row in report.rows:
            out.row(*row.columns)


def _show(out: Output, report: UsageReport, by: By | None) -> None:
    if not report.rows:
        out.note(f"Nothing was used from {report.since} to {report.until}.")
        return
    heads = ["PERIOD", *([by.upper()] if by else []), "SESSIONS", "INPUT", "CACHED", "OUTPUT", "COST"]
    rows = [
        [row.period or "", *([_name(row)] if by else []), *_numbers(row.sessions, row.usage)]
        for row in report.rows
    ]
    total = ["total", *([""] if by else []), *_numbers(report.sessions, report.total)]
    if report.rows[0].period is None:
        heads, rows, total = heads[1:], [row[1:] for row in rows], ["total", *total[2:]]
    out.table(heads, [*rows, total])
    used = report.total
    out.note(
        f"{formats.cost(used.reported)} reported, {formats.cost(used.estimated)} estimated,"
        f" {formats.counted(used.unpriced, 'request')} without a known price."
    )


def _name(row: UsageRow) -> str:
    return clean(row.title or row.name or "-")


def _numbers(sessions: int, used: UsageSum) -> list[str]:
    counts = (used.input, used.cache_read, used.output)
    return [str(sessions), *(formats.count(number) for number in counts), formats.about_cost(used)]


def _document(report: UsageReport) -> dict[str, object]:
    rows = [
        {"period": row.period, "name": row.name, "title": row.title, **_json(row.sessions, row.usage)}
        for row in report.rows
    ]
    about = {"since": report.since, "until": report.until, "zone": report.zone, "complete": report.complete}
    return {**about, "rows": rows, "total": _json(report.sessions, report.total)}


def _json(sessions: int, used: UsageSum) -> dict[str, object]:
    return {"sessions": sessions, **used.fields}
