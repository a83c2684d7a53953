"""A document as it is fed, and as it is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hitherto.values.query.moments import Period
from hitherto.values.words import Term

SEQ_BITS = 24
NO_BOUND = 1 << 62
FEW = 64


class Document(NamedTuple):
    """The words of an entry at `pos` (`log << 24 | seq`), or of the titles of a session: then `pos` is minus its number."""

    number: int
    owner: int
    kind: str
    pos: int
    at: int
    text: str


Found = tuple[int, int, int]
"""A document that was found: its key in the order of search, its number in the main file, and its `pos`; 0 if only the main
file knows that. As SQLite gives it out, because there are thousands."""


class Wanted(NamedTuple):
    """What is looked for: the owner's documents of a kind with all of the terms, or with any of them, and with none of `without`.

    `during` is the time that they are wanted of, if they are in the order of time.
    """

    owner: int
    terms: Sequence[Term]
    kind: str | None = None
    every: bool = True
    without: Sequence[Term] = ()
    during: Period | None = None


class Part(NamedTuple):
    """A part of a log: entries of these numbers, which are in the order of their places."""

    log: int
    seqs: range
    numbers: range
