"""Best match: the messages that have most of a question's words, rare ones above all, and the sessions they are in.

A store gives, for each word, the owner's newest documents that have it in any form; how many there are, up to a bound, says
how rare it is. So what a search costs is bounded, and nothing of it follows from what others have said. Documents are
weighed by the words that they and their neighbours in the conversation have; only the first of them are read.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.limits import MORE_CAP
from hitherto.model import Entry, Hit, Session, search_text
from hitherto.ports import Match, SearchKey
from hitherto.service.search.question import Group, asked
from hitherto.service.search.standing import Standing
from hitherto.service.search.tally import Tally
from hitherto.values import words
from hitherto.values.filters import title_text
from hitherto.values.query.language import Query
from hitherto.values.words import Term

CANDIDATES = 1_000
"""So many documents are looked at for each word, the newest."""
REACH = 5
"""If only a part of the sessions is asked for, so many times that are looked at for those that stand in it."""
CONSIDERED = 400
READ = 80
READ_CHARS = 8_000
"""Of so many documents the neighbours are looked at, so many are read, or as many as fill the page, and so far."""
OF_ONE_LOG = 6
"""So many of one log's documents are considered: a session that says a word again and again leaves room for others."""
FEWEST = 1_000
"""A word counts as rare by how many documents there seem to be, at least so many."""

NEIGHBOURS = {1: 0.45, 2: 0.25, 3: 0.15}
"""What a word counts that a message lacks, but one so many places away has."""
ELSEWHERE = 0.08
"""What a word counts that only the rest of the session has."""
ROLE_WORTH = {"tool": 0.6, "system": 0.7}
FURTHER = (1.0, 0.3, 0.15, 0.1)
"""What the best messages of a session count towards it."""
TITLE_WORTH = 0.35
SATURATION, LENGTH = 1.2, 0.4
"""As in BM25: how soon a word that is said again counts for nothing, and how much a long message is held against it."""
SPOKEN_BY = 2.0
"""What it counts that somebody said it whom the question names."""
SIDE_BY_SIDE = 0.25
"""What two words count more that stand side by side as in the question."""

SEQ_BITS = 40
"""A log, and in so many bits a place in it, are one number here. Titles stand before the first entry of their session's log."""


@dataclass(slots=True)
class _Candidate:
    """A document, which of the words it has, as bits, and what it counts by them."""

    match: Match
    has: int
    worth: float


class _Gathered(NamedTuple):
    """How many documents were found that have a word, and when the newest and the oldest of them were said."""

    size: int
    newest: int
    oldest: int

    @classmethod
    def of(cls, matches: Sequence[Match]) -> _Gathered:
        """What these matches, newest first, tell."""
        return cls(len(matches), matches[0].at, matches[-1].at) if matches else cls(0, 0, 0)


class _Read(NamedTuple):
    """A document that was read, with what it counts."""

    score: float
    at: int
    candidate: _Candidate
    entry: Entry | None


@dataclass(slots=True)
class _Ranked:
    """A session with the documents in it that were read."""

    session: Session
    branch: str | None = None
    read: list[_Read] = field(default_factory=list)
    title: float = 0.0

    def score(self) -> float:
        """What its best messages count, and its title."""
        best = heapq.nlargest(len(FURTHER), (each.score for each in self.read))
        return sum(map(float.__mul__, best, FURTHER)) + TITLE_WORTH * self.title

    def best(self) -> _Read:
        """The document to show: a message, if there is one."""
        return max(self.read, key=lambda each: (each.entry is not None, each.score, each.at))


class BestMatch:
    """One answer to one question, inside one transaction."""

    def __init__(self, standing: Standing, query: Query) -> None:
        self._standing = standing
        self._query = query
        self._question = asked(query)
        self._found: dict[int, Match] = {}
        self._has: dict[int, int] = {}
        self._is_cut = False
        self._worths: list[float] = []
        self._masks: dict[int, float] = {}
        self._spelled: defaultdict[str, list[int]] = defaultdict(list)
        self._unspelled: list[tuple[int, Term]] = []
        for number, group in enumerate(self._question.groups):
            for term in group.terms:
                if words.is_word(term):
                    self._spelled[term.tokens[0]].append(number)
                else:
                    self._unspelled.append((number, term))
        self._in_log: defaultdict[int, int] = defaultdict(int)

    async def hits(self, limit: int) -> list[Hit]:
        """The sessions that answer best, each with its best message."""
        await self._gather()
        ranked: dict[str, _Ranked] = {}
        read = 0
        for candidate in self._first():
            read += await self._read(candidate, ranked)
            if (read >= READ and len(ranked) >= limit) or self._standing.is_spent:
                break
        when = self._question.when

        def order(each: _Ranked) -> tuple[bool, float, int]:
            at = each.best().at
            return when is not None and when.after <= at < when.before, each.score(), at

        return [self._hit(each) for each in heapq.nlargest(limit, ranked.values(), key=order)]

    async def count(self, tally: Tally) -> None:
        """Count the documents that have any of the words."""
        await self._gather()
        await tally.take(sorted(self._found.values(), key=lambda match: match.key, reverse=True))
        tally.more |= self._is_cut

    async def _gather(self) -> None:
        """Find the documents that have any of the words, and how rare each is."""
        gathered: list[_Gathered] = []
        has = self._has
        for number, group in enumerate(self._question.groups):
            matches = await self._matches(group)
            gathered.append(_Gathered.of(matches))
            bit = 1 << number
            places = [match.num << SEQ_BITS | match.seq for match in matches]
            has.update([(place, has.get(place, 0) | bit) for place in places])
            self._found.update(zip(places, matches, strict=True))
        self._is_cut |= any(each.size == CANDIDATES for each in gathered)
        counts = _frequencies(gathered)
        size = max(FEWEST, 10 * max(counts, default=0))
        self._worths = [
            group.weight * math.log(1 + size / count) if count else 0.0
            for group, count in zip(self._question.groups, counts, strict=True)
        ]
        for place, mask in has.items():
            self._in_log[place >> SEQ_BITS] |= mask

    async def _matches(self, group: Group) -> list[Match]:
        """The newest documents that have a word. Of a part of the sessions: those that stand there, which are looked for further
        down."""
        standing, found = self._standing, list[Match]()
        before: SearchKey | None = None
        is_narrow = standing.is_narrow
        for _ in range(REACH if is_narrow else 1):
            matches = await standing.tx.matches(
                standing.owner,
                group.terms,
                self._query.role,
                before,
                CANDIDATES,
                every=False,
                without=self._query.without,
                during=self._query.during(named=False),
            )
            found += [each for each in matches if await standing.standing_in(each)] if is_narrow else matches
            if len(matches) < CANDIDATES or len(found) >= CANDIDATES:
                return found[:CANDIDATES]
            before = matches[-1].key
        self._is_cut = True
        return found[:CANDIDATES]

    def _first(self) -> list[_Candidate]:
        """The documents to read: by their words, then by those of their neighbours too."""
        considered = [
            _Candidate(self._found[place], mask, self._worth(mask))
            for place, mask in islice(self._spread(), CONSIDERED)
        ]
        for candidate in considered:
            candidate.worth += self._beside(candidate)
        return sorted(considered, key=_by_worth, reverse=True)

    def _spread(self) -> Iterator[tuple[int, int]]:
        """The documents by what their words count, and of each log only the first few. Those that have the same words are newest
        first already, as they were found."""
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for place, mask in self._has.items():
            alike[mask].append(place)
        counts: Counter[int] = Counter()
        for mask in sorted(alike, key=self._worth, reverse=True):
            for place in alike[mask]:
                log = place >> SEQ_BITS
                counts[log] += 1
                if counts[log] <= OF_ONE_LOG:
                    yield place, mask

    def _worth(self, mask: int) -> float:
        known = self._masks.get(mask)
        if known is None:
            known = sum(worth for number, worth in enumerate(self._worths) if mask >> number & 1)
            self._masks[mask] = known
        return known

    def _beside(self, candidate: _Candidate) -> float:
        """What the words count that neighbours have, and the rest of the session."""
        log, seq = candidate.match.num, candidate.match.seq
        seen, gain = candidate.has, 0.0
        for distance, share in NEIGHBOURS.items() if seq else ():
            for place in (seq - distance, seq + distance):
                fresh = self._has.get(log << SEQ_BITS | place, 0) & ~seen if place > 0 else 0
                if fresh:
                    gain += share * self._worth(fresh)
                    seen |= fresh
        return gain + ELSEWHERE * self._worth(self._in_log[log] & ~seen)

    async def _read(self, candidate: _Candidate, ranked: dict[str, _Ranked]) -> bool:
        """Weigh a document in each session that it stands in; False if it is not wanted, or stands in none."""
        standing, match, wanted = self._standing, candidate.match, False
        entry: Entry | None = None
        for session, branch in await standing.standing_in(match):
            if match.place is not None and entry is None:
                entry = await standing.read(match.place)
            at = session.created_at if entry is None else entry.at
            if not await standing.is_wanted(entry, match.place, at):
                continue
            wanted = True
            score = self._score(candidate, title_text(session) if entry is None else search_text(entry))
            known = ranked.setdefault(session.id, _Ranked(session, branch))
            if entry is None:
                known.title = score
            else:
                score = ROLE_WORTH.get(entry.role, 1.0) * score + SPOKEN_BY * self._names_sender(entry)
            known.read.append(_Read(score, at, candidate, entry))
        return wanted

    def _score(self, candidate: _Candidate, text: str) -> float:
        """What the text counts, and what stands around it."""
        said = words.tokens(words.searchable(text[:READ_CHARS]))
        length = 1 - LENGTH + LENGTH * min(len(said), 400) / 60
        found = self._places(said)
        own, before = 0.0, list[int]()
        for number, worth in enumerate(self._worths):
            places = found.get(number, [])
            if places or candidate.has >> number & 1:
                often = max(1, len(places))
                own += worth * often * (1 + SATURATION) / (often + SATURATION * length)
            if any(0 < at - was <= 2 for at in places[:8] for was in before):
                own += SIDE_BY_SIDE * worth
            before = places[:8]
        return own + candidate.worth - self._worth(candidate.has)

    def _names_sender(self, entry: Entry) -> bool:
        """Whether the question names who said this."""
        sender = None if entry.origin is None else entry.origin.sender
        name = "" if sender is None else sender.name or ""
        return any(token in self._spelled for token in words.tokens(words.searchable(name)))

    def _places(self, said: Sequence[str]) -> dict[int, list[int]]:
        """Where the words of each group stand; of a phrase or the beginning of a word, at most the first place."""
        found: dict[int, list[int]] = {}
        for at, token in enumerate(said):
            for number in self._spelled.get(token, ()):
                found.setdefault(number, []).append(at)
        for number, term in self._unspelled:
            if words.matches([term], said):
                found.setdefault(number, []).append(0)
        return found

    def _hit(self, ranked: _Ranked) -> Hit:
        best = ranked.best()
        terms = [term for group in self._question.groups for term in group.terms]
        hit = self._standing.hit(ranked.session, best.entry, best.at, ranked.branch, terms)
        return replace(hit, more=min(len(ranked.read) - 1, MORE_CAP))


def _by_worth(candidate: _Candidate) -> tuple[float, int, int]:
    return candidate.worth, candidate.match.at, candidate.match.tie


def _frequencies(gathered: Sequence[_Gathered]) -> list[float]:
    """How many documents have each word: as many as were found or, of a word that was not looked for to the end, so many more as
    others reach further back."""
    newest = max((each.newest for each in gathered), default=0)
    reach = max((newest - each.oldest for each in gathered if each.size), default=0)
    return [
        each.size * max(1.0, reach / max(1, newest - each.oldest)) if each.size == CANDIDATES else each.size
        for each in gathered
    ]
