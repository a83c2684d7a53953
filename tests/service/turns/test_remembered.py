"""What a turn is told from memory: what bears on it, of whoever speaks, and nobody else's."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hitherto.model import Fact, Identity, Principal, Session, Text
from hitherto.recall.tools import Recall
from hitherto.service import Sessions
from hitherto.service.memory.facts import EVERYONE, NewFact
from hitherto.summariser import CompactionPolicy
from tests.support.conversations import say
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted

PEOPLE = ("telegram:ada", "telegram:bob", "irc:ada", "telegram:group:team", "owner")


async def chat(sessions: Sessions, who: Principal, person: str | None, agent: str = "main") -> Session:
    identity = None if person is None else Identity(role="guest", identity_id=person)
    return await sessions.create(who, agent_id=agent, identity=identity)


async def asked(sessions: Sessions, who: Principal, session: Session, prompt: str) -> tuple[Fact, ...]:
    """What the turn of a prompt is told."""
    engine = Scripted()
    async with sessions.opened(who, session.id, engine, improve_titles=False) as opened:
        await opened.prompt([Text(text=prompt)])
    return engine.turns[0].remembered


async def test_nobody_s_facts_reach_another_person_by_any_way(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    """A census: everybody has a secret, and all secrets are asked for in every chat of everybody, by every way."""
    secrets = {
        person: f"The locker code of {person or 'nobody'} is {person or 'none'}-locker"
        for person in (*PEOPLE, None)
    }
    for person, text in secrets.items():
        await sessions.memory.note(ann, NewFact(text=text, agent_id="main", identity_id=person))
    await sessions.memory.note(
        bob, NewFact(text="The locker code is bobs-locker", agent_id="main", identity_id="owner")
    )
    for person, text in secrets.items():
        own = {text}
        session = await chat(sessions, ann, person)
        engine = Scripted()
        async with sessions.opened(ann, session.id, engine, improve_titles=False) as opened:
            await opened.prompt(
                [Text(text="What is the locker code of telegram ada, bob, team, owner, nobody?")]
            )
        (turn,) = engine.turns
        assert {fact.text for fact in turn.remembered} == own
        assert turn.notebook is not None
        assert {fact.text for fact in await turn.notebook.search("locker code", 50)} == own
        assert {fact.text for fact in await turn.notebook.search("", 50)} == own
    mine = Recall(sessions, ann, "http://page")
    assert {each.fact for each in (await mine.facts("locker code")).facts} == {
        secrets[None],
        secrets["owner"],
    }
    for person in PEOPLE:
        assert {each.fact for each in (await mine.facts("", person=person)).facts} == {secrets[person]}


async def test_a_turn_is_told_what_bears_on_its_prompt_within_the_budget(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await chat(sessions, ann, "x:u")

    async def note(text: str, **about: Any) -> None:
        clock.advance()
        await sessions.memory.note(ann, NewFact(text=text, agent_id="main", identity_id="x:u", **about))

    await note("The staging server is hedwig", subject="staging server")
    await note("The user prefers short answers", kind="preference")
    await note("The cat is called Momo")
    await note("The staging server is pigwidgeon", subject="staging server")
    await sessions.memory.note(
        ann, NewFact(text="Another agent knows of a staging server", agent_id="ops", identity_id="x:u")
    )
    await sessions.memory.note(
        ann, NewFact(text="The office closes at six", agent_id="main", identity_id=EVERYONE)
    )
    told = [fact.text for fact in await asked(sessions, ann, session, "Restart the staging server")]
    assert told == ["The staging server is pigwidgeon", "The user prefers short answers"]
    assert [fact.text for fact in await asked(sessions, ann, session, "When does the office close?")] == [
        "The office closes at six",
        "The user prefers short answers",
    ]
    small = replace(sessions.core, compaction=CompactionPolicy(memory_tokens=30))
    tight = Sessions(small.store, now=clock, compaction=small.compaction)
    assert [fact.text for fact in await asked(tight, ann, session, "staging server")] == [
        "The staging server is pigwidgeon"
    ]
    off = Sessions(small.store, now=clock, compaction=CompactionPolicy(memory_tokens=0))
    engine = Scripted()
    async with off.opened(ann, session.id, engine) as opened:
        await opened.prompt([Text(text="staging server")])
    assert (engine.turns[0].remembered, engine.turns[0].notebook) == ((), None)


async def test_what_an_agent_notes_corrects_what_was_known_and_names_its_message(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await chat(sessions, ann, "x:u")
    await sessions.append(ann, session.id, [say("The staging port is 5432.")])
    await sessions.reset(ann, session.id)
    assert [fact.text for fact in await reader.memory.search(ann)] == ["The staging port is 5432."]
    clock.advance()
    engine = Scripted()
    async with sessions.opened(ann, session.id, engine, improve_titles=False) as opened:
        await opened.prompt([Text(text="It moved")])
        (turn,) = engine.turns
        assert turn.notebook is not None
        noted = await turn.notebook.add("The staging port is 6543")
    found = await reader.memory.search(ann, identity_id="x:u")
    assert found == [noted]
    assert noted.entries == (turn.history[-1].id,)
    every = await reader.memory.search(ann, superseded=True)
    assert [(fact.text, fact.invalidated_by) for fact in every] == [
        ("The staging port is 6543", None),
        ("The staging port is 5432.", noted.id),
    ]
