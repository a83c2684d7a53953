"""Documents and queries in the form of PostgreSQL's full-text search. Pure.

Besides its words a document has marks: its owner, its owner with its kind, and its owner with each of the blocks of
documents it stands among. A mark begins with a space, which no word has; so a query touches one owner's documents only
and can take the newest blocks first.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hitherto import words
from hitherto.words import LAST_POSITION, POSITIONS, Term

BLOCKS = {"a": 11, "b": 14, "c": 17, "d": 20}
"""The sizes of blocks, as powers of two; eight make one of the next. As in the function `document_words`."""

LOOSE = "' loose'"
"""The mark of a document that has lost positions: a phrase in it must be looked for in its text."""
IS_LOOSE = f"words @@ $${LOOSE}$$::tsquery"

NO_END = (1 << 63) - 1


class Range(NamedTuple):
    """Documents with numbers from `low` up to, not including, `high`; `blocks` are those that hold them."""

    low: int
    high: int
    blocks: Sequence[str] = ()


def mark(owner: str) -> str:
    """What stands for the owner. A hash, because an owner's name can be of any length."""
    digest = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).digest()
    return " " + base64.urlsafe_b64encode(digest[:9]).decode()


def vector(owner: str, kind: str, searchable: str) -> str:
    """The words of a document and its marks, without those of its blocks, as the text of a `tsvector`."""
    tokens, own = words.tokens(searchable), mark(owner)
    marks = [f"'{own}'", f"'{own}/{kind}'"]
    if _loses_positions(tokens):
        marks.append(LOOSE)
    return f"{' '.join(marks)} {words.ts_vector(tokens)}"


def _loses_positions(tokens: Sequence[str]) -> bool:
    if len(tokens) <= POSITIONS:
        return False
    return len(tokens) > LAST_POSITION or max(Counter(tokens).values()) > POSITIONS


def query(owner: str, terms: Iterable[Term], kind: str | None = None, blocks: Sequence[str] = ()) -> str:
    """The owner's documents of this kind in these blocks (none: all) with all terms, as the text of a `tsquery`.

    It may find more than it should among documents that have the mark `LOOSE`.
    """
    own = mark(owner)
    parts = [f"'{own}'" if kind is None else f"'{own}/{kind}'"]
    if blocks:
        parts.append("(" + " | ".join(f"'{own}{block}'" for block in blocks) + ")")
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
    for size, bits in BLOCKS.items():
        if low <= 0:
            return
        top = (low - 1) >> bits
        # Down to where a larger block ends, but not for only a few: each step costs a question.
        bottom = max(0, (top - 4) // 8 * 8)
        yield Range(bottom << bits, low, [f"{size}{block}" for block in range(bottom, top + 1)])
        low = bottom << bits
    if low > 0:
        yield Range(0, low)
