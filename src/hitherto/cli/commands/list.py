"""`hitherto list`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import click
from msgspec.structs import asdict, replace

from hitherto.cli.command import command
from hitherto.cli.options.filters import filtered
from hitherto.cli.options.session_ids import remember_list, short_ids
from hitherto.cli.options.values import moment
from hitherto.cli.terminal.output import Output, clean
from hitherto.edits.changes import EditCounts
from hitherto.ids import now_ms
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL, STATUSES, Filter, Page, Session, Status
from hitherto.presentation import formats, usage
from hitherto.service import Sessions
from hitherto.values.usage.sessions import SessionUsage

MOST_READ = 100_000
UNCOUNTED = "…"
IN_A_PIPE = 50
FEWEST, BESIDE = 10, 4
"""The fewest sessions that a terminal lists, and how many of its rows are for something else."""


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
    "--limit",
    type=int,
    help=f"How many sessions, at most {LIST_PAGE}. Default: as many as the terminal shows, or {IN_A_PIPE}.",
)
@click.option("--cursor", help="Continue an earlier list from the cursor that its --json has.")
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
    limit: int | None,
    cursor: str | None,
    everything: bool,
) -> None:
    """List sessions, most recently active first.

    A query narrows the list: words of titles, "last week", and fields such as project:engine,web is:failed -tag:draft
    branch:main agent:claude after:2026-11-01, as in hitherto search.

    Name a session by its place in the list, such as `hitherto show %3`. The sessions of subagents are not listed, unless you
    give --subagents.

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
    most = None if everything else _usual(out) if limit is None else limit
    page = await _read_pages(sessions, given, cursor, most)
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
        out.note(f"{len(shown)} of {await sessions.count(LOCAL, given)}. Show all with --all.")


def _usual(out: Output) -> int:
    """How many sessions are listed if nothing is said: on a terminal as many as it shows below the command."""
    return max(FEWEST, out.console.height - BESIDE) if out.terminal else IN_A_PIPE


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
    ids = [each.session.id for each in found]
    remember_list(sessions, ids)
    wide = out.console.width >= WIDE
    columns = [
        name for name in (BROAD if wide else NARROW) if name not in RARE or any(map(COLUMNS[name], found))
    ]
    short = await short_ids(sessions, ids) if wide else {}
    rows = [
        [str(place), *([short[each.session.id]] if wide else []), *(COLUMNS[name](each) for name in columns)]
        for place, each in enumerate(found, 1)
    ]
    names = ["#", *(["ID"] if wide else []), *columns]
    out.table(names, rows, widths(names, rows, out.console.width))


def widths(names: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> dict[str, int]:
    """How wide the columns are in a terminal of so many columns: a long title keeps `TITLE_COLUMNS` of them, and then the others
    give way, as `YIELDING` says."""
    from rich.cells import cell_len

    need = {
        name: max(cell_len(clean(cell)) for cell in (name, *cells))
        for name, *cells in zip(names, *rows, strict=True)
    }
    over = sum(need.values()) + GAP * (len(names) - 1) - room
    for name, least in (("TITLE", TITLE_COLUMNS), *YIELDING, ("TITLE", LEAST_TITLE)):
        if name in need and over > 0:
            given = min(over, max(0, need[name] - least))
            need[name] -= given
            over -= given
    return need


def _context(each: _Shown) -> str:
    return "" if each.used is None or not each.used.messages else usage.short_context(each.used)


def _cost(each: _Shown) -> str:
    return "" if each.used is None or not each.used.usage.requests else formats.about_cost(each.used.usage)


def _marks(each: _Shown) -> str:
    return formats.marks(each.session, failed=each.used is not None and each.used.failed)


def _agent(each: _Shown) -> str:
    return each.session.source or each.session.agent_id or "hitherto"


def _title(each: _Shown) -> str:
    return "  ".join(filter(None, (formats.title(each.session), _marks(each))))


COLUMNS: Mapping[str, Callable[[_Shown], str]] = {
    "AGE": lambda each: formats.brief_age(each.session.updated_at, each.now),
    "AGENT": _agent,
    "PROJECT": lambda each: formats.project(each.session),
    "TITLE": _title,
    "MESSAGES": lambda each: UNCOUNTED if each.used is None else str(each.used.messages),
    "CONTEXT": _context,
    "COST": _cost,
    "CHANGES": lambda each: formats.changed(each.changes),
}
NARROW = ("AGE", "AGENT", "PROJECT", "TITLE", "COST")
BROAD = ("AGE", "AGENT", "PROJECT", "TITLE", "MESSAGES", "CONTEXT", "COST", "CHANGES")
"""What a terminal shows of fewer than `WIDE` columns, and of more, which also shows the short ids."""
RARE = frozenset({"CHANGES"})
"""Columns that are left out if they are empty."""
WIDE = 120
GAP = 2
TITLE_COLUMNS = 40
LEAST_TITLE = 8
YIELDING = (("PROJECT", 6), ("CHANGES", 6), ("CONTEXT", 4), ("PROJECT", 2), ("AGENT", 2))


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
