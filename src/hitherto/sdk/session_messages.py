"""The messages of a session, from the store or from Claude Code's own files, in one form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Literal, TypedDict, Unpack

from hitherto import claude
from hitherto.claude.messages import SessionMessage
from hitherto.limits import HISTORY_PAGE
from hitherto.model import LOCAL, Entry
from hitherto.sdk.blocks import blocks, usage_of
from hitherto.sdk.known_session import Directory, find_known, opened_store, read_arguments
from hitherto.service import Sessions


class GetSessionMessagesOptions(TypedDict, total=False):
    """What `get_session_messages` may be given."""

    dir: Directory
    limit: int | None
    offset: int | None
    include_system_messages: bool | None
    store: str | None


async def get_session_messages(
    session_id: str, options: Mapping[str, Any] | None = None, /, **more: Unpack[GetSessionMessagesOptions]
) -> list[SessionMessage]:
    """The messages of a session as a model would get them, oldest first; none if there is no such session.

    A limit of 0 or less is none. What a tool answered is a message of the user's, as for the model.
    """
    given = read_arguments(options, more, "dir", "limit", "offset", "include_system_messages")
    directory, limit, offset = given.get("dir"), given.get("limit", 0), max(given.get("offset", 0), 0)
    system = bool(given.get("include_system_messages", False))
    async with opened_store(given.get("store")) as sessions:
        known = await find_known(sessions, session_id, directory)
        if known is None:
            return []
        if known.file is not None:
            read = partial(claude.get_session_messages, known.file.stem, directory, limit, offset)
            return await asyncio.to_thread(read, include_system_messages=system)
        if sessions is None or known.stored is None:
            return []
        entries = [entry async for entry in _context(sessions, known.stored.id)]
    shown = (_message(session_id, entry) for entry in entries if system or _kind(entry) != "system")
    return list(islice(shown, offset, offset + limit if limit > 0 else None))


async def _context(sessions: Sessions, session_id: str) -> AsyncIterator[Entry]:
    after: str | None = None
    while True:
        page = await sessions.history(LOCAL, session_id, limit=HISTORY_PAGE, after=after)
        for entry in page.entries:
            yield entry
        if (after := page.next) is None:
            return


def _kind(entry: Entry) -> Literal["user", "assistant", "system"]:
    """Whose message an entry is; a summary is the user's, as for the model."""
    if entry.role == "system":
        return "user" if "compaction" in entry.meta or "compact_summary" in entry.meta else "system"
    return "assistant" if entry.role == "assistant" else "user"


def _message(session_id: str, entry: Entry) -> SessionMessage:
    kind = _kind(entry)
    message: dict[str, Any] = {"role": kind, "content": blocks(entry.parts)}
    if kind == "assistant":
        message |= {"id": entry.id, "type": "message", "model": entry.model, "usage": usage_of(entry.usage)}
    return SessionMessage(type=kind, uuid=entry.id, session_id=session_id, message=message)
