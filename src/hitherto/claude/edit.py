"""Changing a session in place: its title, its tag, whether it is put away; and deleting it.

Claude Code may be writing to the same transcript meanwhile. So a transcript is only ever appended to, whole lines in
one write, and a change is on disk when the function returns.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hitherto.claude.disk_space import reserve
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
# Format marks, private use and unassigned: what is not seen, or not the same everywhere, is no part of a tag.
UNWANTED = frozenset({"Cf", "Co", "Cn"})
# Taking something out may let the rest combine anew; it comes to rest long before.
ROUNDS = 10
ATTEMPTS = 5


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


def iso_now() -> str:
    """The time as transcripts have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encoded(record: dict[str, object]) -> bytes:
    """A record as one line of ASCII: no reader takes anything in it for a line end."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def sync_folder(folder: Path) -> None:
    """Make what was created or removed in a folder last."""
    with _opened_folder(folder) as descriptor:
        os.fsync(descriptor)


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


def append_line(descriptor: int, line: bytes) -> None:
    """Put a line at the end of a transcript that others may be appending to; it is on disk when this returns.

    It begins on a line of its own, whatever the line before it broke off at. A full disk refuses the whole of it.
    """
    size = os.fstat(descriptor).st_size
    data = line if _ends_line(descriptor, size) else b"\n" + line
    reserve(descriptor, size, len(data))
    for _ in range(ATTEMPTS):
        written = os.write(descriptor, data)
        start = os.lseek(descriptor, 0, os.SEEK_CUR) - written
        # Another writer may have torn a line after the look at the end, or the disk may have taken only a part.
        if written == len(data) and (data is not line or _ends_line(descriptor, start)):
            os.fsync(descriptor)
            return
        data = b"\n" + line
    raise OSError(errno.EIO, "the line could not be written in one piece")


def _ends_line(descriptor: int, offset: int) -> bool:
    return offset == 0 or os.pread(descriptor, 1, offset - 1) == b"\n"


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
    with _opened_folder(folder, os.O_NOFOLLOW) as place:
        _replace_file(place, ARCHIVED, record)


@contextmanager
def _opened_folder(folder: Path, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _replace_file(place: int, name: str, data: bytes) -> None:
    """Put a small file in a folder at once: a reader sees the old one or the new one."""
    fresh = f"{name}.tmp.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(fresh, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        os.unlink(fresh, dir_fd=place)
        raise
    os.fsync(place)
