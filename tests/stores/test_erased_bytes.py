"""What was erased or deleted is in no byte of the files of a SQLite store, whatever was done with it before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Fact
from hitherto.service import Sessions
from tests.support.conversations import exported, say


def word(number: int) -> str:
    """A word that nothing else has."""
    return f"planted{number:04d}x"


def bytes_in(folder: Path) -> bytes:
    """All that the files of a folder have."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def history(sessions: Sessions, rng: random.Random, numbers: range) -> dict[str, tuple[str, str]]:
    """Sessions in which each of these words was said once: where, by word. Much else is done with them."""
    places: dict[str, tuple[str, str]] = {}
    for number in numbers:
        if number % 5 == 0:
            current = (await sessions.create(LOCAL, idempotency_key=word(number)[:7] + str(number))).id
        text = f"The word is {word(number)}. " + "and so on " * rng.randrange(200)
        done = await sessions.append(LOCAL, current, say(text), idempotency_key=str(number))
        places[word(number)] = (current, done.entries[0])
        fact = Fact(id=f"f{number}", at=number, text=text[:30], session=current, entries=done.entries)
        await sessions.memory.add(LOCAL, [fact])
        await sessions.transfer.keep_raw(LOCAL, current, str(number), text.encode())
        if rng.random() < 0.3:
            await sessions.fork(LOCAL, current, at=done.entries[0], before=rng.random() < 0.5)
        if rng.random() < 0.3:
            summary = say(f"Summary: {word(number)}", "system")
            await sessions.compact(LOCAL, current, summary, keep=rng.randrange(3))
        if rng.random() < 0.2:
            await sessions.rewind(LOCAL, current, done.entries[0])
    return places


@pytest.mark.parametrize("seed", range(5))
async def test_no_byte_of_what_was_erased_or_deleted_is_left_and_nothing_brings_it_back(
    tmp_path: Path, seed: int
) -> None:
    rng, url = random.Random(seed), f"sqlite:///{tmp_path / 'store.db'}"
    async with hitherto.open(url) as sessions:
        places = await history(sessions, rng, range(30))
        files = [await exported(sessions, LOCAL, each) for each in sorted({at for at, _ in places.values()})]
        gone = rng.sample(sorted(places), 20)
        for each in gone:
            await sessions.erase(LOCAL, *places[each])
        for lines in files:
            await sessions.import_(LOCAL, lines, new_id=True)
        await sessions.admin.check(repair=True)
    kept = bytes_in(tmp_path)
    assert [each for each in gone if each.encode() in kept] == []
    assert [each for each in places if each not in gone and each.encode() not in kept] == []
    async with hitherto.open(url) as sessions:
        for page in [await sessions.find(LOCAL, limit=500)]:
            for session in page.sessions:
                await sessions.delete(LOCAL, session.id)
        await sessions.admin.check(repair=True)
    kept = bytes_in(tmp_path)
    assert [each for each in places if each.encode() in kept] == []
