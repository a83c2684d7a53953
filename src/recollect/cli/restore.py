"""`recollect restore`."""

from __future__ import annotations

import click

from recollect.cli.changing import tell
from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions


@command("recollect restore 019a8c0e CHECKPOINT", "recollect restore 019a8c0e CHECKPOINT --since")
@session_argument
@click.argument("checkpoint")
@click.option("--since", is_flag=True, help="Followed by all that was said after it.")
async def run(sessions: Sessions, out: Output, *, session: str, checkpoint: str, since: bool) -> None:
    """Go back to a checkpoint, exactly. The present state becomes a checkpoint first."""
    session_id = await sessions.resolve(LOCAL, session)
    tell(out, "Restored", await sessions.restore(LOCAL, session_id, checkpoint, since=since))
