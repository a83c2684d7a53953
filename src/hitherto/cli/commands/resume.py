"""`hitherto resume`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from hitherto.cli.command import command, picked_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output
from hitherto.errors import InvalidCwd, InvalidInput, SessionNotFound
from hitherto.model import LOCAL, RECORDS, Session
from hitherto.service import Sessions
from hitherto.sources.handoff.resume import ResumeCommand, existing_folder, resume_command


@command(
    "hitherto resume claude:550e8400",
    "eval $(hitherto resume claude:550e8400)",
    "hitherto resume ID --exec",
    picks="session",
)
@picked_argument
@click.option("--exec", "execute", is_flag=True, help="Run the command instead of printing it.")
async def run(sessions: Sessions, out: Output, *, session: str, execute: bool) -> None:
    """Print the command that resumes a session in the agent it came from.

    Use --exec to run it right away, or `hitherto continue` for another agent.
    """
    found = await sessions.get(LOCAL, await named_session(sessions, session))
    how = resume_command(found) or await _recorded(sessions, found)
    if how is None:
        raise InvalidInput(
            f"session {found.id!r} does not come from another agent: continue it with `hitherto chat {found.id}`"
        )
    if found.meta.get("source_gone"):
        out.note(
            f"{found.source} has deleted this session; `hitherto restore {found.id}` writes its file back if it was kept"
        )
    if how.aside is not None:
        out.note(
            f"{how.aside}: start it with that folder, "
            f"or write a new transcript with `hitherto continue {found.id} --in AGENT`"
        )
    if how.folder is not None:
        existing_folder(found, how.folder)
    if execute:
        replace_process(how.words, how.folder)
    if out.json:
        out.document({"session": found.id, "cwd": how.folder, "command": how.words, "shell": how.line})
    else:
        out.line(how.line)


async def _recorded(sessions: Sessions, session: Session) -> ResumeCommand | None:
    """How to resume a session in the agent that it recorded."""
    for known_as in reversed(session.meta.get(RECORDS, ())):
        with suppress(SessionNotFound):
            if (how := resume_command(await sessions.get(LOCAL, known_as))) is not None:
                return how
    return None


def replace_process(words: Sequence[str], folder: str | None) -> NoReturn:
    """Replace this process with the command, run in the folder. Raises `InvalidInput` if it cannot start."""
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError:
            raise InvalidCwd(
                f"cannot change to the folder {folder!r}; if you moved it, run `hitherto move`"
            ) from None
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - the agent's own command, without a shell
    except OSError as error:
        raise InvalidInput(f"cannot start {words[0]!r}: {error.strerror}; is it installed?") from None
