"""Which facts a query means, and in which order. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from hitherto.model import Fact
from hitherto.summaries.sentences import STOPWORDS
from hitherto.values.facts import STEM, words_of
from hitherto.values.words import searchable, tokens

ALIKE = 0.6
"""How much of the longer of two such words they must share."""


def rank_facts(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that have any word of the query, best first: rare words count for more, then certainty, then age."""
    words = [set(words_of(fact)) for fact in facts]
    known = Counter(word for each in words for word in each)
    forms = [_forms(word, known) for word in query_words(query)]
    scored = []
    for number, (fact, has) in enumerate(zip(facts, words, strict=True)):
        score = sum(
            max((weight for word, weight in form.items() if word in has), default=0.0) for form in forms
        )
        if score > 0:
            scored.append((-score - 0.1 * (fact.confidence or 0.5), number))
    return [facts[number] for _, number in sorted(scored)]


def query_words(query: str) -> list[str]:
    """The words of a query; those that say nothing count only if there is no other."""
    words = list(dict.fromkeys(tokens(searchable(query))))
    return [word for word in words if word not in STOPWORDS] or words


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
