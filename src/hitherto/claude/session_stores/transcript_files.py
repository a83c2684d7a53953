"""Records as a file without a name, so that what reads transcripts reads them too."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from hitherto.claude.foreign_files import encoded
from hitherto.claude.session_stores.protocol import SessionKey, SessionStore, SessionStoreEntry


@contextmanager
def opened_file(entries: Iterable[SessionStoreEntry] = ()) -> Iterator[int]:
    """A descriptor of a file with these records, one in a line; it is gone when the block ends."""
    with tempfile.TemporaryFile() as file:
        for entry in entries:
            if isinstance(entry, dict):
                file.write(encoded(cast("dict[str, object]", entry)))
        file.flush()
        yield file.fileno()


async def loaded(store: SessionStore, key: SessionKey) -> list[SessionStoreEntry]:
    """The records of a transcript; none if there is no such transcript."""
    return await store.load(key) or []


def last_metadata(entries: Iterable[SessionStoreEntry]) -> dict[str, Any]:
    """What the newest of these records says that stand for the small file beside a subagent's transcript."""
    found: dict[str, Any] = {}
    for entry in entries:
        if isinstance(entry, dict) and entry.get("type") == "agent_metadata":
            found = cast("dict[str, Any]", entry)
    return found
