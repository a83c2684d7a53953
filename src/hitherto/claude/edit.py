"""Changing a session in place: its title, its tag, whether it is put away; and deleting it.

Claude Code may be writing to the same transcript meanwhile. So a transcript is only ever appended to, whole lines in
one write, and a change is on disk when the function returns.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path

from hitherto.claude.paths import (
    ARCHIVED,
    TRANSCRIPT,
    find_session,
    folders_of,
    is_session_id,
    one_of,
    open_transcript,
    project_folders,
    projects_folder,
    session_folder,
)
from hitherto.claude.writing import append_line, encoded, iso_now, opened_folder, replace_file, sync_folder

Directory = str | os.PathLike[str] | None
# Format marks, private use and unassigned: what is not seen, or not the same everywhere, is no part of a tag.
UNWANTED = frozenset({"Cf", "Co", "Cn"})
# Taking something out may let the rest combine anew; it comes to rest long before.
ROUNDS = 10


def rename_session(
    session_id: str, title: str, directory: Directory = None, *, dir: Directory = None
) -> None:
    """Give a session a title; it is stripped, and the last one given is the title.

    ValueError for something that is not an id and for an empty title; FileNotFoundError if there is no such session.
    """
    checked_id(session_id)
    stripped = title.strip()
    if not stripped:
        raise ValueError("title must be non-empty")
    _append(
        session_id,
        one_of(directory, dir),
        {"type": "custom-title", "customTitle": stripped, "sessionId": session_id},
    )


def tag_session(
    session_id: str, tag: str | None, directory: Directory = None, *, dir: Directory = None
) -> None:
    """Give a session a tag, which replaces the one it had; None takes the tag away.

    Invisible characters are taken out. ValueError for something that is not an id and for a tag of which nothing is
    left; FileNotFoundError if there is no such session.
    """
    checked_id(session_id)
    clean = "" if tag is None else _visible(tag).strip()
    if tag is not None and not clean:
        raise ValueError("tag must be non-empty (use None to clear)")
    _append(session_id, one_of(directory, dir), {"type": "tag", "tag": clean, "sessionId": session_id})


def archive_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Put a session away, until it is taken back or somebody says something in it.

    ValueError for something that is not an id; FileNotFoundError if there is no such session.
    """
    _mark(session_id, one_of(directory, dir), archived=True)


def unarchive_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Take a session back; fails as `archive_session` does."""
    _mark(session_id, one_of(directory, dir), archived=False)


def delete_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Delete a session for good: its transcript, and the folder beside it with subagents and tool results.

    ValueError for something that is not an id; FileNotFoundError if there is no such session; OSError if something
    of the folder could not be removed.
    """
    checked_id(session_id)
    path = found_session(session_id, one_of(directory, dir))
    try:
        path.unlink()
    except FileNotFoundError:
        raise FileNotFoundError(f"Session {session_id} not found") from None
    folder = session_folder(path)
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    sync_folder(path.parent)


def checked_id(session_id: str) -> str:
    """The id, if it has the form of one."""
    if not is_session_id(session_id):
        raise ValueError(f"Invalid session_id: {session_id}")
    return session_id


def found_session(session_id: str, directory: Directory) -> Path:
    """The session's transcript."""
    path = find_session(session_id, directory)
    if path is None:
        where = f" in project directory for {directory}" if directory else ""
        raise FileNotFoundError(f"Session {session_id} not found{where}")
    return path


def _append(session_id: str, directory: Directory, record: dict[str, object]) -> None:
    path = find_session(session_id, directory)
    if path is None:
        raise _not_found(session_id, directory)
    descriptor = open_transcript(path, os.O_RDWR | os.O_APPEND)
    try:
        append_line(descriptor, encoded(record))
        # Whoever deleted or replaced the file meanwhile has taken our line along.
        if os.fstat(descriptor).st_nlink == 0:
            raise _not_found(session_id, directory)
    finally:
        os.close(descriptor)


def _not_found(session_id: str, directory: Directory) -> OSError:
    """Why there is no transcript to append to; where nobody may look, it could be."""
    folders = [folder for folder, _ in folders_of(directory)] if directory else project_folders()
    for folder in folders:
        try:
            os.lstat(folder / f"{session_id}{TRANSCRIPT}")
        except PermissionError as error:
            return error
        except OSError:
            continue
    if directory:
        return FileNotFoundError(f"Session {session_id} not found in project directory for {directory}")
    if not projects_folder().is_dir():
        return FileNotFoundError(f"Session {session_id} not found (no projects directory)")
    return FileNotFoundError(f"Session {session_id} not found in any project directory")


def _visible(text: str) -> str:
    """The text in its plainest form, without characters that cannot be seen."""
    for _ in range(ROUNDS):
        before = text
        plain = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in plain if unicodedata.category(char) not in UNWANTED)
        if text == before:
            break
    return text


def _mark(session_id: str, directory: Directory, *, archived: bool) -> None:
    path = find_session(checked_id(session_id), directory)
    if path is None:
        raise _not_found(session_id, directory)
    folder = session_folder(path)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        sync_folder(path.parent)
    record = encoded({"archived": archived, "at": iso_now(), "by": "sdk"}).rstrip()
    with opened_folder(folder, os.O_NOFOLLOW) as place:
        replace_file(place, ARCHIVED, record)
