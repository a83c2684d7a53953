"""Copying a session from Claude Code's own files to a session store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from hitherto.claude import lines
from hitherto.claude.edit import require_session, require_session_id
from hitherto.claude.messages import agent_files
from hitherto.claude.paths import TRANSCRIPT, open_transcript, read_sidecar, session_folder
from hitherto.claude.session_stores.protocol import SessionKey, SessionStore, SessionStoreEntry
from hitherto.claude.transcript import records_of

BATCH = 500
BATCH_BYTES = 1 << 20


async def import_session_to_store(
    session_id: str,
    store: SessionStore,
    *,
    directory: str | None = None,
    include_subagents: bool = True,
    batch_size: int = BATCH,
) -> None:
    """Append the records of a session's transcript to a store, and those of its subagents, in batches.

    The key is the one that the SDK mirrors the session under. A store that adds no `uuid` twice has nothing twice after a
    second import. Damaged records are left out. ValueError for an invalid id; FileNotFoundError if there is no such session.
    """
    path = require_session(require_session_id(session_id), directory)
    key: SessionKey = {"project_key": path.parent.name, "session_id": session_id}
    size = batch_size if batch_size > 0 else BATCH
    await _append(store, key, path, size)
    folder = session_folder(path)
    for _, agent in agent_files(folder / "subagents") if include_subagents else ():
        subpath = agent.relative_to(folder).as_posix().removesuffix(TRANSCRIPT)
        own: SessionKey = {**key, "subpath": subpath}
        await _append(store, own, agent, size)
        if meta := read_sidecar(agent.with_suffix(".meta.json")):
            await store.append(own, [cast(SessionStoreEntry, {**meta, "type": "agent_metadata"})])


async def _append(store: SessionStore, key: SessionKey, path: Path, size: int) -> None:
    batch, length = list[Any](), 0
    for record in _records(path):
        batch.append(lines.decode(record))
        length += len(record)
        if len(batch) >= size or length >= BATCH_BYTES:
            await store.append(key, batch)
            batch, length = [], 0
    if batch:
        await store.append(key, batch)


def _records(path: Path) -> Iterator[bytes]:
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        yield from (record for _, record, _ in records_of(descriptor) if record)
    finally:
        os.close(descriptor)
