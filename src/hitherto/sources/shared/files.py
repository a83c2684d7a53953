"""Files of other programs: found for one `stat` each, read and never written. Links are not followed, and nothing but
regular files is opened.
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
MS = 1_000_000


class FoundFile(msgspec.Struct, frozen=True, gc=False):
    """A regular file as it was when it was looked at: its path as text, which costs nothing to make, its name, and what
    changes when the file does: its device, inode, size and time in ns."""

    where: str
    name: str
    stamp: tuple[int, int, int, int]

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.where)

    @property
    def inode(self) -> int:
        """Its number on its device."""
        return self.stamp[1]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.stamp[2]

    @property
    def at(self) -> int:
        """When it was changed last, in ms."""
        return self.stamp[3] // MS


class FolderContents(NamedTuple):
    """What lies in a folder: regular files with something in them, and the names of folders. Links are neither."""

    files: list[FoundFile]
    folders: list[str]


def list_folder(folder: Path | str, *endings: str, unreadable: list[Unreadable]) -> FolderContents:
    """What lies in a folder, of its files those whose names end so. One that is not there is empty; one that cannot be read
    is added to `unreadable`."""
    found = FolderContents([], [])
    try:
        # By its descriptor, so that the way to the folder is gone once and not for every file.
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
    """Whether there is such a folder, be it one that cannot be read."""
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
    """All bytes of a file. `OSError` if it is gone, or is no regular file; `ValueError` if it is too large."""
    return _read(path, 0, b"") or b""


def read_from(path: Path, offset: int, seal: bytes) -> bytes | None:
    """The bytes behind `offset`; None if the bytes before it are not `seal` (any more), so that the file is another."""
    return _read(path, offset, seal)


def _read(path: Path, offset: int, seal: bytes) -> bytes | None:
    descriptor = open_transcript(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if size > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
        if os.pread(descriptor, len(seal), offset - len(seal)) != seal:
            return None
        return b"".join(_pieces(descriptor, offset, size))
    finally:
        os.close(descriptor)


def _pieces(descriptor: int, offset: int, end: int) -> Iterator[bytes]:
    """The file up to the end that it had when it was looked at: what is written meanwhile is for the next time."""
    while offset < end and (piece := os.pread(descriptor, min(_PIECE, end - offset), offset)):
        yield piece
        offset += len(piece)


EXACT = "path_exact"
"""Beside a path that is no text: its bytes, those that are not plain written as in an address."""


def path_text(path: Path) -> str:
    """A path to be read; bytes that are no text are replaced by a mark."""
    return os.fsencode(path).decode("utf-8", "replace")


def path_meta(path: Path) -> Json:
    """What is kept of a path, so that `path_of` gives it back."""
    known, text = os.fsencode(path), path_text(path)
    return {"path": text} if text.encode() == known else {"path": text, EXACT: quote_from_bytes(known)}


def path_of(session: Session) -> Path:
    """The path that is kept with a session; an empty one if there is none."""
    text, exact = session.meta.get("path", ""), session.meta.get(EXACT)
    path = Path(os.fsdecode(unquote_to_bytes(exact))) if isinstance(exact, str) else None
    # What was kept of another path before does not count.
    return path if path is not None and path_text(path) == text else Path(str(text))


def raw_copies(data: bytes, offset: int = 0) -> Iterator[RawCopy]:
    """The exact bytes of a file from `offset` on, named by where they stand in it."""
    for start in range(0, len(data), RAW_BYTES):
        yield RawCopy(f"{offset + start:015d}", data[start : start + RAW_BYTES])
