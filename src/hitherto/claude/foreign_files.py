"""Writing in folders that other programs use: lines appended in one piece, files that appear complete or not at all."""

from __future__ import annotations

import errno
import functools
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hitherto.claude.paths import open_transcript

ATTEMPTS = 5
KEEP_SIZE = 1
"""Linux's FALLOC_FL_KEEP_SIZE: space is reserved without changing the file's size."""
REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def iso_now() -> str:
    """The current time in the format of transcripts."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encoded(record: dict[str, object]) -> bytes:
    """A record as one line of ASCII: no reader can mistake a character in it for a line end."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def append_line(descriptor: int, line: bytes) -> None:
    """Append a line to a transcript that others may be appending to; it is on disk when this returns.

    It starts on a new line, even after an incomplete one. On a full disk, none of it is written.
    """
    size = os.fstat(descriptor).st_size
    data = line if _ends_line(descriptor, size) else b"\n" + line
    reserve(descriptor, size, len(data))
    for _ in range(ATTEMPTS):
        written = os.write(descriptor, data)
        start = os.lseek(descriptor, 0, os.SEEK_CUR) - written
        # Another writer may have torn a line since we looked at the end, or the disk may have taken only a part.
        if written == len(data) and (data is not line or _ends_line(descriptor, start)):
            os.fsync(descriptor)
            return
        data = b"\n" + line
    raise OSError(errno.EIO, "the line could not be written in one piece")


def _ends_line(descriptor: int, offset: int) -> bool:
    return offset == 0 or os.pread(descriptor, 1, offset - 1) == b"\n"


def reserve(descriptor: int, offset: int, length: int) -> None:
    """Reserve space for so many bytes from `offset` on; `OSError` if the disk is full.

    Does nothing if the file system cannot reserve space: then a write may still find the disk full.
    """
    call = _fallocate()
    if call is not None and (failed := call(descriptor, KEEP_SIZE, offset, length)) in REFUSALS:
        raise OSError(failed, os.strerror(failed))


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system call, which Python does not offer; None if the system lacks it. It returns an error number, or 0."""
    import ctypes  # here: only writing needs it

    library = ctypes.CDLL(None, use_errno=True)
    found = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if found is None:
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return lambda *given: ctypes.get_errno() if found(*given) else 0


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """A descriptor of a new file that gets its name, and is on disk, when the block ends. Its mode is 0600.

    `FileExistsError` if the name is taken by then. If the block fails, nothing is left.
    """
    # No program reads a file of this name as a transcript.
    fresh = path.with_name(f"{path.name}.tmp")
    target = open_transcript(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        try:
            yield target
            os.fsync(target)
        finally:
            os.close(target)
        _publish(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


def _publish(fresh: Path, path: Path) -> None:
    """Give the file its name. A hard link, unlike a rename, never replaces an existing file."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise
    except OSError:  # not every file system has hard links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(fresh, path)


def sync_folder(folder: Path) -> None:
    """Flush what was created or removed in a folder to disk."""
    with opened_folder(folder) as descriptor:
        os.fsync(descriptor)


def replace_file(place: int, name: str, data: bytes) -> None:
    """Replace a small file in a folder atomically: a reader sees the old one or the new one."""
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


@contextmanager
def opened_folder(folder: Path, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
