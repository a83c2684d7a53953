"""`hitherto pin`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, sessions_argument
from hitherto.cli.options.session_ids import full_ids
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command("hitherto pin 019a8c0e 019a8c11", "hitherto pin --undo 019a8c0e")
@sessions_argument
@click.option("--undo", is_flag=True, help="Unpin them.")
async def run(sessions: Sessions, out: Output, *, session_names: tuple[str, ...], undo: bool) -> None:
    """Pin sessions: `hitherto prune` and retention policies never archive or delete them."""
    for session_id in await full_ids(sessions, session_names):
        changed = await sessions.pin(LOCAL, session_id, pinned=not undo)
        report_change(out, "Unpinned" if undo else "Pinned", changed)
