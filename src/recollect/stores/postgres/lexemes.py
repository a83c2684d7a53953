"""Documents and queries in the form of PostgreSQL's full-text search. Pure.

Besides its words a document has marks: its owner, its owner with its kind, and its owner with the number of the bucket
of documents it stands among. A mark begins with a space, which no word has, so a query touches one owner's documents
only and can take the newest buckets first.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from recollect import words
from recollect.words import Term

BUCKET_BITS = 14
"""As in the function `document_words`."""

# PostgreSQL keeps no position behind this one, and no more than so many of one word.
LAST_POSITION = 16_383
POSITIONS = 255

LOOSE = "' loose'"
"""The mark of a document that has lost positions: a phrase in it must be looked for in its text."""
IS_LOOSE = f"words @@ $${LOOSE}$$::tsquery"

NO_END = (1 << 63) - 1


class Range(NamedTuple):
    """Documents with numbers from `low` up to, not including, `high`; `buckets` are those that hold them."""

    low: int
    high: int
    buckets: Sequence[int] = ()


def mark(owner: str) -> str:
    """What stands for the owner. A hash, because an owner's name can be of any length."""
    return " " + hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def vector(owner: str, kind: str, searchable: str) -> str:
    """The words of a document and its marks, without that of its bucket, as the text of a `tsvector`."""
    tokens, own = words.tokens(searchable), mark(owner)
    marks = [f"'{own}'", f"'{own}/{kind}'"]
    if _loses_positions(tokens):
        marks.append(LOOSE)
    return f"{' '.join(marks)} {words.ts_vector(tokens)}"


def _loses_positions(tokens: Sequence[str]) -> bool:
    if len(tokens) <= POSITIONS:
        return False
    return len(tokens) > LAST_POSITION or max(Counter(tokens).values()) > POSITIONS


def query(owner: str, terms: Iterable[Term], kind: str | None = None, buckets: Sequence[int] = ()) -> str:
    """The owner's documents of this kind in these buckets (none: all) with all terms, as the text of a `tsquery`.

    It may find more than it should among documents that have the mark `LOOSE`.
    """
    own = mark(owner)
    parts = [f"'{own}'" if kind is None else f"'{own}/{kind}'"]
    if buckets:
        parts.append("(" + " | ".join(f"'{own}.{bucket}'" for bucket in buckets) + ")")
    return " & ".join([*parts, *map(_term, terms)])


def _term(term: Term) -> str:
    exact = words.ts_query([term])
    if len(term.tokens) == 1:
        return exact
    *firsts, last = term.tokens
    singles = [*(Term((token,)) for token in firsts), Term((last,), term.prefix)]
    return f"({exact} | ({LOOSE} & {words.ts_query(singles)}))"


def needs_positions(terms: Iterable[Term]) -> bool:
    """Whether a document that has the mark `LOOSE` must be looked at itself."""
    return any(len(term.tokens) > 1 for term in terms)


def older(low: int) -> Iterator[Range]:
    """Ranges, each larger than the one before, that together hold all documents below a number.

    So a search for a common word ends early, and one for a rare word takes a few steps.
    """
    for count in (2, 8, 32, 128):
        if low <= 0:
            return
        top = (low - 1) >> BUCKET_BITS
        bottom = max(0, top - count + 1)
        yield Range(bottom << BUCKET_BITS, low, range(bottom, top + 1))
        low = bottom << BUCKET_BITS
    if low > 0:
        yield Range(0, low)
