"""Transcripts written back where their agent had them, byte for byte as they were read."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.errors import AlreadyExists
from recollect.model import Principal
from recollect.service import Sessions


async def original(sessions: Sessions, who: Principal, session_id: str) -> bytes:
    """The transcript that a session was read from, as far as it was read."""
    return b"".join(copy.data for copy in await sessions.raw(who, session_id))


def write_back(path: Path, data: bytes) -> None:
    """Write a transcript where it was; `AlreadyExists` if a file is there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyExists(f"{path.name} is there; nothing was written") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
