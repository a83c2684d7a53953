"""Loaded by every Python process that has this folder in its path: notes who opens a file of SQLite that is in use.

Only SQLite may open such files: when a process closes any other descriptor of one, it loses all its locks on it. SQLite's
own opening is not seen here, and neither is `stat` or `chmod`.
"""

from __future__ import annotations

import os
import sys

NOTES = os.environ.get("TORTURE_OPENS", "")
LOGS = ("-wal", "-shm")
OURS, TESTS = f"{os.sep}src{os.sep}hitherto{os.sep}", f"{os.sep}tests{os.sep}"


def _note(line: str) -> None:
    notes = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(notes, f"{line}\n".encode())
    os.close(notes)


def _is_in_use(name: str) -> bool:
    """Whether it is a database with a log, or belongs to one."""
    base = name[:-4] if name.endswith(LOGS) else name
    return any(os.path.exists(base + log) for log in LOGS)


def _opener() -> str:
    """The nearest caller that is of the program or of its tests; one that is neither is taken for the program."""
    frame = nearest = sys._getframe(2)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if OURS in name:
            return f"stray {name.partition(OURS)[2]}:{frame.f_lineno}"
        if TESTS in name:
            return "test"
        frame = frame.f_back
    # A process that a test gives its program in words.
    words = frame.f_code.co_filename == "<string>"
    return "test" if words else f"stray {nearest.f_code.co_filename}:{nearest.f_lineno}"


def _watch(event: str, given: tuple[object, ...]) -> None:
    if event != "open" or not isinstance(given[0], str | bytes | os.PathLike):
        return
    # One that must not be there yet cannot be in use.
    if isinstance(given[2], int) and given[2] & os.O_EXCL:
        return
    name = os.fsdecode(given[0])
    if _is_in_use(name):
        _note(f"{_opener()} {os.path.basename(name)}")


if NOTES:
    _note("watching")
    sys.addaudithook(_watch)
