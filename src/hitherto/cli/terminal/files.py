"""Files that a command writes: for their owner alone, and complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from hitherto.errors import AlreadyExists

PRIVATE = 0o600


def absent(name: str) -> str:
    """The absolute path of a file that is not there yet."""
    path = os.path.abspath(name)
    if os.path.lexists(path):
        raise AlreadyExists(f"there is a file {name} already; name a new one")
    return path


def closed_to_others(path: str) -> int:
    """Let nobody but its owner read the file; returns its size."""
    os.chmod(path, PRIVATE)
    return os.path.getsize(path)


@contextmanager
def new_file(name: str, *, force: bool) -> Iterator[IO[bytes]]:
    """A file to write to; it appears under its name when all is written. An old one is replaced only with `force`."""
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:  # a pipe or a device is written to as it is
            yield device
        return
    if os.path.exists(path) and not force:
        raise AlreadyExists(f"there is a file {name} already; give --force to replace it")
    part = f"{path}.{os.getpid()}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        os.fchmod(descriptor, PRIVATE)
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise
