"""What a reset remembers of chats, and what it no longer shows once it was corrected."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.stores import connector
from tests.summaries.planted.chats import FIRST, SECOND, THIRD, Chats, Corrected, Told
from tests.support.conversations import say
from tests.support.homes import Clock


class Measured(NamedTuple):
    """The shares of what was asked for and found, and of what was corrected and is still shown as it was."""

    recall: float
    stale: float


def spoken(chats: Chats, dice: random.Random) -> Iterator[str]:
    """Everything in some order, corrections after what they correct, with small talk between."""
    whole = [[each.text] for each in chats.told] + [[each.before, each.after] for each in chats.corrected]
    placed = [
        (at, text)
        for texts in whole
        for at, text in zip(sorted(dice.random() for _ in texts), texts, strict=True)
    ]
    for _, text in sorted(placed):
        yield text
        yield from dice.choices(chats.talk, k=dice.randint(1, 3))


async def measured(chats: Chats, seed: int, clock: Clock) -> Measured:
    async with connector("memory:")("memory:", clock) as store:
        sessions = Sessions(store, now=clock)
        session = await sessions.create(LOCAL)
        for text in spoken(chats, random.Random(seed)):
            clock.advance()
            await sessions.append(LOCAL, session.id, [say(text)])
        await sessions.reset(LOCAL, session.id)
        asked: list[Told | Corrected] = [*chats.told, *chats.corrected]
        found = [await sessions.memory.search(LOCAL, each.query, limit=5) for each in asked]
        hit = sum(
            any(each.value in fact.text for fact in facts) for each, facts in zip(asked, found, strict=True)
        )
        current = {fact.text for fact in await sessions.memory.search(LOCAL, limit=200)}
        return Measured(
            hit / len(asked), sum(each.before in current for each in chats.corrected) / len(chats.corrected)
        )


@pytest.mark.parametrize(
    ("chats", "recall", "stale"), [(FIRST, 1.0, 0.0), (SECOND, 0.9, 0.0), (THIRD, 0.85, 0.2)]
)
async def test_what_was_told_is_remembered_and_what_was_corrected_is_not_shown(
    chats: Chats, recall: float, stale: float, clock: Clock
) -> None:
    for seed in range(3):
        got = await measured(chats, seed, clock)
        assert got.recall >= recall
        assert got.stale <= stale
