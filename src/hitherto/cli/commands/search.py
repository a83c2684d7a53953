"""`hitherto search`."""

from __future__ import annotations

from collections.abc import Iterator

import click
from msgspec.structs import replace

from hitherto.cli.command import command
from hitherto.cli.options.filters import filtered
from hitherto.cli.options.session_ids import remember_list, short_ids
from hitherto.cli.terminal.entries import ROLE_STYLES
from hitherto.cli.terminal.output import Output, clean
from hitherto.errors import IndexBehind
from hitherto.limits import SEARCH_PAGE
from hitherto.model import LOCAL, Filter, Found, Hit, SearchPage
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.service.search.sessions import Order


@command(
    "hitherto search parser error",
    """hitherto search '"exact phrase" role:user after:2025-06'""",
    "hitherto search 'migrat* -draft tag:work' --here",
    "hitherto search 'timeout project:engine,web tool:bash yesterday'",
    "hitherto search 'file:parser.py has:edit model:opus last week'",
    "hitherto search 'is:failed branch:release/*'",
    "hitherto search --best 'how did we retry failed uploads last week'",
    opens="read",
)
@click.argument("words", metavar="QUERY...", nargs=-1, required=True)
@filtered("include")
@click.option(
    "--limit", type=int, default=20, show_default=True, help=f"How many sessions, at most {SEARCH_PAGE}."
)
@click.option("--best", is_flag=True, help="Best match first: any of the words will do, in any form.")
@click.option("--cursor", help="Continue an earlier search from the cursor that its --json has.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    words: tuple[str, ...],
    given: Filter,
    limit: int,
    best: bool,
    cursor: str | None,
) -> None:
    """Find sessions by what was said in them. Shows the newest hit of each session, newest first.

    All words must occur in one message, or in the titles. Use "quotes" for a phrase, prefix* for the start of a word, and
    -word for what a message must not have. "yesterday", "last week" or "in March" is when it was said.

    Fields narrow the search: project: agent: source: branch: cwd: channel: tag: title: is: for sessions; role: from: model:
    tool: has: for messages; file: for files that a session changed or named; after: before: on: for dates. Several values:
    project:engine,web. To leave out: -tag:draft. is: takes archived, failed, fork, pinned, running, subagent, synced, waiting;
    has: takes attachment, audio, code, edit, error, image, plan, thought, tool.

    With --best, ask a question: sessions that have most of its words come first, rare words count for more, and "last week",
    "yesterday" or "in March" prefer what was said then.

    Name a session of the last search or list by its place, such as `hitherto show %3`.

    In a pipe, each line has these tab-separated fields: session, time, role, message id, title, snippet, number of further
    hits in the session.
    """
    order: Order = "best" if best else "newest"
    page = await _read_pages(sessions, out, " ".join(words), given, cursor, limit, order)
    if out.json:
        out.document(page)
        return
    if out.terminal:
        await _draw(sessions, out, page.hits)
    else:
        for hit in page.hits:
            when = formats.utc(hit.at)
            out.row(hit.session.id, when, hit.role, hit.entry, hit.session.title, hit.snippet, hit.more)
    if page.found is not None and page.hits:
        out.note(f"{formats.found(page.found)}.")
    if page.unindexed:
        out.note(
            "The store cannot be written to, so its index stays as it is: it lacks messages and titles,"
            f" {page.unindexed} of them, which were not searched."
        )
    if page.unordered:
        out.note(
            "Search is being put in the order of time after an upgrade: until then, hits come in the order in which they were"
            f" stored. About {page.unordered} messages and titles are left."
        )
    if page.cursor is not None:
        out.note(
            f"There are more: show up to {SEARCH_PAGE} with --limit, and the next ones by the cursor of --json."
        )


async def _read_pages(
    sessions: Sessions, out: Output, text: str, given: Filter, cursor: str | None, limit: int, order: Order
) -> SearchPage:
    """At most `limit` hits: pages may be short."""
    hits: list[Hit] = []
    found: Found | None = None
    is_first = cursor is None
    while True:
        try:
            page = await sessions.search(
                LOCAL,
                text,
                given=given,
                cursor=cursor,
                limit=limit - len(hits),
                order=order,
                count=is_first and not hits,
            )
        except IndexBehind as behind:
            out.note(f"Indexing: {behind.indexed} of {behind.total} messages and titles.")
            continue
        hits += page.hits
        found = page.found or found
        cursor = page.cursor
        if cursor is None or len(hits) >= limit:
            return replace(page, hits=tuple(hits), cursor=cursor, found=found)


async def _draw(sessions: Sessions, out: Output, hits: tuple[Hit, ...]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if not hits:
        out.note("No session matches.")
    ids = [hit.session.id for hit in hits]
    remember_list(sessions, ids)
    short = await short_ids(sessions, ids)
    for hit in hits:
        when = formats.local(hit.session.updated_at if hit.at is None else hit.at)
        more = f"  +{hit.more} more" if hit.more else ""
        title = clean(formats.title(hit.session))
        out.draw(
            Text.assemble(
                (clean(short[hit.session.id]), "cyan"), f"  {when}  ", (title, "bold"), (more, "dim")
            )
        )
        branch = ("in another branch, ", "dim") if hit.branch else ""
        role = (f"{hit.role}: ", ROLE_STYLES[hit.role]) if hit.role else ""
        out.draw(Padding(Text.assemble(branch, role, *_highlighted(hit)), (0, 0, 0, 2), expand=False))


def _highlighted(hit: Hit) -> Iterator[tuple[str, str]]:
    """The snippet in pieces, with matches highlighted. Each piece is cleaned by itself, because cleaning shifts the marks."""
    done = 0
    for start, stop in hit.marks:
        yield clean(hit.snippet[done:start]), ""
        yield clean(hit.snippet[start:stop]), "bold yellow"
        done = stop
    yield clean(hit.snippet[done:]), ""
