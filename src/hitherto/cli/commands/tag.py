"""`hitherto tag`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions


@command(
    "hitherto tag 019a8c0e work urgent",
    "hitherto tag 019a8c0e done --remove urgent",
    "hitherto tag 019a8c0e",
)
@session_argument
@click.argument("add", metavar="[TAG]...", nargs=-1)
@click.option("--remove", "-r", metavar="TAG", multiple=True, help="Remove this tag. Can be repeated.")
async def run(
    sessions: Sessions, out: Output, *, session: str, add: tuple[str, ...], remove: tuple[str, ...]
) -> None:
    """Add or remove tags, then print the tags of the session, one per line. Without TAG, only print them."""
    session_id = await named_session(sessions, session)
    tagged = await sessions.tag(LOCAL, session_id, add=add, remove=remove)
    if out.json:
        out.document(tagged)
        return
    for tag in tagged.tags:
        out.line(tag)
