"""What facts are found by: their words, what they say and what they are about. Pure.

Stores keep this beside each fact, so that nobody reads all that an owner remembers to find some of it.
"""

from __future__ import annotations

import hashlib

from recollect.model import Fact, Value
from recollect.words import searchable, tokens

STEM = 4
"""Words that begin alike in at least so many characters may be forms of one word."""


class Wanted(Value, frozen=True):
    """Which facts: those that hold, of an agent, a person or a session, that have any of these beginnings of words.

    Newest first (by `at`, then `id`, falling); `limit` of them after the first `offset`.
    """

    agent_id: str | None = None
    identity_id: str | None = None
    session: str | None = None
    words: tuple[str, ...] | None = None
    limit: int = 50
    offset: int = 0


class Rivals(Value, frozen=True):
    """Facts of an agent about a person that say one of these things (see `said`), or are about one of these subjects."""

    agent_id: str | None
    identity_id: str | None
    said: tuple[str, ...]
    subjects: tuple[str, ...]


def words_of(fact: Fact) -> str:
    """All words of a fact, each between two spaces."""
    return f" {' '.join(dict.fromkeys(tokens(searchable(f'{fact.text} {fact.kind}'))))} "


def beginning(word: str) -> str:
    """What stands in `words_of` a fact if it has this word, or one that may be a form of it."""
    return f" {word} " if len(word) < STEM else f" {word[:STEM]}"


def spoken(text: str) -> str:
    """The text of a fact as it is compared."""
    return " ".join(text.casefold().split()).rstrip(".!…")


def said(text: str) -> str:
    """A short name for what a text says."""
    return hashlib.blake2b(spoken(text).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
