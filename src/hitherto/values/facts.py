"""What facts are found by: their words, what they say and what they are about. Pure.

Stores keep this beside each fact, so that nobody reads all that an owner remembers to find some of it.
"""

from __future__ import annotations

import hashlib

from hitherto.model import Fact, Value
from hitherto.values.words import searchable, tokens

STEM = 4
"""Words that begin alike in at least so many characters may be forms of one word."""


class FactQuery(Value, frozen=True):
    """Which facts: those that hold, of an agent, a person (or about `nobody`) or a session, that have this mark (see `marks_of`).

    Newest first (by `at`, then `id`, falling); `limit` of them after the first `offset`.
    """

    agent_id: str | None = None
    identity_id: str | None = None
    session: str | None = None
    mark: str | None = None
    nobody: bool = False
    limit: int = 50
    offset: int = 0


class RivalQuery(Value, frozen=True):
    """Facts of an agent about a person that say one of these things (see `text_digest`), or are about one of these subjects."""

    agent_id: str | None
    identity_id: str | None
    said: tuple[str, ...]
    subjects: tuple[str, ...]


def words_of(fact: Fact) -> list[str]:
    """The words of a fact, each once."""
    return list(dict.fromkeys(tokens(searchable(f"{fact.text}\n{fact.kind}"))))


def marks_of(fact: Fact) -> list[str]:
    """What a fact is found by: its words, and how they begin, which all forms of a word have in common."""
    words = words_of(fact)
    return list(dict.fromkeys((*words, *(stem_mark(word) for word in words if len(word) >= STEM))))


def stem_mark(word: str) -> str:
    """The mark that all forms of a word have; of a short one the word itself."""
    return word if len(word) < STEM else f"~{word[:STEM]}"


def normal_text(text: str) -> str:
    """The text of a fact as it is compared."""
    return " ".join(text.casefold().split()).rstrip(".!…")


def text_digest(text: str) -> str:
    """A short name for what a text says."""
    return hashlib.blake2b(normal_text(text).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
