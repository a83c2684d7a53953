"""Noticing that something may have changed in the folders of sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

LOOK_MS = 500
"""How often it is looked whether folders have come or gone."""


async def changes_of(folders: Sequence[Path]) -> AsyncIterator[None]:
    """Something may have changed under the folders; at least once at the beginning. They may come and go."""
    from watchfiles import awatch  # here: only who watches needs it

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
                if changes or not began:
                    yield
                began = True
                if _there(folders) != there:
                    break


def _there(folders: Sequence[Path]) -> list[Path]:
    return [folder for folder in folders if folder.is_dir()]
