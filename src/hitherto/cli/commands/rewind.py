"""`hitherto rewind`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command("hitherto rewind 019a8c0e ENTRY")
@session_argument
@click.argument("entry")
async def run(sessions: Sessions, out: Output, *, session: str, entry: str) -> None:
    """Go back to an earlier message: everything after it leaves the session.

    The current state becomes a checkpoint first, which `hitherto restore` brings back.
    """
    session_id = await named_session(sessions, session)
    report_change(out, "Rewound", await sessions.rewind(LOCAL, session_id, entry))
