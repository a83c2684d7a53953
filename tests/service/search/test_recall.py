"""Questions about conversations find the session and the message that answer them, better than plain full-text search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

import hitherto
from hitherto.model import LOCAL, Draft, Origin, Sender, Text
from hitherto.values import words
from tests.service.search.conversations import Asked, World, world
from tests.service.search.friends import friends

FIRST_SESSIONS, FIRST_MESSAGES = 5, 10
QUESTIONS = 340
PLAIN = "CREATE VIRTUAL TABLE plain USING fts5 (text, tokenize = 'porter ascii')"
PLAIN_BEST = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY bm25(plain) LIMIT 200"
PER_SESSION = 1_000
Found = tuple[list[int], list[tuple[int, int]]]


def shares(answers: Sequence[tuple[Asked, Found]]) -> tuple[float, float]:
    """The share of questions whose session is among the first five, and whose message is among the first ten."""
    sessions = sum(asked.session in found[0][:FIRST_SESSIONS] for asked, found in answers)
    messages = sum((asked.session, asked.message) in found[1][:FIRST_MESSAGES] for asked, found in answers)
    return sessions / len(answers), messages / len(answers)


def plain_answers(made: World, questions: Sequence[Asked]) -> list[tuple[Asked, Found]]:
    """What FTS5 finds by itself: any of the words, by their stems, best first."""
    db = apsw.Connection(":memory:")
    db.execute(PLAIN)
    for session, said in enumerate(made.sessions):
        for at, each in enumerate(said):
            row = (session * PER_SESSION + at, words.searchable(each.text))
            db.execute("INSERT INTO plain (rowid, text) VALUES (?, ?)", row)
    answers = []
    for asked in questions:
        tokens = words.tokens(words.searchable(asked.text))
        query = " OR ".join(f'"{token}"' for token in tokens)
        places = [divmod(row[0], PER_SESSION) for row in db.execute(PLAIN_BEST, (query,))]
        answers.append((asked, (list(dict.fromkeys(session for session, _ in places)), places)))
    return answers


async def our_answers(made: World, questions: Sequence[Asked], url: str) -> list[tuple[Asked, Found]]:
    """What a search for the best finds."""
    places: dict[str, tuple[int, int]] = {}
    numbers: dict[str, int] = {}
    answers = []
    async with hitherto.open(url) as sessions:
        for number, said in enumerate(made.sessions):
            session = await sessions.create(LOCAL, title=f"Conversation {number}")
            drafts = [
                Draft(
                    role="user" if at % 2 else "assistant",
                    parts=(Text(text=each.text),),
                    origin=_origin(each.who),
                )
                for at, each in enumerate(said)
            ]
            entries = (await sessions.append(LOCAL, session.id, drafts)).entries
            places.update((entry, (number, at)) for at, entry in enumerate(entries))
            numbers[session.id] = number
        for asked in questions:
            hits = (await sessions.search(LOCAL, asked.text, order="best", limit=FIRST_MESSAGES)).hits
            found = [places[hit.entry] for hit in hits if hit.entry is not None]
            answers.append((asked, ([numbers[hit.session.id] for hit in hits], found)))
    return answers


def _origin(who: str) -> Origin:
    return Origin(sender=Sender(id=who.lower(), name=who))


def named(made: World) -> World:
    """The same with the name of who speaks before each message, as plain text: so that plain search knows it too."""
    sessions = [
        [each._replace(text=f"{each.who}: {each.text}") for each in session] for session in made.sessions
    ]
    return World(sessions, made.questions)


@pytest.mark.parametrize("made", [world(18), named(friends(19))], ids=["events", "friends"])
async def test_questions_find_what_answers_them(tmp_path: Path, made: World) -> None:
    questions = made.questions[:QUESTIONS]
    assert len(made.sessions) >= 200
    assert len(questions) >= 300
    ours = shares(await our_answers(made, questions, f"sqlite:///{tmp_path / 'sessions.db'}"))
    plain = shares(plain_answers(made, questions))
    told = f"ours {ours[0]:.1%} of sessions, {ours[1]:.1%} of messages; plain {plain[0]:.1%}, {plain[1]:.1%}"
    assert ours[0] >= max(0.85, plain[0] + 0.05), told
    assert ours[1] >= max(0.65, plain[1] + 0.05), told


async def test_who_said_it_is_known_by_the_sender_of_a_message(tmp_path: Path) -> None:
    made = friends(20)
    questions = made.questions[:100]
    ours = shares(await our_answers(made, questions, f"sqlite:///{tmp_path / 'sessions.db'}"))
    assert ours[0] >= 0.93, ours
