"""`hitherto list`."""

from __future__ import annotations

import click
from msgspec.structs import replace

from hitherto.cli.command import command
from hitherto.cli.options.filters import filtered
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.options.values import moment
from hitherto.cli.terminal.output import Output
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL, STATUSES, Filter, Page, Session, Status
from hitherto.presentation import formats
from hitherto.service import Sessions


@command(
    "hitherto list --here",
    "hitherto list --tag work --since 7d",
    "hitherto list --all --json | jq -r '.sessions[].title'",
    opens="read",
)
@filtered("exclude")
@click.option("--status", type=click.Choice(STATUSES), help="Only sessions with this status.")
@click.option(
    "--text", metavar="WORDS", help="Only sessions with these words in the current or an earlier title."
)
@click.option("--pinned", is_flag=True, help="Only pinned sessions.")
@click.option("--subagents", is_flag=True, help="List the sessions of subagents too.")
@click.option(
    "--since", metavar="WHEN", callback=moment, help="Active since: 7d, 2h or a date such as 2025-06-01."
)
@click.option("--until", metavar="WHEN", callback=moment, help="Last active before: 7d, 2h or a date.")
@click.option(
    "--limit", type=int, default=50, show_default=True, help=f"How many sessions, at most {LIST_PAGE}."
)
@click.option("--cursor", help="Continue an earlier list from the cursor it printed.")
@click.option("--all", "everything", is_flag=True, help="List all sessions, regardless of --limit.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    given: Filter,
    status: Status | None,
    text: str | None,
    pinned: bool,
    subagents: bool,
    since: int | None,
    until: int | None,
    limit: int,
    cursor: str | None,
    everything: bool,
) -> None:
    """List sessions, most recently active first.

    In a pipe, each line has these tab-separated fields: id, time of the last activity, number of messages, folder, title,
    marks (pinned, archived, status, #tags).
    """
    given = replace(
        given,
        status=status,
        text=text,
        pinned=pinned or None,
        subagents=subagents,
        updated_after=since,
        updated_before=until,
    )
    page = await _read_pages(sessions, given, cursor, None if everything else limit)
    if out.json:
        out.document(page)
        return
    await _print(sessions, out, page.sessions)
    if page.cursor is not None:
        out.note(
            f"There are more sessions. Show all with --all, or the next ones with --cursor {page.cursor}"
        )


async def _read_pages(sessions: Sessions, given: Filter, cursor: str | None, limit: int | None) -> Page:
    """At most `limit` sessions (None: all), without duplicates: pages may be short and may repeat a session."""
    found: dict[str, Session] = {}
    while True:
        size = LIST_PAGE if limit is None else limit - len(found)
        page = await sessions.find(LOCAL, given, cursor=cursor, limit=size)
        found |= {session.id: session for session in page.sessions}
        cursor = page.cursor
        if cursor is None or (limit is not None and len(found) >= limit):
            return Page(sessions=tuple(found.values()), cursor=cursor)


async def _print(sessions: Sessions, out: Output, found: tuple[Session, ...]) -> None:
    if not out.terminal:
        for each in found:
            when = formats.utc(each.updated_at)
            out.row(each.id, when, each.message_count, each.cwd, each.title, formats.marks(each))
        return
    if not found:
        out.note(
            "No sessions. Import your agents' sessions with `hitherto sync`, or start one with `hitherto chat`."
        )
        return
    short = await short_ids(sessions, (each.id for each in found))
    rows = (
        (
            short[each.id],
            formats.local(each.updated_at),
            str(each.message_count),
            formats.title(each),
            formats.short_folder(each.cwd),
            formats.marks(each),
        )
        for each in found
    )
    out.table(("ID", "ACTIVE", "MESSAGES", "TITLE", "FOLDER", "MARKS"), rows)
