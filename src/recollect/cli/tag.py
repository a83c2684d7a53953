"""`recollect tag`."""

from __future__ import annotations

import click

from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.model import LOCAL
from recollect.service import Sessions


@command(
    "recollect tag 019a8c0e work urgent",
    "recollect tag 019a8c0e done --remove urgent",
    "recollect tag 019a8c0e",
)
@session_argument
@click.argument("add", metavar="[TAG]...", nargs=-1)
@click.option("--remove", "-r", metavar="TAG", multiple=True, help="Take this tag away; may be repeated.")
async def run(
    sessions: Sessions, out: Output, *, session: str, add: tuple[str, ...], remove: tuple[str, ...]
) -> None:
    """Add and remove tags; prints those that the session then has, one in a line."""
    session_id = await sessions.resolve(LOCAL, session)
    tagged = await sessions.tag(LOCAL, session_id, add=add, remove=remove)
    if out.json:
        out.document(tagged)
        return
    for tag in tagged.tags:
        out.line(tag)
