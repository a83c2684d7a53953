"""The files below a folder whose paths match a pattern, by descriptors: no link is followed, so the walk stays inside.

Patterns are matched name by name on the way down: `*`, `?`, `[a-z]`, `**` for any folders, `{a,b}`.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from hitherto.engines.tools.limits import ALTERNATIVES, PATTERN_CHARS, WALK_DEPTH, WALK_ENTRIES
from hitherto.engines.tools.roots import FOLDER, Roots

ANY_FOLDERS = "**"
BRACES = re.compile(r"\{([^{}]*)\}")
States = frozenset[tuple[int, int]]
"""How far each alternative has got: its number, and how many of its names are behind."""


class Glob:
    """A pattern. Begin with `start`, `step` down name by name; `matches` says if a path may end here."""

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > PATTERN_CHARS:
            raise ValueError(f"a pattern must have 1 to {PATTERN_CHARS} characters")
        self._alternatives = [_names(one) for one in _alternatives(pattern)]
        self.deep = any(ANY_FOLDERS in names for names in self._alternatives)
        self.start = self._closed((number, 0) for number in range(len(self._alternatives)))

    def step(self, states: States, name: str) -> States:
        """The state of each alternative after this name; none if nothing below can match."""
        return self._closed(
            (number, at if want == ANY_FOLDERS else at + 1)
            for number, at in states
            for want in self._alternatives[number][at : at + 1]
            if want == ANY_FOLDERS or fnmatch.fnmatchcase(name, want)
        )

    def matches(self, states: States) -> bool:
        return any(at == len(self._alternatives[number]) for number, at in states)

    def names(self, name: str) -> bool:
        """Whether the pattern says this very name."""
        return any(name in names for names in self._alternatives)

    def _closed(self, states: Iterator[tuple[int, int]]) -> States:
        """With what is reached by letting `**` stand for no folder at all."""
        closed = set()
        for number, start in states:
            names = self._alternatives[number]
            at = start
            closed.add((number, at))
            while names[at : at + 1] == [ANY_FOLDERS]:
                at += 1
                closed.add((number, at))
        return frozenset(closed)


def _names(pattern: str) -> list[str]:
    """The names of a pattern; one that ends with `**` means the files in there."""
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    return [*names, "*"] if names[-1:] == [ANY_FOLDERS] else names


def _alternatives(pattern: str) -> list[str]:
    """The patterns that the braces stand for, the inner ones first."""
    done, open_ = list[str](), [pattern]
    while open_:
        one = open_.pop(0)
        braces = BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            choices = braces[1].split(",")
            open_ += [one[: braces.start()] + choice + one[braces.end() :] for choice in choices]
        if len(done) + len(open_) > ALTERNATIVES:
            raise ValueError(f"the braces of a pattern may expand to at most {ALTERNATIVES} patterns")
    return done


HEAVY = frozenset(
    (
        ".git", ".hg", ".svn", "node_modules", ".venv", "__pycache__",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox",
    )
)  # fmt: skip
"""Folders that are passed over, unless the pattern says their name."""


class FoundPath(NamedTuple):
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

    def below(self, folder: int, prefix: str = "") -> Iterator[FoundPath]:
        """What matches below an opened folder; paths begin with `prefix`."""
        return self._walk(folder, prefix, self._glob.start, 0)

    def _walk(self, folder: int, prefix: str, states: States, depth: int) -> Iterator[FoundPath]:
        for entry in self._entries(folder):
            if self._stopped():
                self.cut = True
                return
            reached = self._glob.step(states, entry.name)
            if self._glob.matches(reached):
                yield FoundPath(prefix + entry.name, folder, entry)
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
