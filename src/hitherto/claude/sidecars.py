"""The small files beside a transcript, in the folder that bears the session's id."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hitherto.claude import lines
from hitherto.claude.places import open_transcript

TITLE = "custom-title.json"
ARCHIVED = "archived.json"
SIZE_LIMIT = 1 << 20


def session_folder(transcript: Path) -> Path:
    """The folder for all that belongs to a session beside its transcript; it need not exist."""
    return transcript.with_suffix("")


def read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file; empty if there is no such file, or something else in it."""
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return {}
    try:
        found = lines.decode(os.pread(descriptor, SIZE_LIMIT, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(descriptor)
    return found if isinstance(found, dict) else {}
