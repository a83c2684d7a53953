"""The command that resumes a session in the agent it comes from."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hitherto.errors import InvalidCwd
from hitherto.model import Session
from hitherto.sources import AGENTS, local_sources
from hitherto.sources.port import SHELL


class ResumeCommand(NamedTuple):
    """The words of a command, and the folder to run it in. `aside` is a warning if the agent does not read the session's file."""

    words: tuple[str, ...]
    folder: str | None
    aside: str | None = None

    @property
    def line(self) -> str:
        """The command as you type it into a shell."""
        typed = self.words[len(SHELL)] if self.words[: len(SHELL)] == SHELL else shlex.join(self.words)
        return typed if self.folder is None else f"cd {shlex.quote(self.folder)} && {typed}"


def resume_command(session: Session) -> ResumeCommand | None:
    """The command that resumes a session; None if its agent cannot, or if it comes from no agent."""
    for source in local_sources():
        if source.name == session.source and (words := source.resume(session)) is not None:
            return ResumeCommand(tuple(words), session.cwd, _aside(session, words))
    return None


def existing_folder(session: Session, folder: str) -> str:
    """The folder as an absolute path. Raises `InvalidCwd`, with what to do, if it does not exist."""
    if not os.path.isdir(folder):
        raise InvalidCwd(
            f"there is no folder {folder!r}; if it was moved, run "
            f"`hitherto move --folder {shlex.quote(folder)} FOLDER`; to use another folder, run "
            f"`hitherto continue {session.id} --in AGENT --cwd FOLDER`"
        )
    return os.path.abspath(folder)


def _aside(session: Session, words: Sequence[str]) -> str | None:
    path, agent = session.meta.get("path"), AGENTS[session.source or ""]
    if not isinstance(path, str) or path in words:
        return None
    read = agent.at(agent.home(os.environ)).folders()
    there = any(Path(path).is_relative_to(folder) for folder in read)
    return None if there else f"{agent.title} does not read {path}"
