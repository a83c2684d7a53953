"""The words that every contender stores: generated, the same in every run, with a natural spread of frequency."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

ROLES = ("user", "assistant")
MESSAGE_CHARACTERS = 1_000

_SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "lan")
_WORDS = 4_096
_POOL = 512


@dataclass(frozen=True, slots=True)
class Message:
    """One message before a contender gives it its own form."""

    role: str
    text: str


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    """Three-syllable words and their cumulative weights: the n-th word is n times rarer than the first."""
    words = [_SYLLABLES[n >> 8 & 15] + _SYLLABLES[n >> 4 & 15] + _SYLLABLES[n & 15] for n in range(_WORDS)]
    return words, list(accumulate(1 / (n + 8) for n in range(_WORDS)))


def prose(rng: random.Random, characters: int) -> str:
    """Return exactly `characters` characters of generated words."""
    words, weights = _vocabulary()
    text = " ".join(rng.choices(words, cum_weights=weights, k=characters // 5))
    while len(text) < characters:
        text += " " + rng.choices(words, cum_weights=weights)[0]
    return text[:characters]


@cache
def _pool(characters: int) -> list[str]:
    rng = random.Random(characters)
    return [prose(rng, characters) for _ in range(_POOL)]


def message(number: int, characters: int = MESSAGE_CHARACTERS) -> Message:
    """Return message `number` of the endless conversation; no two of them are equal."""
    mark = f"{number:09d} "
    return Message(ROLES[number % 2], mark + _pool(characters)[number * 31 % _POOL][len(mark) :])


def messages(first: int, count: int, characters: int = MESSAGE_CHARACTERS) -> Iterator[Message]:
    """Return `count` messages from number `first` on."""
    return (message(number, characters) for number in range(first, first + count))
