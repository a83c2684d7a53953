"""The session functions that read, over a session store instead of files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from hitherto.claude.chain import Link, is_spoken
from hitherto.claude.list import SDKSessionInfo, session_info
from hitherto.claude.messages import SessionMessage, is_shown, messages_of, with_origin
from hitherto.claude.metadata import milliseconds, read_metadata
from hitherto.claude.paths import canonical, folder_name, is_session_id, whole_number
from hitherto.claude.session_stores.protocol import (
    SessionKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    implements,
)
from hitherto.claude.session_stores.summary import summarised_info
from hitherto.claude.session_stores.transcript_files import last_metadata, loaded, opened_file
from hitherto.claude.transcript import read_open
from hitherto.claude.tree import conversation, subagent_conversation
from hitherto.ids import now_ms

T = TypeVar("T")
AT_ONCE = 16
"""How many transcripts are loaded at the same time."""
AGENT = "agent-"
SUBAGENTS = "subagents/"


class _Project(NamedTuple):
    """A folder, and the key of its sessions in a store."""

    path: str
    key: str

    def session(self, session_id: str) -> SessionKey:
        return {"project_key": self.key, "session_id": session_id}


class _Row(NamedTuple):
    """A session of a list; without `info` if it has to be loaded for that."""

    session_id: str
    mtime: int
    info: SDKSessionInfo | None = None


async def list_sessions_from_store(
    session_store: SessionStore, directory: str | None = None, limit: int | None = None, offset: int = 0
) -> list[SDKSessionInfo]:
    """The sessions of one project (by default of the current folder), the last appended to first.

    A limit of 0 or less is none. Sessions whose summaries the store keeps up to date are not loaded; if a transcript
    cannot be loaded, its summary is empty. ValueError if the store can list neither sessions nor summaries.
    """
    project = _project(directory)
    rows = await _summarised(session_store, project)
    if rows is not None:
        rows.sort(key=lambda row: row.mtime, reverse=True)
        found = await _with_infos(session_store, project, _page(rows, limit, offset))
        return list(filter(None, found))
    listed = await _listed(session_store, project)
    infos = list(filter(None, await _with_infos(session_store, project, listed)))
    infos.sort(key=lambda info: info.last_modified, reverse=True)
    return list(_page(infos, limit, offset))


async def get_session_info_from_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> SDKSessionInfo | None:
    """One session as lists show it; None if there is no such session, or lists leave it out."""
    if not is_session_id(session_id):
        return None
    project = _project(directory)
    entries = await loaded(session_store, project.session(session_id))
    return _info(session_id, entries, _last_moment(entries), project.path)


async def get_session_messages_from_store(
    session_store: SessionStore,
    session_id: str,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """The messages of a session, oldest first; none if there is no such session."""
    if not is_session_id(session_id):
        return []
    entries = await loaded(session_store, _project(directory).session(session_id))
    return _messages(entries, lambda links: conversation(links, "sdk"), is_shown, limit, offset)


async def list_subagents_from_store(
    session_store: SessionStore, session_id: str, directory: str | None = None
) -> list[str]:
    """The ids of the subagents that a session started. ValueError if the store cannot list them."""
    if not is_session_id(session_id):
        return []
    if not implements(session_store, "list_subkeys"):
        raise ValueError("the session store has no list_subkeys(), so subagents cannot be listed")
    paths = await _subpaths(session_store, _project(directory), session_id)
    return list(dict.fromkeys(_agent(path) for path in paths))


async def get_subagent_messages_from_store(
    session_store: SessionStore,
    session_id: str,
    agent_id: str,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """The messages of a subagent, oldest first; none if there is no such session or subagent."""
    if not is_session_id(session_id) or not agent_id:
        return []
    project = _project(directory)
    paths: Iterable[str] = [f"{SUBAGENTS}{AGENT}{agent_id}"]
    if implements(session_store, "list_subkeys"):
        paths = await _subpaths(session_store, project, session_id)
    subpath = next((path for path in paths if _agent(path) == agent_id), None)
    if subpath is None:
        return []
    entries = await loaded(session_store, {**project.session(session_id), "subpath": subpath})
    messages = _messages(entries, subagent_conversation, is_spoken, limit, offset)
    return with_origin(messages, last_metadata(entries))


def _project(directory: str | os.PathLike[str] | None) -> _Project:
    path = canonical("." if directory is None else directory)
    return _Project(path, folder_name(path))


async def _summarised(store: SessionStore, project: _Project) -> list[_Row] | None:
    """All sessions of a project; those whose summary is older than the session without it. None if there are no summaries."""
    if not implements(store, "list_session_summaries"):
        return None
    try:
        summaries = await store.list_session_summaries(project.key)
    except NotImplementedError:
        return None
    listed = await store.list_sessions(project.key) if implements(store, "list_sessions") else None
    changed = None if listed is None else {each["session_id"]: each["mtime"] for each in listed}
    rows, known = list[_Row](), set[str]()
    for each in summaries:
        name, mtime = each["session_id"], each["mtime"]
        if changed is not None and mtime < changed.get(name, mtime + 1):
            continue
        known.add(name)
        if (info := summarised_info(each, project.path)) is not None:
            rows.append(_Row(name, mtime, info))
    rows += [_Row(name, mtime) for name, mtime in (changed or {}).items() if name not in known]
    return rows


async def _listed(store: SessionStore, project: _Project) -> list[_Row]:
    if not implements(store, "list_sessions"):
        raise ValueError("the session store has neither list_session_summaries() nor list_sessions()")
    found: Sequence[SessionStoreListEntry] = await store.list_sessions(project.key)
    return [_Row(each["session_id"], each["mtime"]) for each in found]


async def _with_infos(
    store: SessionStore, project: _Project, rows: Sequence[_Row]
) -> list[SDKSessionInfo | None]:
    """What lists show of these sessions, in their order; None for those that they leave out."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def info(row: _Row) -> SDKSessionInfo | None:
        if row.info is not None:
            return row.info
        async with turn:
            try:
                entries = await loaded(store, project.session(row.session_id))
            except Exception:  # noqa: BLE001  whatever a store of somebody's raises, the others are listed
                return SDKSessionInfo(row.session_id, "", row.mtime)
        return _info(row.session_id, entries, row.mtime, project.path)

    return list(await asyncio.gather(*map(info, rows)))


def _info(
    session_id: str, entries: Sequence[SessionStoreEntry], modified: int, path: str
) -> SDKSessionInfo | None:
    if not entries:
        return None
    with opened_file(entries) as descriptor:
        return session_info(session_id, read_metadata(descriptor), modified, None, path, None)


def _last_moment(entries: Sequence[SessionStoreEntry]) -> int:
    """The time of the last record; the present if it has none."""
    last = entries[-1] if entries else None
    stamp = last.get("timestamp") if isinstance(last, dict) else None
    found = milliseconds(stamp) if isinstance(stamp, str) else None
    return now_ms() if found is None else found


def _messages(
    entries: Sequence[SessionStoreEntry],
    chosen: Callable[[Sequence[Link]], list[int]],
    visible: Callable[[Link], bool],
    limit: int | None,
    offset: int,
) -> list[SessionMessage]:
    with opened_file(entries) as descriptor:
        return messages_of(read_open(descriptor), chosen, visible, limit, offset)


async def _subpaths(store: SessionStore, project: _Project, session_id: str) -> list[str]:
    """The subpaths of a session's subagents."""
    found = await store.list_subkeys(cast(Any, project.session(session_id)))
    return [path for path in found if path.startswith(SUBAGENTS) and _agent(path)]


def _agent(subpath: str) -> str:
    """The id of the subagent of a subpath; empty if it is none's."""
    name = subpath.rpartition("/")[2]
    return name.removeprefix(AGENT) if name.startswith(AGENT) else ""


def _page(rows: Sequence[T], limit: int | None, offset: int) -> Sequence[T]:
    limit, offset = whole_number("limit", limit), whole_number("offset", offset)
    rest = rows[max(offset, 0) :]
    return rest[:limit] if limit > 0 else rest
