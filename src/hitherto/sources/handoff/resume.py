"""The command with which the agent that a session comes from goes on with it."""

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
    """The words of a command, and the folder to be in. `aside` says so if the session lies where its agent does not look."""

    words: tuple[str, ...]
    folder: str | None
    aside: str | None = None

    @property
    def line(self) -> str:
        """What one types into a shell."""
        typed = self.words[len(SHELL)] if self.words[: len(SHELL)] == SHELL else shlex.join(self.words)
        return typed if self.folder is None else f"cd {shlex.quote(self.folder)} && {typed}"


def resume_command(session: Session) -> ResumeCommand | None:
    """How the agent goes on; None if it cannot, or if the session comes from none."""
    for source in local_sources():
        if source.name == session.source and (words := source.resume(session)) is not None:
            return ResumeCommand(tuple(words), session.cwd, _aside(session, words))
    return None


def existing_folder(session: Session, folder: str) -> str:
    """The folder, in which a session goes on. Raises `InvalidCwd`, with what can be done, if it is not there."""
    if not os.path.isdir(folder):
        raise InvalidCwd(
            f"there is no folder {folder!r} to go on in; if it was moved, say so: "
            f"`hitherto move --folder {shlex.quote(folder)} FOLDER`; "
            f"to go on in another: `hitherto continue {session.id} --in AGENT --cwd FOLDER`"
        )
    return os.path.abspath(folder)


def _aside(session: Session, words: Sequence[str]) -> str | None:
    path, agent = session.meta.get("path"), AGENTS[session.source or ""]
    if not isinstance(path, str) or path in words:
        return None
    looks = agent.at(agent.home(os.environ)).folders()
    there = any(Path(path).is_relative_to(folder) for folder in looks)
    return None if there else f"{agent.title} does not look for it in {path}"
