"""`recollect rewind`."""

from __future__ import annotations

import click

from recollect.cli.changing import tell
from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions


@command("recollect rewind 019a8c0e ENTRY")
@session_argument
@click.argument("entry")
async def run(sessions: Sessions, out: Output, *, session: str, entry: str) -> None:
    """Go back to an earlier message, which becomes the newest.

    What was there becomes a checkpoint: `recollect restore` brings it back.
    """
    session_id = await sessions.resolve(LOCAL, session)
    tell(out, "Rewound", await sessions.rewind(LOCAL, session_id, entry))
