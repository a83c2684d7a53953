"""Watching the folders of sources for changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from hitherto.sources.shared.files import folder_exists

LOOK_MS = 500
"""How often to check whether folders appeared or disappeared, and whether the files `beside` them changed. The folders of
those files are not watched, since other files there change all the time."""


async def changes_of(
    folders: Sequence[Path], beside: Callable[[], Iterable[Path]] = tuple
) -> AsyncIterator[None]:
    """Yield when something may have changed in the folders or in the files `beside` them, and once at the beginning. Folders
    and files may appear and disappear."""
    from watchfiles import awatch  # here: only watching needs it

    # Before the first yield: what is written during the first reading is a change.
    marks = _marks(beside())
    yield
    while True:
        there = _existing(folders)
        if not there:
            await asyncio.sleep(LOOK_MS / 1000)
            continue
        began = False
        watch = awatch(*there, debounce=400, step=50, rust_timeout=LOOK_MS, yield_on_timeout=True)
        async with aclosing(watch):
            async for changes in watch:
                # Yield once when the watch has started: a change between the last check and the start would be missed.
                before, marks = marks, _marks(beside())
                if changes or not began or marks != before:
                    yield
                began = True
                if _existing(folders) != there:
                    break


def _existing(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if folder_exists(folder)]


def _marks(paths: Iterable[Path]) -> list[tuple[Path, int, int]]:
    marks = list[tuple[Path, int, int]]()
    for path in sorted(paths):
        with suppress(OSError):
            stat = os.stat(path)
            marks.append((path, stat.st_size, stat.st_mtime_ns))
    return marks
