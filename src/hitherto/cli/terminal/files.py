"""Files that commands write: readable by their owner only, and either complete or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from hitherto.errors import AlreadyExists

PRIVATE = 0o600


def unused_path(name: str) -> str:
    """The absolute path of a file that must not exist yet."""
    path = os.path.abspath(name)
    if os.path.lexists(path):
        raise AlreadyExists(f"the file {name} already exists; choose another name")
    return path


def make_private(path: str) -> int:
    """Make the file readable by its owner only; returns its size."""
    os.chmod(path, PRIVATE)
    return os.path.getsize(path)


@contextmanager
def new_file(name: str, *, force: bool) -> Iterator[IO[bytes]]:
    """A file to write to. It gets its name when it is complete; an existing one is replaced only with `force`."""
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:  # write to a pipe or device directly
            yield device
        return
    if os.path.exists(path) and not force:
        raise AlreadyExists(f"the file {name} already exists; use --force to overwrite it")
    part = f"{path}.{os.getpid()}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        os.fchmod(descriptor, PRIVATE)
        with open(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        _sync_folder(os.path.dirname(path))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


def _sync_folder(path: str) -> None:
    """Make the names in a folder durable: a new name is a change of the folder, not of the file."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
