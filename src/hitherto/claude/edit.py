"""Changing a session in place: its title, its tag, whether it is archived; and deleting it.

Claude Code may be writing to the same transcript at the same time. So a transcript is only appended to, whole lines in
one write, and a change is on disk when the function returns.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from pathlib import Path

from hitherto.claude.foreign_files import (
    append_line,
    encoded,
    iso_now,
    opened_folder,
    replace_file,
    sync_folder,
)
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

Directory = str | os.PathLike[str] | None
# Format marks, private use and unassigned: invisible, or not the same everywhere, so not part of a tag.
UNWANTED = frozenset({"Cf", "Co", "Cn"})
# Removing a character may let the others combine again; a few rounds are enough.
ROUNDS = 10


def rename_session(
    session_id: str, title: str, directory: Directory = None, *, dir: Directory = None
) -> None:
    """Set the title of a session, stripped of surrounding whitespace; the last title counts.

    ValueError for an invalid id or an empty title; FileNotFoundError if there is no such session.
    """
    require_session_id(session_id)
    record: dict[str, object] = {
        "type": "custom-title",
        "customTitle": required_title(title),
        "sessionId": session_id,
    }
    _append(session_id, one_of(directory, dir), record)


def tag_session(
    session_id: str, tag: str | None, directory: Directory = None, *, dir: Directory = None
) -> None:
    """Set the tag of a session, replacing the one it had; None removes the tag.

    Invisible characters are removed. ValueError for an invalid id or a tag that is then empty; FileNotFoundError if there
    is no such session.
    """
    require_session_id(session_id)
    _append(
        session_id, one_of(directory, dir), {"type": "tag", "tag": visible_tag(tag), "sessionId": session_id}
    )


def archive_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Archive a session, until it is unarchived or gets a new message.

    ValueError for an invalid id; FileNotFoundError if there is no such session.
    """
    _mark(session_id, one_of(directory, dir), archived=True)


def unarchive_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Unarchive a session; raises the same errors as `archive_session`."""
    _mark(session_id, one_of(directory, dir), archived=False)


def delete_session(session_id: str, directory: Directory = None, *, dir: Directory = None) -> None:
    """Delete a session for good: its transcript, and the folder beside it with subagents and tool results.

    ValueError for an invalid id; FileNotFoundError if there is no such session; OSError if the folder could not be
    removed completely.
    """
    require_session_id(session_id)
    path = require_session(session_id, one_of(directory, dir))
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


def required_title(title: str) -> str:
    """The title without surrounding whitespace; ValueError if nothing is left."""
    stripped = title.strip()
    if not stripped:
        raise ValueError("title must be non-empty")
    return stripped


def visible_tag(tag: str | None) -> str:
    """The tag without invisible characters, empty for None; ValueError if nothing is left."""
    clean = "" if tag is None else _visible(tag).strip()
    if tag is not None and not clean:
        raise ValueError("tag must be non-empty (use None to clear)")
    return clean


def require_session_id(session_id: str) -> str:
    """The id, if it is well-formed; else ValueError."""
    if not is_session_id(session_id):
        raise ValueError(f"Invalid session_id: {session_id}")
    return session_id


def require_session(session_id: str, directory: Directory) -> Path:
    """The session's transcript; FileNotFoundError if there is none."""
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
        # If the file was deleted or replaced meanwhile, our line went with it.
        if os.fstat(descriptor).st_nlink == 0:
            raise _not_found(session_id, directory)
    finally:
        os.close(descriptor)


def _not_found(session_id: str, directory: Directory) -> OSError:
    """The error for a missing transcript; a folder that may not be read could have it."""
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
    """The text in its normal form, without invisible characters."""
    for _ in range(ROUNDS):
        before = text
        plain = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in plain if unicodedata.category(char) not in UNWANTED)
        if text == before:
            break
    return text


def _mark(session_id: str, directory: Directory, *, archived: bool) -> None:
    path = find_session(require_session_id(session_id), directory)
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
