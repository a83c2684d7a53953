"""What a breakage is."""

from __future__ import annotations

from typing import NamedTuple

CONTRACT = "tests/contract/test_"


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


def mutant(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    """A breakage of one place."""
    return Mutant(name, (Change(file, old, new),), test)
