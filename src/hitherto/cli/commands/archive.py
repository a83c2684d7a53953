"""`hitherto archive`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, sessions_argument
from hitherto.cli.options.session_ids import full_ids
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command("hitherto archive 019a8c0e 019a8c11", "hitherto archive --undo 019a8c0e")
@sessions_argument
@click.option("--undo", is_flag=True, help="Unarchive them.")
async def run(sessions: Sessions, out: Output, *, session_names: tuple[str, ...], undo: bool) -> None:
    """Archive sessions: lists no longer show them.

    Archived sessions stay searchable, and `hitherto list --archived include` shows them. Adding a message unarchives a
    session.
    """
    for session_id in await full_ids(sessions, session_names):
        changed = await sessions.archive(LOCAL, session_id, archived=not undo)
        report_change(out, "Unarchived" if undo else "Archived", changed)
