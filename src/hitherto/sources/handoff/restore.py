"""Writing transcripts back to where their agent had them, byte for byte."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from hitherto.claude.foreign_files import new_file
from hitherto.errors import AlreadyExists
from hitherto.model import Filter, Principal, Session, is_subagent
from hitherto.service import Sessions
from hitherto.sources.shared.files import BESIDE, joined_copies

_IN_FOLDER = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*", re.ASCII)
"""A path that stays in the folder it begins in."""


class Restorable(NamedTuple):
    """A file that can be written back: where it was, and what was in it."""

    path: Path
    data: bytes


async def files_beside(
    sessions: Sessions, who: Principal, session_id: str, transcript: Path
) -> list[Restorable]:
    """The files that stood beside a transcript. One that would be anywhere else is left out."""
    copies = await sessions.transfer.raw(who, session_id)
    named = [(copy.name.removeprefix(BESIDE), copy.data) for copy in copies if copy.name.startswith(BESIDE)]
    return [Restorable(transcript.parent / name, data) for name, data in named if _IN_FOLDER.fullmatch(name)]


async def subagents_of(sessions: Sessions, who: Principal, session_id: str) -> list[Session]:
    """The sessions that calls in a session started, and those that calls in these started, by id."""
    found: dict[str, Session] = {}
    async for session in sessions.catalog.every(who, Filter(archived="include")):
        if is_subagent(session):
            found[session.id] = session
    below = [session_id]
    for known in below:
        below += [each.id for each in found.values() if each.parent == known and each.id not in below]
    return [found[each] for each in sorted(below[1:])]


async def original(sessions: Sessions, who: Principal, session_id: str) -> bytes:
    """The transcript that a session was read from, as far as sync read it; empty unless all of it is kept."""
    return joined_copies(await sessions.transfer.raw(who, session_id))


def write_back(path: Path, data: bytes) -> None:
    """Write a transcript back, completely or not at all; `AlreadyExists` if there is a file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with new_file(path) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
    except FileExistsError:
        raise AlreadyExists(f"{path.name} already exists; nothing was written") from None
