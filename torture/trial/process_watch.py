"""Seeing what a process opens: by the interpreter's own events, and by what the system says of a folder."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torture.trial.program import Environment

HOOKS = Path(__file__).parent / "watched"
PROGRAMS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")


class Note(NamedTuple):
    """Something that a watched process did."""

    event: str
    told: tuple[str, ...]


def watched(environment: Environment, notes: Path) -> dict[str, str]:
    """The environment of a process that notes what it opens."""
    before = environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HOOKS), before))),
        "TORTURE_NOTES": str(notes),
    }


def noted(notes: Path) -> list[Note]:
    """What it noted until now."""
    lines = map(json.loads, notes.read_text().splitlines())
    return [Note(event, tuple(told)) for event, *told in lines]


# What the system says


OPENED, CHANGED = 0x20, 0x2 | 0x40 | 0x80 | 0x100 | 0x200
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def openings(*folders: Path) -> Iterator[list[str]]:
    """Fills, when the block ends, with each opening or change of these folders and of what lies in them."""
    found: list[str] = []
    descriptor = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    watched_here: dict[int, Path] = {}
    try:
        for folder in folders:
            number = _libc.inotify_add_watch(descriptor, os.fsencode(folder), OPENED | CHANGED)
            if number < 0:
                raise OSError(ctypes.get_errno(), str(folder))
            watched_here[number] = folder
        yield found
        found += _events(descriptor, watched_here)
    finally:
        os.close(descriptor)


def _events(descriptor: int, known: dict[int, Path]) -> Iterator[str]:
    while True:
        try:
            data = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
            at += _EVENT.size + length
            where = known.get(number)
            yield f"{'opened' if mask & OPENED else 'changed'} {where}/{os.fsdecode(name)}"


# Swaps


def exchange(one: Path, other: Path) -> None:
    """Let two names change places, at once."""
    if _libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
