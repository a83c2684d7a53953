"""A question as it is looked for: groups of words, each with its forms, and the time that it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hitherto.service.search.forms import forms, languages
from hitherto.summaries.sentences import STOPWORDS
from hitherto.values import words
from hitherto.values.words import Query, Term

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


class Span(NamedTuple):
    """From `after`, included, to `before`, not included, in ms since 1970."""

    after: int
    before: int


class Question(NamedTuple):
    """What to look for, and when it was said, if the question says so."""

    groups: tuple[Group, ...]
    when: Span | None = None


def asked(text: str, query: Query, now: int) -> Question:
    """The question that a text means. If it has no words but those of questions, these are looked for."""
    when, rest = _time(text, now)
    spoken = set(words.parse_query(rest).terms) if when else set(query.terms)
    terms = [term for term in query.terms if term in spoken]
    telling = [term for term in terms if not _says_nothing(term)] or terms
    tongues = languages(token for term in query.terms for token in term.tokens)
    groups = dict.fromkeys(group for term in telling for group in _groups(term, tongues))
    parts = (
        Group(tuple(map(_word, forms(part, tongues))), PART)
        for part in words.camel_parts(text)
        if part not in ASKING
    )
    return Question((*groups, *parts)[:GROUPS], when)


def looked_for(text: str, order: str) -> tuple[Term, ...]:
    """The words of a search, as they are marked in what it finds."""
    query = words.parse_query(text)
    if order != "best":
        return query.terms
    return tuple(term for group in asked(text, query, 0).groups for term in group.terms)


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


MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RELATIVE = re.compile(r"\b(today|yesterday|(?:last|this|past) (?:week|month|year))\b", re.IGNORECASE)
_MONTH = re.compile(rf"\b(?:in|during|since|of) ({'|'.join(MONTHS)})(?: (\d{{4}}))?\b", re.IGNORECASE)


def _time(text: str, now: int) -> tuple[Span | None, str]:
    """The time that a text is about, and the text without it."""
    today = (_EPOCH + timedelta(milliseconds=now)).replace(hour=0, minute=0, second=0, microsecond=0)
    if found := _RELATIVE.search(text):
        span = _relative(found[1].lower(), today)
    elif found := _MONTH.search(text):
        span = _month(MONTHS.index(found[1].lower()) + 1, found[2], today)
    else:
        return None, text
    return Span(*map(_ms, span)), text[: found.start()] + " " + text[found.end() :]


def _relative(name: str, today: datetime) -> tuple[datetime, datetime]:
    monday, first = today - today.weekday() * _DAY, today.replace(day=1)
    before = (first - _DAY).replace(day=1)
    year = today.replace(month=1, day=1)
    return {
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + 7 * _DAY),
        "last week": (monday - 7 * _DAY, monday),
        "past week": (today - 7 * _DAY, today + _DAY),
        "this month": (first, today + _DAY),
        "last month": (before, first),
        "past month": (today - 30 * _DAY, today + _DAY),
        "this year": (year, today + _DAY),
        "last year": (year.replace(year=year.year - 1), year),
        "past year": (today - 365 * _DAY, today + _DAY),
    }[name]


def _month(month: int, year: str | None, today: datetime) -> tuple[datetime, datetime]:
    """Without a year, the last such month that has begun."""
    number = max(int(year), 1970) if year else today.year - (month > today.month)
    begin = datetime(number, month, 1, tzinfo=UTC)
    return begin, (begin + 31 * _DAY).replace(day=1)


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
