"""Writing transcripts back to where their agent had them, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hitherto.claude.foreign_files import new_file
from hitherto.errors import AlreadyExists
from hitherto.model import Principal
from hitherto.ports import RawCopy
from hitherto.service import Sessions


async def original(sessions: Sessions, who: Principal, session_id: str) -> bytes:
    """The transcript that a session was read from, as far as sync read it; empty unless all of it is kept."""
    return joined(await sessions.transfer.raw(who, session_id))


def joined(copies: Sequence[RawCopy]) -> bytes:
    """The file whose pieces were kept, each named by its offset; empty if one is missing."""
    data = bytearray()
    for copy in copies:
        if not (copy.name.isascii() and copy.name.isdigit() and int(copy.name) == len(data)):
            return b""
        data += copy.data
    return bytes(data)


def write_back(path: Path, data: bytes) -> None:
    """Write a transcript back, completely or not at all; `AlreadyExists` if there is a file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with new_file(path) as descriptor, os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
    except FileExistsError:
        raise AlreadyExists(f"{path.name} already exists; nothing was written") from None
