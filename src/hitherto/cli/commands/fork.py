"""`hitherto fork`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.options.values import folder
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command(
    "hitherto fork 019a8c0e --title 'Another way'",
    "hitherto fork 019a8c0e --at ENTRY",
    "hitherto fork 019a8c0e --checkpoint CHECKPOINT",
)
@session_argument
@click.option("--at", metavar="ENTRY", help="The last message of the fork. Default: the newest message.")
@click.option("--checkpoint", help="Start from this checkpoint instead.")
@click.option("--title", help="The title of the fork. Default: the title of the original.")
@click.option("--cwd", metavar="FOLDER", help="The folder of the fork. Default: the folder of the original.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str,
    at: str | None,
    checkpoint: str | None,
    title: str | None,
    cwd: str | None,
) -> None:
    """Start a new session that shares the history of another, and print its id.

    Nothing is copied. The fork stays complete if you delete the original. Fork a synced session to continue it here.
    """
    if at is not None and checkpoint is not None:
        raise click.UsageError("use either --at or --checkpoint, not both")
    session_id = await named_session(sessions, session)
    where = None if cwd is None else folder(cwd)
    if checkpoint is None:
        made = await sessions.fork(LOCAL, session_id, at=at, title=title, cwd=where)
    else:
        made = await sessions.branch(LOCAL, session_id, checkpoint, title=title, cwd=where)
    if out.json:
        out.document(made)
    else:
        out.line(made.id)
