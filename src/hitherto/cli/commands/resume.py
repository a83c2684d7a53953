"""`hitherto resume`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.terminal.output import Output
from hitherto.errors import InvalidCwd, InvalidInput, SessionNotFound
from hitherto.model import LOCAL, RECORDS, Session
from hitherto.service import Sessions
from hitherto.sources.handoff.resume import ResumeCommand, existing_folder, resume_command


@command(
    "hitherto resume claude:550e8400",
    "eval $(hitherto resume claude:550e8400)",
    "hitherto resume ID --exec",
)
@session_argument
@click.option("--exec", "execute", is_flag=True, help="Do it instead of printing it.")
async def run(sessions: Sessions, out: Output, *, session: str, execute: bool) -> None:
    """The command that goes on with a session in the agent it comes from."""
    found = await sessions.get(LOCAL, await sessions.resolve(LOCAL, session))
    how = resume_command(found) or await _recorded(sessions, found)
    if how is None:
        raise InvalidInput(
            f"session {found.id!r} is not one that another agent can go on with; fork it instead"
        )
    if found.meta.get("source_gone"):
        out.note(
            f"{found.source} has deleted it: `hitherto restore {found.id}` writes its file back, if it is kept"
        )
    if how.aside is not None:
        out.note(
            f"{how.aside}: start it so that it does, "
            f"or write it a session that it finds, with `hitherto continue {found.id} --in AGENT`"
        )
    if how.folder is not None:
        existing_folder(found, how.folder)
    if execute:
        become(how.words, how.folder)
    if out.json:
        out.document({"session": found.id, "cwd": how.folder, "command": how.words, "shell": how.line})
    else:
        out.line(how.line)


async def _recorded(sessions: Sessions, session: Session) -> ResumeCommand | None:
    """How the agent goes on that a session was recorded with."""
    for known_as in reversed(session.meta.get(RECORDS, ())):
        with suppress(SessionNotFound):
            if (how := resume_command(await sessions.get(LOCAL, known_as))) is not None:
                return how
    return None


def become(words: Sequence[str], folder: str | None) -> NoReturn:
    """Be this command, in this folder. Raises what is wrong if it cannot be started."""
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError:
            told = f"the folder {folder!r} cannot be entered; if it is now elsewhere, say so with `hitherto move`"
            raise InvalidCwd(told) from None
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - the agent's own command, without a shell
    except OSError as error:
        raise InvalidInput(f"{words[0]!r} cannot be started: {error.strerror}; is it installed?") from None
