"""`recollect resume`."""

from __future__ import annotations

import os

import click

from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.errors import InvalidInput
from recollect.model import LOCAL
from recollect.service import Sessions
from recollect.sources.resuming import resuming


@command(
    "recollect resume claude:550e8400",
    "eval $(recollect resume claude:550e8400)",
    "recollect resume ID --exec",
)
@session_argument
@click.option("--exec", "execute", is_flag=True, help="Do it instead of printing it.")
async def run(sessions: Sessions, out: Output, *, session: str, execute: bool) -> None:
    """The command that goes on with a session in the agent it comes from."""
    found = await sessions.get(LOCAL, await sessions.resolve(LOCAL, session))
    how = resuming(found)
    if how is None:
        raise InvalidInput(
            f"session {found.id!r} is not one that another agent can go on with; fork it instead"
        )
    if execute:
        if how.folder is not None:
            os.chdir(how.folder)
        os.execvp(how.words[0], how.words)  # noqa: S606 - the agent's own command, without a shell
    if out.json:
        out.document({"session": found.id, "cwd": how.folder, "command": how.words, "shell": how.line})
    else:
        out.line(how.line)
