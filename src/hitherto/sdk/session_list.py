"""Lists of sessions and information about one: those of the store and those in Claude Code's own files, each once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, TypedDict, Unpack

from hitherto import claude
from hitherto.claude.list import SDKSessionInfo
from hitherto.claude.paths import canonical, worktrees
from hitherto.model import LOCAL, OWN, Filter, Session
from hitherto.sdk.known_session import Directory, find_known, opened_store, read_arguments
from hitherto.service import Sessions
from hitherto.service.catalog.deletion import recording_of
from hitherto.sources.claude import parse
from hitherto.values.filters import normal_cwd

TAG = f"{OWN}tag"
"""In a session's meta: the one of its tags that was set as the tag of the session."""
UNTITLED = "Untitled"


class ListSessionsOptions(TypedDict, total=False):
    """What `list_sessions` may be given."""

    dir: Directory
    limit: int | None
    offset: int | None
    include_worktrees: bool | None
    store: str | None


class GetSessionInfoOptions(TypedDict, total=False):
    """What `get_session_info` may be given."""

    dir: Directory
    store: str | None


async def list_sessions(
    options: Mapping[str, Any] | None = None, /, **more: Unpack[ListSessionsOptions]
) -> list[SDKSessionInfo]:
    """The sessions of one project and its git worktrees, or of all, the most recently changed first, however they were
    made: here, by Claude Code, or by another agent whose sessions were synced. Each is listed once. A limit of 0 or less is none."""
    given = read_arguments(options, more, "dir", "limit", "offset", "include_worktrees")
    directory, limit, offset = given.get("dir"), given.get("limit", 0), max(given.get("offset", 0), 0)
    wanted = offset + limit if limit > 0 else None
    with_worktrees = given.get("include_worktrees", True)
    folders = await asyncio.to_thread(_folders, directory, with_worktrees) if directory else [None]
    async with opened_store(given.get("store")) as sessions:
        stored = [] if sessions is None else [each async for each in _stored(sessions, folders)]
    # What continues a session is listed in its place.
    replaced = {each.id for each in stored if recording_of(each)}
    files = await asyncio.to_thread(
        partial(claude.list_sessions, directory, None if wanted is None else wanted + len(replaced)),
        include_worktrees=with_worktrees,
    )
    found = _joined(files, stored, replaced)
    found.sort(key=lambda info: (info.last_modified, info.session_id), reverse=True)
    return found[offset:wanted]


async def get_session_info(
    session_id: str, options: Mapping[str, Any] | None = None, /, **more: Unpack[GetSessionInfoOptions]
) -> SDKSessionInfo | None:
    """One session as lists show it; None if there is no such session."""
    given = read_arguments(options, more, "dir")
    async with opened_store(given.get("store")) as sessions:
        known = await find_known(sessions, session_id, given.get("dir"))
    if known is None:
        return None
    if known.file is None:
        return None if known.stored is None else _info(known.stored)
    info = await asyncio.to_thread(claude.get_session_info, known.file.stem, given.get("dir"))
    return info if info is None or known.stored is None else _with_own_name(info, known.stored)


def _folders(directory: Directory, with_worktrees: bool) -> list[str | None]:
    own = canonical(directory or ".")
    others = worktrees(own) if with_worktrees else []
    return list(dict.fromkeys(map(normal_cwd, [own, *others])))


async def _stored(sessions: Sessions, folders: Iterable[str | None]) -> AsyncIterator[Session]:
    for cwd in folders:
        wanted = Filter(cwd=cwd, archived="include", subagents=False)
        async for session in sessions.catalog.every(LOCAL, wanted):
            yield session


def _joined(
    files: Iterable[SDKSessionInfo], stored: Iterable[Session], replaced: set[str]
) -> list[SDKSessionInfo]:
    known = {each.id: each for each in stored}
    found: list[SDKSessionInfo] = []
    for info in files:
        own = known.pop(parse.session_id(info.session_id), None)
        if own is None or own.id not in replaced:
            found.append(info if own is None else _with_own_name(info, own))
    return found + [_info(each) for each in known.values() if each.id not in replaced and each.message_count]


def _with_own_name(info: SDKSessionInfo, stored: Session) -> SDKSessionInfo:
    """What a transcript says of a session, with the name that its user gave it here."""
    if stored.title_by == "user" and stored.title:
        info.summary = info.custom_title = stored.title
    return info


def _info(session: Session) -> SDKSessionInfo:
    title = session.title if session.title_by == "user" else None
    return SDKSessionInfo(
        session_id=_public_id(session),
        summary=session.title or UNTITLED,
        last_modified=session.updated_at,
        custom_title=title,
        git_branch=session.branch,
        cwd=session.cwd,
        tag=tag_of(session),
        created_at=session.created_at,
        archived=session.archived,
    )


def _public_id(session: Session) -> str:
    """The id by which a session is known to those who read transcripts; others have the store's."""
    prefix = parse.session_id("")
    uuid = session.id.removeprefix(prefix)
    return uuid if session.source == prefix[:-1] and ":" not in uuid else session.id


def tag_of(session: Session) -> str | None:
    """The tag of a session: the one that was set as such, else the first."""
    tag = session.meta.get(TAG)
    return tag if tag in session.tags else next(iter(session.tags), None)
