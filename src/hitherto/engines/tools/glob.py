"""Glob patterns, matched name by name on the way down: `*`, `?`, `[a-z]`, `**` for any folders, `{a,b}`. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from hitherto.engines.tools.limits import ALTERNATIVES, PATTERN_CHARS

ANY_FOLDERS = "**"
BRACES = re.compile(r"\{([^{}]*)\}")
States = frozenset[tuple[int, int]]
"""How far each alternative has got: its number, and how many of its names are behind."""


class Glob:
    """A pattern. Begin with `start`, `step` down name by name; `matches` says if a path may end here."""

    def __init__(self, pattern: str) -> None:
        if not pattern or len(pattern) > PATTERN_CHARS:
            raise ValueError(f"a pattern has 1 to {PATTERN_CHARS} characters")
        self._alternatives = [_names(one) for one in _alternatives(pattern)]
        self.deep = any(ANY_FOLDERS in names for names in self._alternatives)
        self.start = self._closed((number, 0) for number in range(len(self._alternatives)))

    def step(self, states: States, name: str) -> States:
        """Where each alternative gets by going on to a name; none where there can be no match below."""
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
            raise ValueError(f"the braces of a pattern may stand for at most {ALTERNATIVES} patterns")
    return done
