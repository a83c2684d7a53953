"""Claude Code's transcript files: finding them for one `stat` each, and reading what is new in one.

Links are never followed, and nothing but regular files is opened. Nothing is ever written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from recollect.claude.places import TRANSCRIPT, is_session_id, open_transcript
from recollect.claude.sidecars import ARCHIVED, TITLE, read_sidecar, session_folder
from recollect.model import Value
from recollect.sources.claude import State

AGENT = "agent-"
SUBAGENTS = "subagents"
_SIDECARS = (ARCHIVED, TITLE)
_PIECE = 8 << 20
# Folders of workflows inside of folders of subagents; deeper ones are not of the program's making.
_DEPTH = 8


class Found(Value, frozen=True, kw_only=True):
    """A transcript file and what its folder says of it.

    `session` is the uuid of the session; of a subagent (`agent` is its id) that of its parent, None if only the
    transcript itself knows it. `project` is the name of the project's folder. `noted_ns` is when the small files
    beside a session's transcript were changed last, 0 if there are none: see `notes`.
    """

    path: Path
    project: str
    session: str | None
    agent: str | None = None
    device: int
    inode: int
    size: int
    mtime_ns: int
    noted_ns: int = 0


class Notes(Value, frozen=True):
    """What the small files beside a session's transcript say. `archived_at` is in ms."""

    archived: bool | None = None
    archived_at: int | None = None
    custom_title: str | None = None


class AgentNotes(Value, frozen=True, rename="camel"):
    """What the small file beside a subagent's transcript says."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None


class Piece(Value, frozen=True):
    """Bytes of a transcript and the file that they were read from, as it was before."""

    data: bytes
    device: int
    inode: int
    size: int
    mtime_ns: int


def find(config_home: Path) -> Iterator[Found]:
    """Every transcript under Claude Code's folder, those of subagents included; none if there is no such folder."""
    for folder in _entries(config_home / "projects"):
        if folder.is_dir(follow_symlinks=False):
            yield from _in_project(folder)


def read_whole(path: Path) -> Piece:
    """All bytes of a transcript. OSError if it is gone, or is no regular file."""
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        return _piece(descriptor, 0)
    finally:
        os.close(descriptor)


def read_on(path: Path, known: State) -> Piece | None:
    """The bytes behind those that `known` was made from; None if the file does not begin with those any more.

    Told by its length and by the last bytes read before.
    """
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        before = os.pread(descriptor, len(known.seal), known.offset - len(known.seal))
        return _piece(descriptor, known.offset) if before == known.seal else None
    finally:
        os.close(descriptor)


def notes(found: Found) -> Notes:
    """What the files beside a session's transcript say; those that were found, so that none is looked for in vain."""
    if not found.noted_ns:
        return Notes()
    folder = session_folder(found.path)
    archived = read_sidecar(folder / ARCHIVED)
    title = read_sidecar(folder / TITLE).get("customTitle")
    flag, at = archived.get("archived"), archived.get("at")
    return Notes(
        archived=flag if isinstance(flag, bool) else None,
        archived_at=_moment(at),
        custom_title=title if isinstance(title, str) and title.strip() else None,
    )


def agent_notes(found: Found) -> AgentNotes:
    """What the file beside a subagent's transcript says."""
    said = read_sidecar(found.path.with_suffix(".meta.json"))
    names = AgentNotes.__struct_encode_fields__
    texts = {name: said[name] for name in names if isinstance(said.get(name), str)}
    return msgspec.convert(texts, AgentNotes)


def _in_project(folder: os.DirEntry[str]) -> Iterator[Found]:
    entries = list(_entries(Path(folder.path)))
    noted: dict[str, int] = {}
    for entry in entries:
        if is_session_id(entry.name) and entry.is_dir(follow_symlinks=False):
            noted[entry.name] = yield from _in_session(entry, folder.name)
    for entry in entries:
        stem = entry.name.removesuffix(TRANSCRIPT)
        if stem == entry.name:
            continue
        if is_session_id(stem):
            yield from _found(entry, folder.name, stem, None, noted.get(stem, 0))
        elif stem.startswith(AGENT):
            # Where versions of 2025 put subagents.
            yield from _found(entry, folder.name, None, stem.removeprefix(AGENT), 0)


def _in_session(folder: os.DirEntry[str], project: str) -> Generator[Found, None, int]:
    """The subagents of a session; returns when the small files beside them were changed last."""
    noted = 0
    for entry in _entries(Path(folder.path)):
        if entry.name == SUBAGENTS and entry.is_dir(follow_symlinks=False):
            yield from _agents(entry, project, folder.name, _DEPTH)
        elif entry.name in _SIDECARS and entry.is_file(follow_symlinks=False):
            noted = max(noted, _changed(entry))
    return noted


def _changed(entry: os.DirEntry[str]) -> int:
    try:
        return max(1, entry.stat(follow_symlinks=False).st_mtime_ns)
    except OSError:
        return 0


def _agents(folder: os.DirEntry[str], project: str, session: str, depth: int) -> Iterator[Found]:
    for entry in _entries(Path(folder.path)):
        if entry.name.startswith(AGENT) and entry.name.endswith(TRANSCRIPT):
            agent = entry.name.removeprefix(AGENT).removesuffix(TRANSCRIPT)
            yield from _found(entry, project, session, agent, 0)
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _agents(entry, project, session, depth - 1)


def _found(
    entry: os.DirEntry[str], project: str, session: str | None, agent: str | None, noted: int
) -> Iterator[Found]:
    """The file, if it is a regular one with something in it and still there."""
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISREG(seen.st_mode) and seen.st_size:
        yield Found(
            path=Path(entry.path),
            project=project,
            session=session,
            agent=agent,
            device=seen.st_dev,
            inode=seen.st_ino,
            size=seen.st_size,
            mtime_ns=seen.st_mtime_ns,
            noted_ns=noted,
        )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What is in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _piece(descriptor: int, offset: int) -> Piece:
    seen = os.fstat(descriptor)
    return Piece(
        data=b"".join(_pieces(descriptor, offset, seen.st_size)),
        device=seen.st_dev,
        inode=seen.st_ino,
        size=seen.st_size,
        mtime_ns=seen.st_mtime_ns,
    )


def _pieces(descriptor: int, offset: int, end: int) -> Iterator[bytes]:
    """The file up to the end that it had when it was looked at: what is written meanwhile is for the next time."""
    while offset < end and (piece := os.pread(descriptor, min(_PIECE, end - offset), offset)):
        yield piece
        offset += len(piece)


def _moment(at: object) -> int | None:
    """A moment that is written as a number of ms, or as a date."""
    if isinstance(at, int | float) and not isinstance(at, bool):
        return int(at)
    try:
        return None if at is None else round(msgspec.convert(at, datetime).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
