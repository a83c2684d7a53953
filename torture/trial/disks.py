"""Disks that exist for one trial: in memory, of any size, and with a file system whose copy is what a crash would leave."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def mounted(kind: str, device: str, place: Path, options: str) -> Iterator[Path]:
    """A file system of this kind at this place, until the block ends."""
    place.mkdir(exist_ok=True)
    run("mount", "-t", kind, "-o", options, device, str(place))
    try:
        yield place
    finally:
        run("umount", str(place))


@contextmanager
def memory(place: Path, options: str) -> Iterator[Path]:
    """A disk that is held in memory, and is for us alone."""
    with mounted("tmpfs", "tmpfs", place, f"{options},mode=0700") as there:
        yield there


@contextmanager
def image(file: Path, size: int) -> Iterator[Path]:
    """A file with an empty ext4 in it, to be mounted as a loop device."""
    with file.open("wb") as made:
        made.truncate(size)
    try:
        run("mkfs.ext4", "-q", "-F", str(file))
        yield file
    finally:
        file.unlink()


def copy_blocks(source: Path, target: Path) -> None:
    """Copy a file as it is at this moment, as quickly as can be: what was never written is passed over."""
    read, write = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        size, at = os.fstat(read).st_size, 0
        os.ftruncate(write, size)
        with suppress(OSError):  # there is no more data
            while True:
                at = os.lseek(read, at, os.SEEK_DATA)
                end = os.lseek(read, at, os.SEEK_HOLE)
                os.lseek(write, at, os.SEEK_SET)
                while at < end:
                    at += os.sendfile(write, read, at, end - at)
    finally:
        os.close(read)
        os.close(write)


def run(*command: str) -> None:
    """Run it to its end; if it fails, what it complains of is told."""
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip() or f'ended with {ran.returncode}'}")
