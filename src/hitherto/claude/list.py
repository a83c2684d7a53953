"""Lists of sessions, and information about one, from Claude Code's own files."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from hitherto.claude import paths
from hitherto.claude.cache import CachedReader, Reader
from hitherto.claude.metadata import Metadata, is_archived
from hitherto.claude.paths import TITLE, read_sidecar

WORTH_REMEMBERING = 32 << 20
"""From so many bytes on, using the cache costs less than reading the transcripts."""
SPARE = 32
"""How many more transcripts are read than sessions are wanted: some are not listed."""
_ID_LENGTH = 36
_NAME_LENGTH = _ID_LENGTH + len(paths.TRANSCRIPT)


@dataclass
class SDKSessionInfo:
    """A session in a list. Times are in ms; unknown values are None.

    `summary` is the title to show: the user's, else the program's, else the last prompt, else the first.
    `custom_title` is the user's title, or the program's where there is none.
    """

    session_id: str
    summary: str
    last_modified: int
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None
    archived: bool = False


# Time of change, name and number of the folder, compared in this order; and the file's `stat`.
_File = tuple[int, str, int, os.stat_result]


def list_sessions(
    directory: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,
    *,
    dir: str | os.PathLike[str] | None = None,
    include_programmatic: bool = True,
) -> list[SDKSessionInfo]:
    """The sessions of one project and its git worktrees, or of all, the most recently changed first.

    `dir` is another name for `directory`. A limit of 0 or less is none. `include_programmatic=False` leaves out the
    sessions that programs started. Of transcripts with the same id the newest is listed; sidechains and transcripts
    that have nothing to be called by are not listed. What cannot be read is left out.
    """
    scan = _Scan(paths.one_of(directory, dir), include_worktrees)
    limit, offset = paths.whole_number("limit", limit), paths.whole_number("offset", offset)
    wanted = max(offset, 0) + limit if limit > 0 else None
    files = scan.newest_first(wanted)
    first = list(islice(files, wanted))
    size = sum(found.st_size for _, _, _, found in first)
    reader = (CachedReader if size > WORTH_REMEMBERING else Reader)(scan.projects)
    infos = _infos(scan, chain(first, files), reader, include_programmatic)
    page = list(islice(infos, max(offset, 0), wanted))
    reader.close(scan.names, everything=scan.everything and wanted is None)
    return page


class _Scan:
    """All transcripts, from one scan of each folder, the most recently changed first."""

    def __init__(self, directory: str | os.PathLike[str] | None, include_worktrees: bool) -> None:
        self.projects = paths.projects_folder()
        self.everything = directory is None
        self.folders: list[tuple[str, str | None]] = (
            [(str(folder), None) for folder in paths.project_folders()]
            if directory is None
            else [
                (str(folder), path)
                for folder, path in paths.folders_of(directory, include_worktrees=include_worktrees)
            ]
        )
        self.files: list[_File] = []
        # The sessions with a folder of their own, by the number of the project's folder.
        self.owners: list[set[str]] = []
        for number, (folder, _) in enumerate(self.folders):
            self.owners.append(self._look_into(folder, number))

    def newest_first(self, wanted: int | None) -> Iterator[_File]:
        """All transcripts; the first `wanted` are found without sorting all. Ties go to the higher id."""
        begun = 0
        if wanted is not None and wanted + SPARE < len(self.files):
            begun = wanted + SPARE
            yield from heapq.nlargest(begun, self.files)
        yield from sorted(self.files, reverse=True)[begun:]

    def _look_into(self, folder: str, number: int) -> set[str]:
        owners = set()
        add = self.files.append
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if len(name) == _NAME_LENGTH and name.endswith(paths.TRANSCRIPT):
                        found = entry.stat(follow_symlinks=False)
                        add(((found.st_mtime_ns + 500_000) // 1_000_000, name, number, found))
                    elif len(name) == _ID_LENGTH:
                        owners.add(name)
        except OSError:
            pass
        return owners

    def names(self) -> dict[str, set[str]]:
        """The names of all transcripts, by folder."""
        names: dict[str, set[str]] = {folder: set() for folder, _ in self.folders}
        for _, name, number, _ in self.files:
            names[self.folders[number][0]].add(name)
        return names


def _infos(
    scan: _Scan, files: Iterable[_File], reader: Reader, include_programmatic: bool
) -> Iterator[SDKSessionInfo]:
    seen = set()
    for modified, name, number, found in files:
        session_id = name[:_ID_LENGTH]
        if session_id in seen or not _is_transcript(session_id, found):
            continue
        folder, path = scan.folders[number]
        metadata = reader.metadata(folder, name, found)
        if metadata is None or (metadata.is_programmatic and not include_programmatic):
            continue
        own = os.path.join(folder, session_id) if session_id in scan.owners[number] else None
        info = session_info(session_id, metadata, modified, found.st_size, path, own)
        if info is not None:
            seen.add(session_id)
            yield info


def _is_transcript(session_id: str, found: os.stat_result) -> bool:
    return found.st_size > 0 and stat.S_ISREG(found.st_mode) and paths.is_session_id(session_id)


def get_session_info(
    session_id: str,
    directory: str | os.PathLike[str] | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,
) -> SDKSessionInfo | None:
    """One session as lists show it; None if there is no such session, or lists leave it out."""
    given = paths.one_of(directory, dir)
    path = paths.find_session(session_id, given)
    if path is None:
        return None
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    metadata = Reader(path.parent.parent).metadata(str(path.parent), path.name, found)
    if metadata is None:
        return None
    modified = (found.st_mtime_ns + 500_000) // 1_000_000
    project = _project_path(path.parent, given) if given and metadata.cwd is None else None
    return session_info(session_id, metadata, modified, found.st_size, project, str(path.with_suffix("")))


def _project_path(folder: Path, directory: str | os.PathLike[str]) -> str | None:
    return next((path for found, path in paths.folders_of(directory) if found == folder), None)


def session_info(
    session_id: str, metadata: Metadata, modified: int, size: int | None, path: str | None, own: str | None
) -> SDKSessionInfo | None:
    """The session as lists show it, or None if they leave it out; `own` is the session's own folder."""
    if metadata.is_sidechain:
        return None
    title = metadata.custom_title
    if title is None and own is not None:
        given = read_sidecar(os.path.join(own, TITLE)).get("customTitle")
        title = given if isinstance(given, str) else None
    title = title or metadata.ai_title or None
    prompt = metadata.first_prompt or metadata.command or None
    summary = title or metadata.last_prompt or metadata.summary or prompt or metadata.picture
    if not summary:
        return None
    return SDKSessionInfo(
        session_id=session_id,
        summary=summary,
        last_modified=modified,
        file_size=size,
        custom_title=title,
        first_prompt=prompt,
        git_branch=metadata.last_branch or metadata.first_branch or None,
        cwd=metadata.relocated_cwd or metadata.cwd or path,
        tag=metadata.tag or None,
        created_at=metadata.created_at,
        archived=own is not None and is_archived(own, modified),
    )
