"""`hitherto list`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import click
from msgspec.structs import asdict, replace

from hitherto.cli.command import command
from hitherto.cli.options.filters import filtered
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.options.values import moment
from hitherto.cli.terminal.output import Output
from hitherto.edits.changes import EditCounts
from hitherto.ids import now_ms
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL, STATUSES, Filter, Page, Session, Status
from hitherto.presentation import formats, usage
from hitherto.service import Sessions
from hitherto.values.usage.sessions import SessionUsage

MOST_READ = 100_000
UNCOUNTED = "…"


@command(
    "hitherto list --here",
    "hitherto list --tag work --since 7d",
    "hitherto list 'project:engine,web is:failed last week'",
    "hitherto list --all --json | jq -r '.sessions[].title'",
    opens="read",
)
@click.argument("words", metavar="[QUERY]...", nargs=-1)
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
    words: tuple[str, ...],
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

    A query narrows the list: words of titles, "last week", and fields such as project:engine,web is:failed -tag:draft
    branch:main agent:claude after:2026-11-01, as in hitherto search.

    COST has ≈ before it if some of it is estimated, and + behind it if some requests have no known price; CONTEXT is the
    size of the context now, with ≈ if it is estimated, and the model's window. `hitherto show` says more.

    In a pipe, each line has these tab-separated fields: id, time of the last activity, messages in the context, folder, title,
    marks (pinned, archived, status, #tags), lines that its edits added, lines that they removed, files that they changed,
    messages in the conversation, tokens in the context, window, input tokens, output tokens, tokens read from the cache,
    tokens written to it, cost in dollars, duration in ms, tool failures.
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
    if words:
        given = await sessions.index.narrowed(LOCAL, " ".join(words), given=given)
    page = await _read_pages(sessions, given, cursor, None if everything else limit)
    ids = [each.id for each in page.sessions]
    counts = await sessions.edits.counts(LOCAL, ids)
    used = await sessions.spending.numbers(LOCAL, ids, most=MOST_READ)
    now = now_ms()
    shown = [
        _Shown(each, used.get(each.id), counts.get(each.id, EditCounts()), now) for each in page.sessions
    ]
    if out.json:
        out.document({"sessions": [_document(each) for each in shown], "cursor": page.cursor})
        return
    await _print(sessions, out, shown)
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


class _Shown(NamedTuple):
    """A session as a row shows it at a time."""

    session: Session
    used: SessionUsage | None
    changes: EditCounts
    now: int


def _document(each: _Shown) -> dict[str, object]:
    used = None if each.used is None else each.used.fields
    return {**asdict(each.session), "changes": each.changes, "usage": used}


async def _print(sessions: Sessions, out: Output, found: Sequence[_Shown]) -> None:
    if not out.terminal:
        for each in found:
            out.row(*_fields(each))
        return
    if not found:
        out.note(
            "No sessions. Import your agents' sessions with `hitherto sync`, or start one with `hitherto chat`."
        )
        return
    short = await short_ids(sessions, (each.session.id for each in found))
    columns = [*(BROAD if out.console.width >= WIDE else NARROW)]
    if any(each.changes.files for each in found):
        columns.insert(columns.index("TITLE"), "CHANGES")
    rows = [[short[each.session.id], *(COLUMNS[name](each) for name in columns)] for each in found]
    out.table(("ID", *columns), rows)


def _context(each: _Shown) -> str:
    return "" if each.used is None or not each.used.messages else usage.short_context(each.used)


def _cost(each: _Shown) -> str:
    return "" if each.used is None or not each.used.usage.requests else formats.about_cost(each.used.usage)


def _marks(each: _Shown) -> str:
    return formats.marks(each.session, failed=each.used is not None and each.used.failed)


COLUMNS: Mapping[str, Callable[[_Shown], str]] = {
    "ACTIVE": lambda each: formats.local(each.session.updated_at),
    "AGE": lambda each: formats.age(each.session.updated_at, each.now),
    "MESSAGES": lambda each: UNCOUNTED if each.used is None else str(each.used.messages),
    "CONTEXT": _context,
    "COST": _cost,
    "CHANGES": lambda each: formats.changed(each.changes),
    "TITLE": lambda each: formats.title(each.session),
    "FOLDER": lambda each: formats.short_folder(each.session.cwd),
    "MARKS": _marks,
}
WIDE = 110
BROAD = ("ACTIVE", "MESSAGES", "CONTEXT", "COST", "TITLE", "FOLDER", "MARKS")
NARROW = ("AGE", "MESSAGES", "COST", "TITLE", "FOLDER", "MARKS")
"""What a terminal shows of so many columns and more, and of fewer; and CHANGES if there are any."""


def _fields(each: _Shown) -> tuple[object, ...]:
    session, used, done = each.session, each.used, each.changes
    about = (session.id, formats.utc(session.updated_at), session.message_count, session.cwd, session.title)
    first = (*about, _marks(each), done.added, done.removed, done.files)
    if used is None:
        return (*first, *([None] * 10))
    spent = used.usage
    tokens = (spent.input, spent.output, spent.cache_read, spent.cache_write)
    cost = None if spent.cost is None else f"{spent.cost:.6f}"
    known = (used.messages, used.context_tokens, used.window, *(tokens if spent.requests else [None] * 4))
    return (*first, *known, cost, used.duration_ms, used.tool_failures)
