"""`recollect resume`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.errors import InvalidInput
from recollect.model import LOCAL, Session
from recollect.service import Sessions
from recollect.sources import sources_here


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
    words = list(_words(found))
    folder = found.cwd
    if execute:
        if folder is not None:
            os.chdir(folder)
        os.execvp(words[0], words)  # noqa: S606 - the agent's own command, without a shell
    line = " && ".join(filter(None, (folder and f"cd {shlex.quote(folder)}", shlex.join(words))))
    if out.json:
        out.document({"session": found.id, "cwd": folder, "command": words, "shell": line})
    else:
        out.line(line)


def _words(session: Session) -> Sequence[str]:
    """The agent's own command."""
    for source in sources_here():
        if source.name == session.source and (words := source.resume(session)) is not None:
            return words
    raise InvalidInput(
        f"session {session.id!r} is not one that another agent can go on with; fork it instead"
    )
