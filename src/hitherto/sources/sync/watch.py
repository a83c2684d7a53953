"""Noticing that something may have changed in the folders of sources."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from hitherto.sources.shared.files import folder_exists

LOOK_MS = 500
"""How often it is looked whether folders have come or gone, and whether files beside them have changed: those lie among
many others that change all the time, so that their folder is not watched."""


async def changes_of(
    folders: Sequence[Path], beside: Callable[[], Iterable[Path]] = tuple
) -> AsyncIterator[None]:
    """Something may have changed under the folders, or in the files `beside` them; at least once at the beginning. They may
    come and go."""
    from watchfiles import awatch  # here: only who watches needs it

    # Before anything is read: what is written meanwhile is a change.
    marks = _marks(beside())
    yield
    while True:
        there = _there(folders)
        if not there:
            await asyncio.sleep(LOOK_MS / 1000)
            continue
        began = False
        watch = awatch(*there, debounce=400, step=50, rust_timeout=LOOK_MS, yield_on_timeout=True)
        async with aclosing(watch):
            async for changes in watch:
                # Once more when the watch has begun: what changed between the last look and that would be missed.
                before, marks = marks, _marks(beside())
                if changes or not began or marks != before:
                    yield
                began = True
                if _there(folders) != there:
                    break


def _there(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if folder_exists(folder)]


def _marks(paths: Iterable[Path]) -> list[tuple[Path, int, int]]:
    marks = list[tuple[Path, int, int]]()
    for path in sorted(paths):
        with suppress(OSError):
            stat = os.stat(path)
            marks.append((path, stat.st_size, stat.st_mtime_ns))
    return marks
