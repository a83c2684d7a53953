"""Search: the newest documents that match, at a cost that follows from how many are asked for.

The newest documents are looked at one by one: that finds common words at once. Below them the index is asked for
ranges of documents, each larger than the one before: so neither a rare word nor a common one makes it collect more
than a few times what it needs.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hitherto.model import decode_entry, search_text
from hitherto.ports import Match, Spot
from hitherto.stores.postgres import search
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements
from hitherto.values import words
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.words import LAST_POSITION, POSITIONS, Term

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


# For each kind of document the columns that a match needs: number, log or session, place in the log, words.
ENTRIES = "SELECT number, log AS num, seq, words FROM entry"
TITLES = "SELECT number, num, NULL::bigint AS seq, words FROM title"
TABLES = {"title": (TITLES,), None: (ENTRIES, TITLES)}

WITHIN = " WHERE owner = %(owner)s AND number >= %(low)s AND number < %(high)s ORDER BY number DESC OFFSET 0"
BELOW = " WHERE owner = %(owner)s AND number < %(high)s ORDER BY number DESC OFFSET %(count)s LIMIT 1"
MATCHING = " WHERE owner = %(owner)s AND words @@ %(query)s::tsquery"

FIRST_LOW = """
SELECT max(number) FROM ({documents}) d
"""
# The fence (OFFSET 0, above) makes PostgreSQL walk the documents in order, and not ask the index of words.
WALK = f"""
SELECT number, num, seq, {search.IS_LOOSE} FROM ({{documents}}) d
WHERE words @@ %(query)s::tsquery ORDER BY number DESC LIMIT %(limit)s
"""
# Without the fence of MATERIALIZED it would walk all documents backwards for a rare word.
ASK = f"""
WITH d AS MATERIALIZED ({{documents}})
SELECT number, num, seq, {search.IS_LOOSE} FROM d
WHERE number >= %(low)s AND number < %(high)s ORDER BY number DESC LIMIT %(limit)s
"""
# The fence again: a stretch is walked, however rare its words are elsewhere.
STRETCH = f"""
SELECT seq, log, id, {search.IS_LOOSE} FROM (
    SELECT log, seq, id, words FROM entry
    WHERE owner = %(owner)s AND log = %(log)s AND seq >= %(first)s AND seq <= %(last)s AND number IS NOT NULL
      AND (%(role)s::text IS NULL OR role = %(role)s)
    ORDER BY seq {{order}} OFFSET 0
) d
WHERE %(wordless)s OR words @@ %(query)s::tsquery ORDER BY seq {{order}} LIMIT %(limit)s
"""
ENTRY_TEXT = "SELECT payload FROM entry WHERE owner = %s AND log = %s AND seq = %s"
TITLE_TEXT = "SELECT text FROM title WHERE owner = %s AND num = %s"

FEWEST_WALKED = 400
MOST_WALKED = 4_000


class Search:
    """One search of one owner's documents."""

    def __init__(self, statements: Statements, owner: str, terms: Sequence[Term], kind: str | None) -> None:
        self._statements = statements
        self._owner = owner
        self._terms = terms
        self._kind = kind
        self._tables = TABLES.get(kind, (ENTRIES,))

    async def newest(self, before: int | None, limit: int) -> list[Match]:
        """The newest matches below a number."""
        high = search.NO_END if before is None else before
        low = await self._first_low(high, limit)
        found = await self._within(WALK, WITHIN, Range(low, high), limit)
        for part in search.older(low):
            if len(found) >= limit:
                break
            found += await self._within(ASK, MATCHING, part, limit - len(found))
        return found

    async def within(self, stretch: Stretch, limit: int, *, backwards: bool) -> list[Spot]:
        """The first matches of a stretch, or its last."""
        statement = STRETCH.format(order="DESC" if backwards else "ASC")
        found: list[Spot] = []
        while True:
            asked = limit - len(found)
            params = {
                "owner": self._owner, "log": stretch.log, "first": stretch.first, "last": stretch.last, "role": self._kind,
                "wordless": not self._terms, "query": search.query(self._owner, self._terms), "limit": asked,
            }  # fmt: skip
            rows = await self._statements.rows(statement, params, plan_anew=True)
            for seq, log, entry_id, loose in rows:
                if await self._confirmed((seq, log, seq, loose)):
                    found.append(Spot(seq, entry_id))
            if len(rows) < asked or len(found) == limit:
                return found
            seq = rows[-1][0]
            stretch = stretch._replace(last=seq - 1) if backwards else stretch._replace(first=seq + 1)

    async def _within(self, statement: str, condition: str, part: Range, limit: int) -> list[Match]:
        """The newest matches of a range."""
        statement = statement.format(documents=self._documents(condition))
        found: list[Match] = []
        while True:
            asked = limit - len(found)
            rows = await self._statements.rows(statement, self._params(part, asked), plan_anew=True)
            found += [_match(row) for row in rows if await self._confirmed(row)]
            if len(rows) < asked or len(found) == limit:
                return found
            part = part._replace(high=rows[-1][0])

    def _params(self, part: Range, limit: int) -> dict[str, Any]:
        query = search.query(self._owner, self._terms, self._kind, part.blocks)
        return {"owner": self._owner, "low": part.low, "high": part.high, "query": query, "limit": limit}

    async def _first_low(self, high: int, limit: int) -> int:
        """The number down to which it is worth walking."""
        count = min(max(8 * limit, FEWEST_WALKED), MOST_WALKED)
        statement = FIRST_LOW.format(documents=self._documents(BELOW))
        found = await self._statements.rows(
            statement, {"owner": self._owner, "high": high, "count": count}, plan_anew=True
        )
        return int(found[0][0] or 0)

    def _documents(self, condition: str) -> str:
        return " UNION ALL ".join(f"({table}{condition})" for table in self._tables)

    async def _confirmed(self, row: Row) -> bool:
        """Whether the document really has the phrases: one that has lost positions must be looked at itself."""
        _, num, seq, loose = row
        if not loose or not search.needs_positions(self._terms):
            return True
        if seq is None:
            text = await self._value(TITLE_TEXT, (self._owner, num))
        else:
            text = search_text(decode_entry(await self._value(ENTRY_TEXT, (self._owner, num, seq))))
        return words.matches(self._terms, words.tokens(words.searchable(text)))

    async def _value(self, statement: str, params: tuple[Any, ...]) -> Any:
        return (await self._statements.rows(statement, params))[0][0]


def _match(row: Row) -> Match:
    number, num, seq, _ = row
    return Match(number, num, None if seq is None else EntryPlace(num, seq))
