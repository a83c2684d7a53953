"""`recollect archive`."""

from __future__ import annotations

import click

from recollect.cli.changing import tell
from recollect.cli.command import command, sessions_argument
from recollect.cli.naming import full_ids
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions


@command("recollect archive 019a8c0e 019a8c11", "recollect archive --undo 019a8c0e")
@sessions_argument
@click.option("--undo", is_flag=True, help="Take them back.")
async def run(sessions: Sessions, out: Output, *, named: tuple[str, ...], undo: bool) -> None:
    """Put sessions away: lists leave them out, nothing else changes."""
    for session_id in await full_ids(sessions, named):
        changed = await sessions.archive(LOCAL, session_id, archived=not undo)
        tell(out, "Unarchived" if undo else "Archived", changed)
