"""`recollect pin`."""

from __future__ import annotations

import click

from recollect.cli.changing import tell
from recollect.cli.command import command, sessions_argument
from recollect.cli.naming import full_ids
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions


@command("recollect pin 019a8c0e 019a8c11", "recollect pin --undo 019a8c0e")
@sessions_argument
@click.option("--undo", is_flag=True, help="Unpin them.")
async def run(sessions: Sessions, out: Output, *, named: tuple[str, ...], undo: bool) -> None:
    """Pin sessions: pruning never touches them."""
    for session_id in await full_ids(sessions, named):
        changed = await sessions.pin(LOCAL, session_id, pinned=not undo)
        tell(out, "Unpinned" if undo else "Pinned", changed)
