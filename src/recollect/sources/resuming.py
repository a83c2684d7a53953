"""The command with which the agent that a session comes from goes on with it."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from recollect.model import Session
from recollect.sources import sources_here


class Resuming(NamedTuple):
    """The words of a command, and the folder to be in."""

    words: tuple[str, ...]
    folder: str | None

    @property
    def line(self) -> str:
        """What one types into a shell."""
        return " && ".join(
            filter(None, (self.folder and f"cd {shlex.quote(self.folder)}", shlex.join(self.words)))
        )


def resuming(session: Session) -> Resuming | None:
    """How the agent goes on; None if it cannot, or if the session comes from none."""
    for source in sources_here():
        if source.name == session.source and (words := source.resume(session)) is not None:
            return Resuming(tuple(words), session.cwd)
    return None
