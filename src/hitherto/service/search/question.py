"""A question as it is looked for: groups of words, each with its forms, and the time that it is about. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hitherto.service.search.forms import forms, languages
from hitherto.summaries.sentences import STOPWORDS
from hitherto.values import words
from hitherto.values.query.language import Query, parse_query
from hitherto.values.query.moments import Period
from hitherto.values.words import Term

GROUPS = 12
"""So many words of a question are looked for."""
PART = 0.5
"""What a part of an identifier is worth, beside the whole."""

ASKING = frozenset(
    [
        "what",
        "when",
        "where",
        "who",
        "whom",
        "whose",
        "which",
        "why",
        "how",
        "did",
        "does",
        "do",
        "was",
        "were",
        "is",
        "are",
        "has",
        "have",
        "had",
        "can",
        "could",
        "would",
        "should",
        "will",
        "the",
        "a",
        "an",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "from",
        "by",
        "with",
        "about",
        "into",
        "and",
        "or",
        "but",
        "not",
        "that",
        "this",
        "these",
        "those",
        "it",
        "its",
        "he",
        "she",
        "they",
        "them",
        "his",
        "her",
        "their",
        "you",
        "your",
        "i",
        "me",
        "my",
        "we",
        "our",
        "us",
        "as",
        "be",
        "been",
        "being",
        "if",
        "then",
        "than",
        "there",
        "here",
        "any",
        "some",
        "all",
        "most",
        "more",
        "much",
        "many",
        "tell",
        "show",
        "find",
        "know",
        "think",
        "say",
        "said",
        "please",
        "kind",
        "type",
        "time",
        "during",
        "ever",
        "s",
        "t",
        "d",
        "m",
        "re",
        "ve",
        "ll",
    ]
)
"""Words of questions that answers need not have."""


class Group(NamedTuple):
    """A word in all its forms, any of which will do; `weight` is what it counts beside others that are as rare."""

    terms: tuple[Term, ...]
    weight: float = 1.0


class Question(NamedTuple):
    """What to look for, and when it was said, if the question says so."""

    groups: tuple[Group, ...]
    when: Period | None = None


def asked(query: Query) -> Question:
    """The question that a query means. If it has no words but those of questions, these are looked for."""
    telling = [term for term in query.terms if not _says_nothing(term)] or list(query.terms)
    tongues = languages(token for term in query.terms for token in term.tokens)
    groups = dict.fromkeys(group for term in telling for group in _groups(term, tongues))
    parts = (
        Group(tuple(map(_word, forms(part, tongues))), PART)
        for part in words.camel_parts(query.plain)
        if part not in ASKING
    )
    return Question((*groups, *parts)[:GROUPS], query.when)


def looked_for(text: str, order: str) -> tuple[Term, ...]:
    """The words of a search, as they are marked in what it finds."""
    query = parse_query(text, 0)
    if order != "best":
        return query.terms
    return tuple(term for group in asked(query).groups for term in group.terms)


def _says_nothing(term: Term) -> bool:
    token = term.tokens[0]
    return (
        len(term.tokens) == 1
        and not term.prefix
        and (token in ASKING or token in STOPWORDS or (len(token) == 1 and token.isascii()))
    )


def _groups(term: Term, tongues: tuple[str, ...]) -> Iterator[Group]:
    """A phrase, or a name with signs in it, is looked for as it is, and its words by themselves."""
    if len(term.tokens) == 2 and term.tokens[1] == "s":
        term = _word(term.tokens[0])  # somebody's
    if term.prefix or len(term.tokens) == 1:
        spellings = (term,) if term.prefix else tuple(map(_word, forms(term.tokens[0], tongues)))
        yield Group(spellings)
        return
    yield Group((term,))
    for token in term.tokens:
        if not _says_nothing(_word(token)):
            yield Group(tuple(map(_word, forms(token, tongues))), PART)


def _word(token: str) -> Term:
    return Term((token,))
