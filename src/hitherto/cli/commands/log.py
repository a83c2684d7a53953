"""`hitherto log`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.commands.why import titles
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.terminal.output import Output
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto log", "hitherto log src/parser.py", "hitherto log parser.py --limit 1", opens="read")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--limit", type=int, default=20, show_default=True, help=f"How many rows, at most {LIST_PAGE}.")
async def run(sessions: Sessions, out: Output, *, file: str | None, limit: int) -> None:
    """List the sessions that changed a file, the one that did last first; without FILE, the files that sessions changed last.

    FILE is the end of its path: `parser.py` finds every file of that name, `src/parser.py` only those in a folder `src`.

    In a pipe, each line has these tab-separated fields: session, time of the last edit, path, number of edits, lines added, lines
    removed.
    """
    if file is None:
        found = await sessions.edits.recent(LOCAL, limit=limit)
    else:
        found = await sessions.edits.touched(LOCAL, file.removeprefix("./"), limit=limit)
    if out.json:
        out.document({"sessions": found})
        return
    if not out.terminal:
        for each in found:
            out.row(each.session, formats.utc(each.at), each.path, each.edits, each.added, each.removed)
        return
    if not found:
        out.note(f"No session is known to have changed {'a file' if file is None else 'this file'}.")
        return
    short = await short_ids(sessions, (each.session for each in found))
    named = await titles(sessions, (each.session for each in found))
    rows = (
        (
            short[each.session],
            formats.local(each.at),
            f"+{each.added} −{each.removed}",
            each.path,
            named[each.session],
        )
        for each in found
    )
    out.table(("ID", "LAST EDIT", "LINES", "FILE", "TITLE"), rows)
