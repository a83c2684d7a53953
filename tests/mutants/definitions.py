"""What a breakage is."""

from __future__ import annotations

from typing import NamedTuple

DOORS = ("stores", "service", "gateway", "acp", "cli", "remote", "sdk", "sources", "exports", "claude")
"""The ways into the program, and what lies behind all of them: each is a part of the package."""


class Change(NamedTuple):
    """Text of a file of the package, and what it becomes."""

    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    """A breakage, and the test that must notice. Where two parts guard the same promise, both are broken."""

    name: str
    changes: tuple[Change, ...]
    test: str

    @property
    def doors(self) -> set[str]:
        """The doors that it breaks."""
        return {change.file.partition("/")[0] for change in self.changes} & set(DOORS)


def mutant(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    """A breakage of one place."""
    return Mutant(name, (Change(file, old, new),), test)
