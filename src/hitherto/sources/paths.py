"""The path of the file that a session was read from, as it is kept with the session: text, whatever bytes it has. Pure."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from hitherto.model import Json, Session

EXACT = "path_exact"
"""Beside a path that is no text: its bytes, those that are not plain written as in an address."""


def shown(path: Path) -> str:
    """A path to be read; bytes that are no text are replaced by a mark."""
    return os.fsencode(path).decode("utf-8", "replace")


def as_meta(path: Path) -> Json:
    """What is kept of a path, so that `path_of` gives it back."""
    known, text = os.fsencode(path), shown(path)
    return {"path": text} if text.encode() == known else {"path": text, EXACT: quote_from_bytes(known)}


def path_of(session: Session) -> Path:
    """The path that is kept with a session; an empty one if there is none."""
    text, exact = session.meta.get("path", ""), session.meta.get(EXACT)
    path = Path(os.fsdecode(unquote_to_bytes(exact))) if isinstance(exact, str) else None
    # What was kept of another path before does not count.
    return path if path is not None and shown(path) == text else Path(str(text))
