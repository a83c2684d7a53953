"""`hitherto erase`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.beyond import clear_notes, unreached
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.input import confirm, yes_option
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL, search_text
from hitherto.service import Sessions

SHOWN = 60


@command("hitherto erase 019a8c0e ENTRY", "hitherto erase 019a8c0e ENTRY --yes")
@session_argument
@click.argument("entry")
@yes_option
async def run(sessions: Sessions, out: Output, *, session: str, entry: str, yes: bool) -> None:
    """Permanently blank one message, in this session and in every fork that shares it.

    The message keeps its place in the history, but its content is gone, also from search, and does not come back. The
    command names what it cannot reach, such as the agent's own file. `hitherto show SESSION` prints message ids. Asks for
    confirmation; without a terminal, --yes is required.
    """
    session_id = await named_session(sessions, session, words=False)
    said = search_text(await sessions.entry(LOCAL, session_id, entry))
    await confirm(f"Erase {entry} ({said[:SHOWN]!r}) permanently?", yes=yes)
    await sessions.erase(LOCAL, session_id, entry)
    await clear_notes(sessions)
    left = await unreached(sessions, [await sessions.get(LOCAL, session_id)])
    if out.json:
        out.document({"session": session_id, "erased": entry, "not_reached": left})
    else:
        out.line(f"Erased {entry}")
        out.note(f"Not reached: {'; '.join(left)}")
