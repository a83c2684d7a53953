"""Documents in the order in which they were stored: the table of earlier versions.

It is searched and fed while the documents of an existing store are put in the order of time beside it, and then
removed. Its documents are keyed by their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.documents.document import FEW, NO_BOUND, SEQ_BITS, Document, Found, Part, Wanted
from hitherto.values import words

REMOVE = "DROP TABLE IF EXISTS doc"
FORGET = "INSERT INTO doc (doc) VALUES ('delete-all')"
MERGE = "INSERT INTO doc (doc, rank) VALUES ('merge', ?)"
IS_THERE = "SELECT 1 FROM sqlite_schema WHERE name = 'doc'"
ADD = "INSERT OR REPLACE INTO doc (rowid, own, text) VALUES (?, ?, ?)"
DROP = "DELETE FROM doc WHERE rowid = ?"
FIND = "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
FIND_ALL = "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid < ? ORDER BY rowid"
FIND_WITHIN = "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?"
FIND_WITHIN_BACKWARDS = (
    "SELECT rowid FROM doc WHERE doc MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
)


def add(index: apsw.Connection, documents: Iterable[Document]) -> None:
    """Add documents."""
    index.executemany(ADD, [(each.number, _own(each), each.text) for each in documents])


def drop(index: apsw.Connection, numbers: Sequence[int]) -> None:
    """Drop documents by their number; those that are not there are passed over."""
    index.executemany(DROP, [(number,) for number in numbers])


def find(db: apsw.Connection, wanted: Wanted, below: int | None, limit: int) -> list[Found]:
    """The newest documents, from strictly below a number."""
    bound = NO_BOUND if below is None else below
    query = _query((f"o{wanted.owner}", wanted.kind and f"k{wanted.kind}"), wanted)
    if _are_few(db, wanted, bound):
        rows = fetch(db, FIND_ALL, (query, bound))[-limit:][::-1]
    else:
        rows = fetch(db, FIND, (query, bound, limit))
    return [(number, number, 0) for (number,) in rows]


def within(db: apsw.Connection, wanted: Wanted, part: Part, limit: int, *, backwards: bool) -> list[int]:
    """The numbers of the first documents of a part of a log, or of the last, in that order."""
    query = _query((f"l{part.log}", wanted.kind and f"k{wanted.kind}"), wanted)
    statement = FIND_WITHIN_BACKWARDS if backwards else FIND_WITHIN
    bound = (query, part.numbers.start, part.numbers.stop - 1, limit)
    return [row[0] for row in fetch(db, statement, bound)]


def _are_few(db: apsw.Connection, wanted: Wanted, bound: int) -> bool:
    """Whether few documents have these words, of all owners. To meet those, FTS5 goes through the owner's documents: from
    the oldest to the newest in leaps, but backwards at a cost that grows with all of them."""
    query = _terms(wanted)
    return bool(query) and len(fetch(db, FIND, (query, bound, FEW + 1))) <= FEW


def _own(document: Document) -> str:
    log = f" l{document.pos >> SEQ_BITS}" if document.pos >= 0 else ""
    return f"o{document.owner} k{document.kind}{log}"


def _query(own: Sequence[str | None], wanted: Wanted) -> str:
    belongs = " AND ".join(f'"{name}"' for name in own if name)
    found = " AND ".join(filter(None, (f"own:({belongs})", _terms(wanted))))
    left_out = " OR ".join(words.fts_match([term]) for term in wanted.without)
    return f"(({found}) NOT ({left_out}))" if left_out else found


def _terms(wanted: Wanted) -> str:
    if wanted.every or not wanted.terms:
        return words.fts_match(wanted.terms)
    return f"({' OR '.join(words.fts_match([term]) for term in wanted.terms)})"
