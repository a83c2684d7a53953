"""Finding facts by words, the best first. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from recollect.model import Fact
from recollect.service.stopwords import STOPWORDS
from recollect.words import searchable, tokens

STEM = 4
"""Words that begin alike in at least so many characters may be forms of one word."""
ALIKE = 0.6
"""How much of the longer of two such words they must share."""


def ranked(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that have any word of the query, best first: rare words count for more, then certainty, then age."""
    asked = [word for word in dict.fromkeys(tokens(searchable(query))) if word not in STOPWORDS]
    words = [set(_words(fact)) for fact in facts]
    known = Counter(word for each in words for word in each)
    forms = [_forms(word, known) for word in asked or dict.fromkeys(tokens(searchable(query)))]
    scored = []
    for number, (fact, has) in enumerate(zip(facts, words, strict=True)):
        score = sum(
            max((weight for word, weight in form.items() if word in has), default=0.0) for form in forms
        )
        if score > 0:
            scored.append((-score - 0.1 * (fact.confidence or 0.5), number))
    return [facts[number] for _, number in sorted(scored)]


def current(facts: Iterable[Fact]) -> list[Fact]:
    """The facts that no other has taken the place of."""
    known = list(facts)
    ids = {fact.id for fact in known}
    return [fact for fact in known if fact.invalidated_by not in ids]


def _words(fact: Fact) -> list[str]:
    return tokens(searchable(f"{fact.text}\n{fact.kind}"))


def _forms(word: str, known: Counter[str]) -> dict[str, float]:
    """The words of the facts that this one may mean, each with what finding it is worth."""
    rarity = math.log(2 + sum(known.values()))
    found = {
        other: share * (rarity - math.log(1 + count))
        for other, count in known.items()
        if (share := _likeness(word, other))
    }
    return {other: max(weight, 0.01) for other, weight in found.items()}


def _likeness(word: str, other: str) -> float:
    """1 for the same word, less for one that begins alike, else 0."""
    if word == other:
        return 1.0
    if word[:STEM] != other[:STEM] or len(word) < STEM or len(other) < STEM:
        return 0.0
    shorter, longer = sorted((word, other), key=len)
    shared = next((at for at, char in enumerate(shorter) if char != longer[at]), len(shorter))
    return 0.7 * shared / len(longer) if shared >= ALIKE * len(longer) else 0.0
