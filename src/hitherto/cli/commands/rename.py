"""`hitherto rename`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command("hitherto rename 019a8c0e 'Parser work'", "hitherto rename 019a8c0e ''")
@session_argument
@click.argument("title")
async def run(sessions: Sessions, out: Output, *, session: str, title: str) -> None:
    """Change the title of a session. An empty title removes it.

    Automatic titles never replace a title that you set. Earlier titles are kept: `hitherto search` and `hitherto list
    --text` find them.
    """
    session_id = await named_session(sessions, session)
    report_change(out, "Renamed", await sessions.rename(LOCAL, session_id, title or None))
