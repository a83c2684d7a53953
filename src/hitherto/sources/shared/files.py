"""Files of other programs: found with one `stat` each, read and never written. Links are not followed, and only regular
files are opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from hitherto.claude.paths import open_transcript
from hitherto.limits import RAW_BYTES
from hitherto.model import Json, Session
from hitherto.ports import RawCopy
from hitherto.sources.port import Unreadable

LARGEST = 1 << 30
"""A larger file is not read."""
_PIECE = 8 << 20
BESIDE = "beside/"
"""What the names of raw copies of other files begin with; their paths from the transcript's folder follow."""
MS = 1_000_000


class FoundFile(msgspec.Struct, frozen=True, gc=False):
    """A regular file as it was found: its path as text, which is cheap, its name, and a stamp that changes with the
    file: device, inode, size and time in ns."""

    where: str
    name: str
    stamp: tuple[int, int, int, int]

    @property
    def path(self) -> Path:
        """Its path."""
        return Path(self.where)

    @property
    def inode(self) -> int:
        """Its number on its device."""
        return self.stamp[1]

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.stamp[2]

    @property
    def at(self) -> int:
        """When it last changed, in ms."""
        return self.stamp[3] // MS


class FolderContents(NamedTuple):
    """What a folder contains: regular files that are not empty, and the names of folders. Links are neither."""

    files: list[FoundFile]
    folders: list[str]


def list_folder(folder: Path | str, *endings: str, unreadable: list[Unreadable]) -> FolderContents:
    """What a folder contains; only the files with one of these endings. A missing folder is empty; one that cannot be read
    is added to `unreadable`."""
    found = FolderContents([], [])
    try:
        # By its descriptor, so that the path to the folder is resolved once and not for every file.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(descriptor) as there:
                _add_entries(there, str(folder), endings, found)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        unreadable.append(Unreadable(str(folder), error.strerror or str(error)))
    found.folders.sort()
    return found


def folder_exists(folder: Path) -> bool:
    """Whether the folder exists, readable or not."""
    try:
        return stat.S_ISDIR(os.stat(folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _add_entries(
    there: Iterable[os.DirEntry[str]], folder: str, endings: tuple[str, ...], found: FolderContents
) -> None:
    for entry in there:
        name = entry.name
        if not name.endswith(endings):
            if entry.is_dir(follow_symlinks=False):
                found.folders.append(name)
            continue
        try:
            found_stat = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(found_stat.st_mode) and found_stat.st_size:
            stamp = found_stat.st_dev, found_stat.st_ino, found_stat.st_size, found_stat.st_mtime_ns
            found.files.append(FoundFile(f"{folder}/{name}", name, stamp))


def read_whole(path: Path) -> bytes:
    """All bytes of a file. `OSError` if it is gone or not a regular file; `ValueError` if it is too large."""
    return _read(path, 0, b"") or b""


def read_from(path: Path, offset: int, seal: bytes) -> bytes | None:
    """The bytes from `offset` on; None if the bytes before it are not `seal`: then the file was rewritten."""
    return _read(path, offset, seal)


def _read(path: Path, offset: int, seal: bytes) -> bytes | None:
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if size > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes, the most that is read")
        if os.pread(descriptor, len(seal), offset - len(seal)) != seal:
            return None
        return b"".join(_pieces(descriptor, offset, size))
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, offset: int, end: int) -> Iterator[bytes]:
    """The file up to the end that it had when it was opened; the next reading gets what is written meanwhile."""
    while offset < end and (piece := os.pread(descriptor, min(_PIECE, end - offset), offset)):
        yield piece
        offset += len(piece)


EXACT = "path_exact"
"""The key in `meta` for the bytes of a path that is not valid text, percent-encoded."""


def path_text(path: Path) -> str:
    """A path as text to show; invalid bytes become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def path_meta(path: Path) -> Json:
    """The meta fields of a path; `path_of` reads them."""
    known, text = os.fsencode(path), path_text(path)
    return {"path": text} if text.encode() == known else {"path": text, EXACT: quote_from_bytes(known)}


def path_of(session: Session) -> Path:
    """The path in a session's meta; an empty path if there is none."""
    text, exact = session.meta.get("path", ""), session.meta.get(EXACT)
    path = Path(os.fsdecode(unquote_to_bytes(exact))) if isinstance(exact, str) else None
    # The exact bytes may be left over from an earlier path.
    return path if path is not None and path_text(path) == text else Path(str(text))


def joined_copies(copies: Iterable[RawCopy]) -> bytes:
    """The file whose pieces were kept, each named by its offset; empty if one is missing."""
    data = bytearray()
    for copy in (copy for copy in copies if not copy.name.startswith(BESIDE)):
        if not (copy.name.isascii() and copy.name.isdigit() and int(copy.name) == len(data)):
            return b""
        data += copy.data
    return bytes(data)


def raw_copies(data: bytes, offset: int = 0) -> Iterator[RawCopy]:
    """The exact bytes of a file from `offset` on, in pieces named by their offset."""
    for start in range(0, len(data), RAW_BYTES):
        yield RawCopy(f"{offset + start:015d}", data[start : start + RAW_BYTES])
