"""Search: the newest documents that match, at a cost that follows from how many are asked for.

Documents are in the order in which they were said. Those of a database of an earlier schema are in the order of their
numbers until all of them have been given their moment, which is done in batches while servers run.

The newest documents are looked at one by one: that finds common words at once. Below them the index is asked for
ranges of documents, each larger than the one before: so neither a rare word nor a common one makes it collect more
than a few times what it needs.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hitherto.errors import InvalidCursor
from hitherto.model import decode_entry, search_text
from hitherto.ports import Match, SearchKey, Spot
from hitherto.stores.postgres import search
from hitherto.stores.postgres.rows import Row
from hitherto.stores.postgres.transactions import Statements
from hitherto.values import words
from hitherto.values.query.moments import Period
from hitherto.values.spans import Stretch
from hitherto.values.words import LAST_POSITION, POSITIONS, Term

BLOCKS = {"a": 11, "b": 14, "c": 17, "d": 20}
TIME_BLOCKS = {"e": 24, "f": 27, "g": 30, "h": 33}
"""The sizes of blocks, as powers of two; eight make one of the next. As in the functions `document_words` and `moment_marks`."""


class Order(NamedTuple):
    """An order of documents: its name in keys, its column, and its blocks."""

    name: int
    column: str
    blocks: Mapping[str, int]


BY_NUMBER = Order(0, "number", BLOCKS)
BY_TIME = Order(1, "said", TIME_BLOCKS)

LOOSE = "' loose'"
"""The mark of a document that has lost positions: a phrase in it must be looked for in its text."""
IS_LOOSE = f"words @@ $${LOOSE}$$::tsquery"

NO_END = (1 << 63) - 1


class Point(NamedTuple):
    """A place in an order: the value of its column, and the number of the document there."""

    at: int
    number: int


class Range(NamedTuple):
    """Values of the column from `low` up to, not including, `high`; `blocks` are those that hold their documents."""

    low: int
    high: int
    blocks: Sequence[str] = ()


class Part(NamedTuple):
    """Documents from `low`, included, up to `high`, not included; `blocks` are those that hold them."""

    low: Point
    high: Point
    blocks: Sequence[str] = ()


@lru_cache(maxsize=1_024)
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


def moment_marks(owner: str, said: int) -> str:
    """The marks of the blocks of time that a document stands in, as the function of this name makes them, as text likewise."""
    own = mark(owner)
    return " ".join([f"'{own}{block}{said >> bits}'" for block, bits in TIME_BLOCKS.items()])


def _loses_positions(tokens: Sequence[str]) -> bool:
    if len(tokens) <= POSITIONS:
        return False
    return len(tokens) > LAST_POSITION or max(Counter(tokens).values()) > POSITIONS


def query(
    owner: str,
    terms: Iterable[Term],
    kind: str | None = None,
    blocks: Sequence[str] = (),
    *,
    every: bool = True,
    without: Iterable[Term] = (),
) -> str:
    """The owner's documents of this kind in these blocks (none: all) with all terms, or any, and with none of `without`, as the
    text of a `tsquery`.

    It may find more than it should among documents that have the mark `LOOSE`.
    """
    own = mark(owner)
    parts = [f"'{own}'" if kind is None else f"'{own}/{kind}'"]
    if blocks:
        parts.append("(" + " | ".join(f"'{own}{block}'" for block in blocks) + ")")
    parts += [f"!({words.ts_query([term])})" for term in without]
    if every:
        return " & ".join([*parts, *map(_term, terms)])
    return " & ".join([*parts, f"({' | '.join(map(_term, terms))})"])


def _term(term: Term) -> str:
    exact = words.ts_query([term])
    if len(term.tokens) == 1:
        return exact
    *firsts, last = term.tokens
    singles = dict.fromkeys((*(Term((token,)) for token in firsts), Term((last,), term.prefix)))
    return f"({exact} | ({LOOSE} & {words.ts_query(singles)}))"


def needs_positions(terms: Iterable[Term]) -> bool:
    """Whether a document that has the mark `LOOSE` must be looked at itself."""
    return any(len(term.tokens) > 1 for term in terms)


def older(low: int, blocks: Mapping[str, int] = BLOCKS) -> Iterator[Range]:
    """Ranges, each larger than the one before, that together hold all documents below a value.

    So a search for a common word ends early, and one for a rare word takes a few steps.
    """
    for size, bits in blocks.items():
        if low <= 0:
            return
        top = (low - 1) >> bits
        # Down to where a larger block ends, but not for only a few: each step costs a question.
        bottom = max(0, (top - 4) // 8 * 8)
        yield Range(bottom << bits, low, [f"{size}{block}" for block in range(bottom, top + 1)])
        low = bottom << bits
    if low > 0:
        yield Range(0, low)


def below(point: Point, order: Order) -> Iterator[Part]:
    """The same for all documents below a point."""
    for part in older(point.at + 1, order.blocks):
        yield Part(Point(part.low, 0), min(Point(part.high, 0), point), part.blocks)


FIRST = Point(0, 0)

# For each kind of document the columns that a match needs: moment, number, log or session, place in the log, words.
ENTRIES = "SELECT {at} AS at, number, log AS num, seq, words FROM entry"
TITLES = "SELECT {at} AS at, number, num, NULL::bigint AS seq, words FROM title"
TABLES = {"title": (TITLES,), None: (ENTRIES, TITLES)}

# The first bound of each pair is for the index, which knows little of pairs.
_BELOW = "owner = %(owner)s AND number IS NOT NULL AND {at} <= %(high)s AND ({at}, number) < (%(high)s, %(high_tie)s)"
_FROM = "{at} >= %(low)s AND ({at}, number) >= (%(low)s, %(low_tie)s)"
WITHIN = f" WHERE {_BELOW} AND {_FROM} ORDER BY {{at}} DESC, number DESC OFFSET 0"
BELOW = f" WHERE {_BELOW} ORDER BY {{at}} DESC, number DESC OFFSET %(count)s LIMIT 1"
MATCHING = " WHERE owner = %(owner)s AND words @@ %(query)s::tsquery"

FIRST_LOW = """
SELECT at, number FROM ({documents}) d ORDER BY at DESC, number DESC LIMIT 1
"""
# The fence (OFFSET 0, above) makes PostgreSQL walk the documents in order, and not ask the index of words.
WALK = f"""
SELECT at, number, num, seq, {search.IS_LOOSE} FROM ({{documents}}) d
WHERE words @@ %(query)s::tsquery ORDER BY at DESC, number DESC LIMIT %(limit)s
"""
# Without the fence of MATERIALIZED it would walk all documents backwards for a rare word.
ASK = f"""
WITH d AS MATERIALIZED ({{documents}})
SELECT at, number, num, seq, {search.IS_LOOSE} FROM d
WHERE (at, number) < (%(high)s, %(high_tie)s) AND (at, number) >= (%(low)s, %(low_tie)s)
ORDER BY at DESC, number DESC LIMIT %(limit)s
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

IS_IN_ORDER = "SELECT 1 FROM store_meta WHERE name = 'order'"
# Whoever else is at it, or writes one of them, is passed over.
ORDER_ENTRIES = """
WITH next AS (
    SELECT owner, log, seq, moment_of(payload) AS said FROM entry WHERE said IS NULL AND number IS NOT NULL
    ORDER BY owner, log, seq LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), done AS (
    UPDATE entry e SET said = s.said, words = e.words || moment_marks(s.said, owner_mark(e.words))
    FROM next s WHERE e.owner = s.owner AND e.log = s.log AND e.seq = s.seq RETURNING 1
) SELECT count(*) FROM done
"""
# The trigger does it.
ORDER_TITLES = """
WITH next AS (
    SELECT owner, num FROM title WHERE said IS NULL LIMIT %(batch)s FOR UPDATE SKIP LOCKED
), done AS (
    UPDATE title t SET said = NULL FROM next s WHERE t.owner = s.owner AND t.num = s.num RETURNING 1
) SELECT count(*) FROM done
"""
END_ORDERING = """
INSERT INTO store_meta (name, value)
SELECT 'order', 'time' WHERE NOT EXISTS (SELECT FROM entry WHERE said IS NULL AND number IS NOT NULL)
    AND NOT EXISTS (SELECT FROM title WHERE said IS NULL)
ON CONFLICT DO NOTHING
"""
# Whoever searches meanwhile need not wait until millions are counted.
UNORDERED = """
SELECT (SELECT count(*) FROM (SELECT FROM entry WHERE said IS NULL AND number IS NOT NULL LIMIT 100000) e)
    + (SELECT count(*) FROM (SELECT FROM title WHERE said IS NULL LIMIT 100000) t)
"""
ORDERED_AT_ONCE = 500


async def is_in_order(statements: Statements) -> bool:
    """Whether all documents have their moment."""
    return await statements.row(IS_IN_ORDER) is not None


async def put_in_order(statements: Statements) -> int:
    """Give a batch of documents their moment; returns how many, 0 if there is none to be had just now."""
    batch = {"batch": ORDERED_AT_ONCE}
    counts = [(await statements.rows(each, batch))[0][0] for each in (ORDER_ENTRIES, ORDER_TITLES)]
    if not any(counts):
        await statements.queue(END_ORDERING)
    return int(sum(counts))


async def unordered(statements: Statements) -> int:
    """How many documents have no moment yet; of messages and of titles at most 100,000 are counted."""
    return int((await statements.rows(UNORDERED))[0][0])


FEWEST_WALKED = 400
MOST_WALKED = 4_000


class Search:
    """One search of one owner's documents."""

    def __init__(
        self,
        statements: Statements,
        owner: str,
        terms: Sequence[Term],
        kind: str | None,
        order: Order = BY_TIME,
        *,
        every: bool = True,
        without: Sequence[Term] = (),
    ) -> None:
        self._statements = statements
        self._owner = owner
        self._terms = terms
        self._kind = kind
        self._order = order
        self._every = every
        self._without = without
        self._tables = TABLES.get(kind, (ENTRIES,))

    async def newest(self, before: SearchKey | None, limit: int, during: Period | None = None) -> list[Match]:
        """The newest matches below a key, of some time if one is given. Raises `InvalidCursor` if that key is of another order."""
        if before is not None and before.order != self._order.name:
            raise InvalidCursor(
                "the order of search has changed since this cursor was given; start again without it"
            )
        high = Point(NO_END, NO_END) if before is None else Point(before.at, before.tie)
        end = FIRST
        if during is not None and self._order == BY_TIME:
            after, until = map(words.said_at, during)
            # One more: what was said after the end of time is kept as if it were said at it.
            high, end = min(high, Point(until + 1, 0)), Point(after, 0)
        low = max(await self._first_low(high, limit), end)
        found = await self._within(WALK, WITHIN, Part(low, high), limit)
        for part in search.below(low, self._order):
            if len(found) >= limit or part.high <= end:
                break
            found += await self._within(
                ASK, MATCHING, part._replace(low=max(part.low, end)), limit - len(found)
            )
        return found

    async def within(self, stretch: Stretch, limit: int, *, backwards: bool) -> list[Spot]:
        """The first matches of a stretch, or its last."""
        statement = STRETCH.format(order="DESC" if backwards else "ASC")
        found: list[Spot] = []
        while True:
            asked = limit - len(found)
            params = {
                "owner": self._owner, "log": stretch.log, "first": stretch.first, "last": stretch.last, "role": self._kind,
                "wordless": not self._terms and not self._without, "limit": asked, "query": search.query(self._owner, self._terms, without=self._without),
            }  # fmt: skip
            rows = await self._statements.rows(statement, params, plan_anew=True)
            for seq, log, entry_id, loose in rows:
                if await self._confirmed(log, seq, loose):
                    found.append(Spot(seq, entry_id))
            if len(rows) < asked or len(found) == limit:
                return found
            seq = rows[-1][0]
            stretch = stretch._replace(last=seq - 1) if backwards else stretch._replace(first=seq + 1)

    async def _within(self, statement: str, condition: str, part: Part, limit: int) -> list[Match]:
        """The newest matches of a range."""
        statement = statement.format(documents=self._documents(condition))
        found: list[Match] = []
        while True:
            asked = limit - len(found)
            rows = await self._statements.rows(statement, self._params(part, asked), plan_anew=True)
            found += [self._match(row) for row in rows if await self._confirmed(*row[2:])]
            if len(rows) < asked or len(found) == limit:
                return found
            part = part._replace(high=Point(*rows[-1][:2]))

    def _params(self, part: Part, limit: int) -> dict[str, Any]:
        query = search.query(
            self._owner, self._terms, self._kind, part.blocks, every=self._every, without=self._without
        )
        low, high = part.low, part.high
        bounds = {"low": low.at, "low_tie": low.number, "high": high.at, "high_tie": high.number}
        return {"owner": self._owner, "query": query, "limit": limit, **bounds}

    async def _first_low(self, high: Point, limit: int) -> Point:
        """The point down to which it is worth walking."""
        count = min(max(8 * limit, FEWEST_WALKED), MOST_WALKED)
        statement = FIRST_LOW.format(documents=self._documents(BELOW))
        bounds = {"owner": self._owner, "high": high.at, "high_tie": high.number, "count": count}
        found = await self._statements.rows(statement, bounds, plan_anew=True)
        return Point(*found[0]) if found else FIRST

    def _documents(self, condition: str) -> str:
        parts = (f"({table}{condition})" for table in self._tables)
        return " UNION ALL ".join(parts).format(at=self._order.column)

    def _match(self, row: Row) -> Match:
        at, number, num, seq, _ = row
        return Match(at, number, self._order.name, num, seq or 0)

    async def _confirmed(self, num: int, seq: int | None, loose: bool) -> bool:
        """Whether the document really has the phrases: one that has lost positions must be looked at itself."""
        if not loose or not search.needs_positions((*self._terms, *self._without)):
            return True
        if seq is None:
            text = await self._value(TITLE_TEXT, (self._owner, num))
        else:
            text = search_text(decode_entry(await self._value(ENTRY_TEXT, (self._owner, num, seq))))
        said = words.tokens(words.searchable(text))
        if any(words.matches([term], said) for term in self._without):
            return False
        return not self._terms or (all if self._every else any)(
            words.matches([term], said) for term in self._terms
        )

    async def _value(self, statement: str, params: tuple[Any, ...]) -> Any:
        return (await self._statements.rows(statement, params))[0][0]
