"""The session functions that change a session, over a session store instead of files."""

from __future__ import annotations

from typing import Any, cast
from uuid import uuid4

from hitherto.claude import lines
from hitherto.claude.edit import require_session_id, required_title, visible_tag
from hitherto.claude.foreign_files import iso_now
from hitherto.claude.fork import ForkSessionResult, Wanted, copy_transcript, require_message_id
from hitherto.claude.paths import project_key_for_directory
from hitherto.claude.session_stores.protocol import SessionKey, SessionStore, SessionStoreEntry, implements
from hitherto.claude.session_stores.transcript_files import loaded, opened_file
from hitherto.claude.transcript import records_of


async def rename_session_via_store(
    session_store: SessionStore, session_id: str, title: str, directory: str | None = None
) -> None:
    """Set the title of a session. ValueError for an invalid id or an empty title."""
    key = _key(session_id, directory)
    await _append(session_store, key, {"type": "custom-title", "customTitle": required_title(title)})


async def tag_session_via_store(
    session_store: SessionStore, session_id: str, tag: str | None, directory: str | None = None
) -> None:
    """Set the tag of a session; None removes it. ValueError for an invalid id, or a tag that has nothing to see."""
    key = _key(session_id, directory)
    await _append(session_store, key, {"type": "tag", "tag": visible_tag(tag)})


async def delete_session_via_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> None:
    """Delete a session, if the store can delete. ValueError for an invalid id."""
    key = _key(session_id, directory)
    if implements(session_store, "delete"):
        await session_store.delete(key)


async def fork_session_via_store(
    session_store: SessionStore,
    session_id: str,
    directory: str | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """Copy a session into a new one of the same project; with `up_to_message_id`, up to and including that message.

    ValueError for an invalid id, for a message that is not in the session, and for a session without messages;
    FileNotFoundError if there is no such session.
    """
    key = _key(session_id, directory)
    require_message_id(up_to_message_id)
    entries = await loaded(session_store, key)
    if not entries:
        raise FileNotFoundError(f"Session {session_id} not found")
    fork = str(uuid4())
    with opened_file(entries) as source, opened_file() as target:
        copy_transcript(source, target, session_id, fork, Wanted(up_to_message_id, title))
        copied = [lines.decode(record) for _, record, _ in records_of(target) if record]
    await session_store.append({**key, "session_id": fork}, cast("list[SessionStoreEntry]", copied))
    return ForkSessionResult(session_id=fork)


def _key(session_id: str, directory: str | None) -> SessionKey:
    return {
        "project_key": project_key_for_directory(directory),
        "session_id": require_session_id(session_id),
    }


async def _append(store: SessionStore, key: SessionKey, record: dict[str, Any]) -> None:
    stamp = {"sessionId": key["session_id"], "uuid": str(uuid4()), "timestamp": iso_now()}
    await store.append(key, [cast(SessionStoreEntry, record | stamp)])
