"""The files below a folder, by descriptors: no link is followed, so the walk stays where it began."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from hitherto.engines.tools.glob import Glob, States
from hitherto.engines.tools.limits import WALK_DEPTH, WALK_ENTRIES
from hitherto.engines.tools.roots import FOLDER, Roots

HEAVY = frozenset(
    (
        ".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox",
    )
)  # fmt: skip
"""Folders that are passed over, unless the pattern says their name."""


class Found(NamedTuple):
    """Something that matches. `folder` is open for as long as the walk stands here; `path` is relative."""

    path: str
    folder: int
    entry: os.DirEntry[str]


class Walk:
    """A walk in the order of names. `cut` afterwards says that there was more than may be looked at."""

    def __init__(self, glob: Glob, stopped: Callable[[], bool]) -> None:
        self._glob = glob
        self._stopped = stopped
        self._left = WALK_ENTRIES
        self._passed_over = frozenset(name for name in HEAVY if not glob.names(name))
        self.cut = False

    def below(self, folder: int, prefix: str = "") -> Iterator[Found]:
        """What matches below an opened folder; paths begin with `prefix`."""
        return self._walk(folder, prefix, self._glob.start, 0)

    def _walk(self, folder: int, prefix: str, states: States, depth: int) -> Iterator[Found]:
        for entry in self._entries(folder):
            if self._stopped():
                self.cut = True
                return
            reached = self._glob.step(states, entry.name)
            if self._glob.matches(reached):
                yield Found(prefix + entry.name, folder, entry)
            if reached and self._enters(entry, depth):
                # What vanishes, is forbidden, or has become a link meanwhile is passed over.
                with suppress(OSError), _opened(entry.name, folder) as inner:
                    yield from self._walk(inner, f"{prefix}{entry.name}/", reached, depth + 1)

    def _entries(self, folder: int) -> list[os.DirEntry[str]]:
        with suppress(OSError), os.scandir(folder) as entries:
            some = list(islice(entries, self._left + 1))
            self.cut = self.cut or len(some) > self._left
            del some[self._left :]
            self._left -= len(some)
            return sorted(some, key=lambda entry: entry.name)
        return []

    def _enters(self, entry: os.DirEntry[str], depth: int) -> bool:
        if not entry.is_dir(follow_symlinks=False) or entry.name in self._passed_over:
            return False
        self.cut = self.cut or depth >= WALK_DEPTH
        return depth < WALK_DEPTH


@contextmanager
def opened_folder(roots: Roots, path: str) -> Iterator[int]:
    """A folder within the roots."""
    with roots.spot(path) as spot, _opened(spot.name, spot.folder) as folder:
        yield folder


@contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    descriptor = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
