"""Documents in the order in which they were said.

A document's key is its moment in milliseconds, followed by a bit that tells two documents of one moment apart. Where
more share a moment, the others take the next free keys, and `crowded` says where the next one is to look: so
a million documents of one moment cost no more than others. A key is given once, when the document is fed.

Each word begins with the owner's number and a sign that no word has: the words of others are other words, and how many
there are of them, nobody's search can tell. Behind the words of the text stand marks, with a second such sign: the kind
of the document, and the part of the log that it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from hitherto.model import ROLES, encode
from hitherto.stores.sqlite.connection import fetch
from hitherto.stores.sqlite.documents.document import (
    FEW,
    NO_BOUND,
    SEQ_BITS,
    Document,
    Found,
    Part,
    Wanted,
)
from hitherto.values import words
from hitherto.values.words import Term

TIE_BITS = 1
PART_BITS = 10
"""A log is searched in parts of so many entries (a power of two): what is found in each is then put in order."""
SIGN = "\u00b7"
KINDS = (*ROLES, "other", "title")
BEGUN = 128
"""So many words may have a beginning that is asked for, to be looked for one by one."""
AFTER = "\u0001"
"""Behind a word, and before any other that begins so."""

SCHEMA = """
CREATE VIRTUAL TABLE said USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
INSERT INTO said (said, rank) VALUES ('automerge', 8);
CREATE TABLE place (
    key    INTEGER PRIMARY KEY,
    number INTEGER NOT NULL UNIQUE,
    pos    INTEGER NOT NULL
);
CREATE TABLE crowded (
    at   INTEGER PRIMARY KEY,
    free INTEGER NOT NULL
);
"""
"""Batches are small when people talk: merging them later, and more at a time, halves what feeding costs."""
REMOVE = "DROP TABLE IF EXISTS said; DROP TABLE IF EXISTS place; DROP TABLE IF EXISTS crowded;"
FORGET = "INSERT INTO said (said) VALUES ('delete-all'); DELETE FROM place; DELETE FROM crowded"
MERGE = "INSERT INTO said (said, rank) VALUES ('merge', ?)"
CHECK = "INSERT INTO said (said) VALUES ('integrity-check')"
NUMBERS = "SELECT number FROM place"
STRAYS = """
SELECT (SELECT count(*) FROM said) - (SELECT count(*) FROM place),
       (SELECT count(*) FROM place WHERE key NOT IN (SELECT rowid FROM said))
"""
TAKEN = f"""
SELECT p.key FROM json_each(?) AS j CROSS JOIN place AS p
WHERE p.key >= j.value << {TIE_BITS} AND p.key < j.value + 1 << {TIE_BITS}
"""
CROWDED = "SELECT c.at, c.free FROM json_each(?) AS j CROSS JOIN crowded AS c WHERE c.at = j.value"
CROWD = "INSERT INTO crowded (at, free) VALUES (?, ?) ON CONFLICT (at) DO UPDATE SET free = excluded.free"
IS_TAKEN = "SELECT 1 FROM place WHERE key = ?"
NEXT_FREE = """
SELECT p.key + 1 FROM place AS p
WHERE p.key >= ? AND NOT EXISTS (SELECT 1 FROM place AS q WHERE q.key = p.key + 1) ORDER BY p.key LIMIT 1
"""
ADD = "INSERT INTO said (rowid, words) VALUES (?, ?)"
ADD_PLACE = "INSERT INTO place (key, number, pos) VALUES (?, ?, ?)"
KEYS = "SELECT p.key FROM json_each(?) AS j CROSS JOIN place AS p WHERE p.number = j.value"
DROP = "DELETE FROM said WHERE rowid = ?"
DROP_PLACE = "DELETE FROM place WHERE key = ?"
_FIND = """
SELECT p.key, p.number, p.pos FROM said AS s CROSS JOIN place AS p
WHERE s.said MATCH ? AND s.rowid < ? AND s.rowid >= ? AND p.key = s.rowid ORDER BY s.rowid
"""
FIND = f"{_FIND} DESC LIMIT ?"
FIND_ALL = _FIND
ARE_FEW = "SELECT rowid FROM said WHERE said MATCH ? AND rowid < ? AND rowid >= ? ORDER BY rowid DESC LIMIT ?"
KNOW_WORDS = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.spoken USING fts5vocab (main, said, instance)"
NEXT_WORD = "SELECT term FROM temp.spoken WHERE term >= ? LIMIT 1"
FIND_PART = """
SELECT p.key, p.number, p.pos FROM said AS s CROSS JOIN place AS p WHERE s.said MATCH ? AND p.key = s.rowid
"""


def add(index: apsw.Connection, documents: Iterable[Document]) -> None:
    """Add documents that are not there yet. In the order of their keys: FTS5 writes what it has at each step back."""
    ordered = sorted((words.said_at(each.at), each.number, each) for each in documents)
    keys = _keys(index, [at for at, _, _ in ordered])
    rows = sorted((key, document) for key, (_, _, document) in zip(keys, ordered, strict=True))
    index.executemany(ADD_PLACE, [(key, document.number, document.pos) for key, document in rows])
    index.executemany(ADD, [(key, _words(document)) for key, document in rows])


def drop(index: apsw.Connection, numbers: Sequence[int]) -> None:
    """Drop documents by their number; those that are not there are passed over."""
    keys = fetch(index, KEYS, (encode(numbers).decode(),))
    index.executemany(DROP, keys)
    index.executemany(DROP_PLACE, keys)


def find(db: apsw.Connection, wanted: Wanted, below: int | None, limit: int) -> list[Found]:
    """The newest documents, from strictly below a key."""
    bounds, terms = _bounds(wanted, NO_BOUND if below is None else below), _terms(db, wanted)
    query = _query(wanted, terms)
    if _are_few(db, wanted, terms, bounds):
        rows: list[Found] = fetch(db, FIND_ALL, (query, *bounds))
        return rows[-limit:][::-1]
    return fetch(db, FIND, (query, *bounds, limit))


def _bounds(wanted: Wanted, below: int) -> tuple[int, int]:
    """The key below which documents are wanted, and the one from which on."""
    if wanted.during is None:
        return below, 0
    after, before = map(words.said_at, wanted.during)
    # One more: what was said after the end of time is kept as if it were said at it.
    return min(below, before + 1 << TIE_BITS), after << TIE_BITS


def within(db: apsw.Connection, wanted: Wanted, part: Part, limit: int, *, backwards: bool) -> list[int]:
    """The numbers of the first documents of a part of a log, or of the last, in that order."""
    pieces = range(part.seqs.start >> PART_BITS, (part.seqs.stop - 1 >> PART_BITS) + 1)
    found: list[int] = []
    asked = _query(wanted, _terms(db, wanted))
    for piece in reversed(pieces) if backwards else pieces:
        query = f'{asked} AND "{_mark(wanted.owner, f"l{part.log}c{piece}")}"'
        numbers = (row[1] for row in fetch(db, FIND_PART, (query,)))
        found += sorted((number for number in numbers if number in part.numbers), reverse=backwards)
        if len(found) >= limit:
            break
    return found[:limit]


def is_whole(index: apsw.Connection) -> bool:
    """Whether each row of words has its place. Raises `apsw.Error` if the words themselves are damaged."""
    index.execute(CHECK)
    return fetch(index, STRAYS) == [(0, 0)]


def _keys(index: apsw.Connection, said: Sequence[int]) -> list[int]:
    """A free key for each of the documents that were said at these moments, which are in order."""
    moments = encode(list(dict.fromkeys(said))).decode()
    taken = {row[0] for row in fetch(index, TAKEN, (moments,))}
    free: dict[int, int] = dict(fetch(index, CROWDED, (moments,)))
    crowded: dict[int, int] = {}
    keys: list[int] = []
    last = -1
    for at in said:
        end = at + 1 << TIE_BITS
        # Up to a key that an earlier moment was given, none is free: each that lies between was tried for it.
        key = max(free.get(at, at << TIE_BITS), last + 1)
        if key in taken or (key >= end and fetch(index, IS_TAKEN, (key,))):
            ((key,),) = fetch(index, NEXT_FREE, (key,))
        keys.append(key)
        last, free[at] = key, key + 1
        if key + 1 >= end:
            crowded[at] = key + 1
    index.executemany(CROWD, list(crowded.items()))
    return keys


def _are_few(db: apsw.Connection, wanted: Wanted, terms: Sequence[str], bounds: tuple[int, int]) -> bool:
    """Whether few documents have one of several words that all must be there. FTS5 meets those at once if it goes from the
    oldest to the newest, in leaps, but backwards it goes through all that have the others."""
    if not wanted.every or len(wanted.terms) + (wanted.kind is not None) < 2:
        return False
    return any(len(fetch(db, ARE_FEW, (term, *bounds, FEW + 1))) <= FEW for term in terms)


def _words(document: Document) -> str:
    """The words of a document, each for its owner alone, and its marks."""
    own = f"{document.owner}{SIGN}"
    text = document.text.strip(" ")
    while "  " in text:
        text = text.replace("  ", " ")
    marks = [_mark(document.owner, f"k{document.kind}")]
    if document.pos >= 0:
        log, seq = document.pos >> SEQ_BITS, document.pos & (1 << SEQ_BITS) - 1
        marks.append(_mark(document.owner, f"l{log}c{seq >> PART_BITS}"))
    # All words at once: one by one they would take as long as FTS5 takes for them.
    return " ".join((own + text.replace(" ", f" {own}"), *marks) if text else marks)


def _mark(owner: int, name: str) -> str:
    return f"{owner}{SIGN}{SIGN}{name}"


def _query(wanted: Wanted, terms: Sequence[str]) -> str:
    """What is wanted, with these terms, in FTS5's words."""
    kinds = KINDS if wanted.kind is None and not terms else (wanted.kind,) if wanted.kind else ()
    marks = " OR ".join(f'"{_mark(wanted.owner, f"k{kind}")}"' for kind in kinds)
    joined = (" AND " if wanted.every else " OR ").join(terms)
    found = " AND ".join(f"({part})" for part in (marks, joined) if part)
    left_out = " OR ".join(_term(wanted.owner, term) for term in wanted.without)
    return f"(({found}) NOT ({left_out}))" if left_out else found


def _terms(db: apsw.Connection, wanted: Wanted) -> list[str]:
    """The terms in FTS5's words. Of the beginning of a word FTS5 collects all documents before it gives out the first: the words
    that begin so are looked for instead, if they are few."""
    room, found = BEGUN, list[str]()
    for term in wanted.terms:
        begun = (
            _begun(db, wanted.owner, term.tokens[0], room) if term.prefix and len(term.tokens) == 1 else []
        )
        room -= len(begun)
        few = begun if room > 0 else []
        found.append(" OR ".join(f'"{word}"' for word in few) or _term(wanted.owner, term))
    return [f"({each})" for each in found]


def _begun(db: apsw.Connection, owner: int, beginning: str, most: int) -> list[str]:
    """The words that begin so, at most so many."""
    begin, found = f"{owner}{SIGN}{beginning}", list[str]()
    db.execute(KNOW_WORDS)
    word = begin
    while len(found) < most and (rows := fetch(db, NEXT_WORD, (word,))) and rows[0][0].startswith(begin):
        found.append(rows[0][0])
        word = rows[0][0] + AFTER
    return found


def _term(owner: int, term: Term) -> str:
    phrase = " ".join(f"{owner}{SIGN}{token}" for token in term.tokens)
    return f'"{phrase}"{"*" if term.prefix else ""}'
