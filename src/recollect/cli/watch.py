"""`recollect watch`."""

from __future__ import annotations

import click

from recollect.cli import wording
from recollect.cli.command import command, complete_session
from recollect.cli.output import Output, clean
from recollect.errors import SessionNotFound
from recollect.model import LOCAL, Change
from recollect.service import Sessions


@command("recollect watch", "recollect watch 019a8c0e --json", "recollect watch --after 0")
@click.argument("session", required=False, shell_complete=complete_session)
@click.option(
    "--after", type=int, metavar="NUMBER", help="Begin after this change; by default with the next one."
)
async def run(sessions: Sessions, out: Output, *, session: str | None, after: int | None) -> None:
    """Follow changes as they happen, of one session or of all, until ^C.

    In a pipe each is a line of fields separated by tabs: number, kind, session, revision. Two quick changes of one
    session may arrive as one, the newest.
    """
    session_id = None if session is None else await sessions.resolve(LOCAL, session)
    async for change in sessions.watch(LOCAL, session_id=session_id, after=after):
        if out.json:
            out.document(change)
        elif out.terminal:
            await _draw(sessions, out, change)
        else:
            out.row(change.number, change.kind, change.session, change.revision)


async def _draw(sessions: Sessions, out: Output, change: Change) -> None:
    from rich.text import Text

    try:
        title = wording.title(await sessions.get(LOCAL, change.session))
    except SessionNotFound:
        title = "(deleted)"
    out.draw(
        Text.assemble(
            (f"{clean(change.kind):<9}", "cyan"), f" {clean(change.session)}  ", (clean(title), "bold")
        )
    )
