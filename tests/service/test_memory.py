"""Memory: what was said is found again after it has left the context."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from hitherto.errors import InvalidInput, InvalidLimit
from hitherto.model import Fact, Identity, Principal, Session, plain_text
from hitherto.service import Sessions
from hitherto.service.memory.findings import forgotten_name, merge_findings
from hitherto.stores import connector
from hitherto.summariser import CompactionPolicy, Finding
from hitherto.values.days import DAY_MS
from tests.summaries.planted import held_out
from tests.summaries.planted.conversations import conversation
from tests.support.conversations import say, started
from tests.support.homes import Clock, Home, MemoryHome, counting

SEEDS = range(3)
FILLER = "and so on and so forth " * 30


async def remember(sessions: Sessions, who: Principal, *texts: str, **fields: object) -> Session:
    """A session in which these were said, and then made smaller."""
    session = await sessions.create(who, **fields)  # type: ignore[arg-type]
    await tell(sessions, who, session.id, *texts)
    return session


async def tell(sessions: Sessions, who: Principal, session_id: str, *texts: str) -> int:
    """Say these, much that says nothing, and make the session smaller; how many facts were stored."""
    await sessions.append(who, session_id, [say(text) for text in (*texts, *[FILLER] * 5, "the end")])
    done = await sessions.compaction.shrink(who, session_id)
    assert done.compacted, done.reason
    return done.facts_extracted


async def recalled(
    sessions: Sessions, who: Principal, query: str | None = None, **fields: object
) -> list[str]:
    return [fact.text for fact in await sessions.memory.search(who, query, **fields)]  # type: ignore[arg-type]


async def test_what_was_said_is_found_by_its_words(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await remember(
        sessions,
        ann,
        "My name is Ada Lovelace.",
        "The staging database listens on port 5671.",
        "We decided to use DuckDB for analytics.",
        "I prefer table-driven tests.",
        agent_id="main",
        cwd="/work",
    )
    assert await recalled(reader, ann, "what is my name?") == ["My name is Ada Lovelace."]
    assert await recalled(reader, ann, "port of the staging databases") == [
        "The staging database listens on port 5671."
    ]
    assert (await recalled(reader, ann, "analytic decision"))[0] == "We decided to use DuckDB for analytics."
    assert await recalled(reader, ann, "TESTS") == ["I prefer table-driven tests."]
    assert await recalled(reader, ann, "kubernetes") == []
    assert await recalled(reader, ann, "") == []
    assert len(await recalled(reader, ann)) == 4
    assert await recalled(reader, bob, "name") == await recalled(reader, bob) == []
    (fact,) = await reader.memory.search(ann, "5671")
    first = (await reader.history(ann, session.id, view="conversation")).entries[1]
    assert (fact.kind, fact.session, fact.entries, fact.at) == ("number", session.id, (first.id,), first.at)
    assert (fact.agent_id, fact.cwd, fact.subject) == ("main", "/work", "staging database")
    assert 0.5 <= (fact.confidence or 0) <= 1


async def test_what_is_said_again_is_not_stored_again(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    assert await tell(sessions, ann, session.id, "I prefer tabs over spaces.") == 1
    clock.advance()
    assert await tell(sessions, ann, session.id, "I prefer tabs over spaces.", "I prefer green.") == 1
    assert sorted(await recalled(reader, ann)) == ["I prefer green.", "I prefer tabs over spaces."]
    assert len(await reader.memory.facts(ann)) == 2


async def test_a_newer_fact_about_the_same_takes_the_place_of_an_older_one(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    one = await remember(sessions, ann, "The staging port is 8080.", "My name is Ada.")
    clock.advance()
    two = await remember(sessions, ann, "The staging port is 9090.", "I prefer tea.")
    assert await recalled(reader, ann, "staging port") == ["The staging port is 9090."]
    assert sorted(await recalled(reader, ann)) == [
        "I prefer tea.",
        "My name is Ada.",
        "The staging port is 9090.",
    ]
    facts = {fact.text: fact for fact in await reader.memory.facts(ann)}
    old, new = facts["The staging port is 8080."], facts["The staging port is 9090."]
    assert (old.invalidated_by, new.invalidated_by) == (new.id, None)
    assert (old.session, new.session) == (one.id, two.id)
    await sessions.delete(ann, two.id)  # and what it said goes with it
    assert await recalled(reader, ann, "staging port") == ["The staging port is 8080."]


async def test_what_was_said_earlier_does_not_win_because_it_is_found_later(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old = await sessions.create(ann)
    await sessions.append(ann, old.id, say("The staging port is 8080."))
    clock.advance()
    await remember(sessions, ann, "The staging port is 9090.")
    clock.advance()
    assert await tell(sessions, ann, old.id) == 1
    assert await recalled(reader, ann, "staging port") == ["The staging port is 9090."]


SCOPES: list[tuple[dict[str, object], dict[str, object], bool]] = [
    ({}, {}, True),
    ({"agent_id": "a"}, {"agent_id": "b"}, False),
    ({"identity": Identity(identity_id="ann")}, {"identity": Identity(identity_id="bob")}, False),
    ({"cwd": "/one"}, {"cwd": "/two"}, False),
    ({"channel": "x"}, {"channel": "y"}, True),
]


@pytest.mark.parametrize(("one", "two", "same"), SCOPES)
async def test_a_fact_holds_for_its_agent_its_person_and_its_folder(
    sessions: Sessions,
    reader: Sessions,
    ann: Principal,
    clock: Clock,
    one: dict[str, object],
    two: dict[str, object],
    same: bool,
) -> None:
    await remember(sessions, ann, "The staging port is 8080.", **one)
    clock.advance()
    await remember(sessions, ann, "The staging port is 9090.", **two)
    found = await recalled(reader, ann, "staging port")
    expected = {"The staging port is 9090."} if same else {f"The staging port is {n}." for n in (8080, 9090)}
    assert set(found) == expected


async def test_a_person_has_the_same_name_in_every_folder(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    await remember(sessions, ann, "My name is Ada.", cwd="/one")
    clock.advance()
    await remember(sessions, ann, "My name is Augusta.", cwd="/two")
    assert await recalled(reader, ann, "name") == ["My name is Augusta."]


async def test_memory_can_be_asked_for_one_agent_one_person_or_one_session(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    one = await remember(sessions, ann, "I prefer tea.", agent_id="a")
    await remember(sessions, ann, "I prefer rum.", agent_id="b", identity=Identity(identity_id="bob"))
    assert await recalled(reader, ann, agent_id="a") == ["I prefer tea."]
    assert await recalled(reader, ann, "prefer", agent_id="b") == ["I prefer rum."]
    assert await recalled(reader, ann, identity_id="bob") == ["I prefer rum."]
    assert await recalled(reader, ann, session_id=one.id) == ["I prefer tea."]
    assert await recalled(reader, ann, agent_id="c") == []


async def test_what_is_forgotten_is_gone_with_what_it_had_replaced(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    for port in (7070, 8080, 9090):
        await remember(sessions, ann, f"The staging port is {port}.", f"Box b{port} is at /srv/b{port}.")
        clock.advance()
    (fact,) = await sessions.memory.search(ann, "staging port")
    assert await sessions.memory.forget(bob, fact.id) is False
    assert await sessions.memory.forget(ann, "no such fact") is False
    assert await sessions.memory.forget(ann, "\0") is False
    assert await sessions.memory.forget(ann, fact.id) is True
    assert await sessions.memory.forget(ann, fact.id) is False
    assert await recalled(reader, ann, "staging port") == []
    assert len(await reader.memory.facts(ann)) == 3


async def test_what_was_forgotten_does_not_come_back_from_what_was_said_before(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    said = "My name is Ada."
    session = await sessions.create(ann, agent_id="a")
    await sessions.append(ann, session.id, [say(text) for text in ("start", *[FILLER] * 20, said)])
    for number in range(3):
        await sessions.append(ann, session.id, say(f"{number} " + FILLER))
        assert (
            await sessions.compaction.shrink(ann, session.id, policy=CompactionPolicy(kept_share=0.3))
        ).compacted
        known = await sessions.memory.search(ann, "name")
        assert [fact.text for fact in known] == ([said] if number == 0 else [])
        for fact in known:
            clock.advance()
            assert await sessions.memory.forget(ann, fact.id)
    await sessions.admin.check(repair=True)  # what is kept for a while only is dropped
    clock.advance(400 * DAY_MS)
    await sessions.admin.check(repair=True)
    elsewhere = await sessions.create(ann, agent_id="a")
    old = say(said, at=clock.now - 399 * DAY_MS - 1_000_000_000)
    await sessions.append(ann, elsewhere.id, old)
    await tell(sessions, ann, elsewhere.id)
    assert await recalled(reader, ann, "name") == []
    await remember(sessions, ann, said, agent_id="b")
    await remember(sessions, bob, said, agent_id="a")
    assert len(await recalled(reader, ann, "name")) == len(await recalled(reader, bob, "name")) == 1


async def test_what_is_said_again_after_it_was_forgotten_is_remembered_again(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await remember(sessions, ann, "My name is Ada.")
    (fact,) = await sessions.memory.search(ann, "name")
    await sessions.memory.forget(ann, fact.id)
    assert await tell(sessions, ann, session.id) == 0
    clock.advance()
    assert await tell(sessions, ann, session.id, "my  NAME is Ada!") == 1
    assert await recalled(reader, ann, "name") == ["my NAME is Ada!"]


def test_what_is_kept_of_a_forgotten_fact_tells_nothing_of_it() -> None:
    one, other = (forgotten_name(("a", None, "/x"), text) for text in ("My name is Ada.", "my name  is ADA"))
    assert one == other
    assert (
        len(
            {
                one,
                forgotten_name(("b", None, "/x"), "My name is Ada."),
                forgotten_name(("a", "p", "/x"), "My name is Ada."),
            }
        )
        == 3
    )
    assert set(one) <= set("0123456789abcdef")


async def test_an_erased_entry_takes_its_facts_along(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await remember(sessions, ann, "My name is Ada.", "I prefer tea.")
    (fact,) = await sessions.memory.search(ann, "name")
    await sessions.erase(ann, fact.session or "", fact.entries[0])
    assert await recalled(reader, ann) == ["I prefer tea."]


async def test_pages_of_memory_are_bounded(sessions: Sessions, ann: Principal) -> None:
    facts = [Fact(id=f"f{n:03}", at=n, text=f"fact number {n}") for n in range(250)]
    await sessions.memory.add(ann, facts)
    assert [fact.id for fact in await sessions.memory.search(ann)] == [
        f"f{n:03}" for n in range(249, 199, -1)
    ]
    assert [fact.id for fact in await sessions.memory.search(ann, limit=3, offset=248)] == ["f001", "f000"]
    assert len(await sessions.memory.search(ann, "fact number", limit=200)) == 200
    for limit in (0, 201, True):
        with pytest.raises(InvalidLimit):
            await sessions.memory.search(ann, limit=limit)
    for offset in (-1, True, 1.5):
        with pytest.raises(InvalidInput):
            await sessions.memory.search(ann, offset=offset)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        await sessions.memory.search(ann, agent_id="\0")


async def test_all_that_a_fact_has_comes_back_from_every_store(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    fact = Fact(
        id="f",
        at=1,
        text="\0\ud800 odd",
        kind="path",
        agent_id="a",
        identity_id="i",
        cwd="/x",
        confidence=0.1,
        subject="port",
        invalidated_by="g",
    )
    await sessions.memory.add(ann, [fact])
    assert await reader.memory.facts(ann) == [fact]
    assert await reader.memory.search(ann) == [fact]  # what took its place is not there
    await sessions.memory.add(ann, [Fact(id="g", at=2, text="newer")])
    assert await recalled(reader, ann) == ["newer"]
    for wrong in ({"confidence": 1.1}, {"confidence": float("nan")}, {"subject": "\0"}, {"cwd": "relative"}):
        with pytest.raises(InvalidInput):
            await sessions.memory.add(ann, [replace(fact, **wrong)])


def test_what_a_summariser_finds_is_not_believed_more_than_need_be() -> None:
    session = Session(id="s", revision=1, created_at=1, updated_at=7)
    found = [
        Finding(text="  "),
        Finding(text="x" * 20_000, kind="k" * 1_000, confidence=7.0, subject="\0", entries=("nowhere",)),
        Finding(text="odd kind", kind="\0"),
    ]
    (fact,) = merge_findings([], found, session, [], counting().__next__).facts
    assert (len(fact.text), len(fact.kind), fact.confidence) == (10_000, 500, 1.0)
    assert (fact.subject, fact.entries, fact.at) == (None, (), 7)


async def test_many_facts_of_one_compaction_are_bounded(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    texts = [f"Box b{n} is at /srv/b{n}. " + "It hums and it whirrs. " * 8 for n in range(100)]
    await sessions.append(ann, session.id, [say(text) for text in texts])
    policy = CompactionPolicy(facts=10, identifiers=10)
    assert (await sessions.compaction.shrink(ann, session.id, policy=policy)).facts_extracted == 10
    assert len(await sessions.memory.facts(ann)) == 10


# How much is found again of conversations that the extractor has never seen


async def test_planted_facts_are_found_again(
    sessions: Sessions, ann: Principal, record_property: Callable[[str, object], None]
) -> None:
    planted = found = decoys = kept = facts = 0
    for seed in SEEDS:
        made = conversation(held_out.TEMPLATES, seed)
        session = await sessions.create(ann, agent_id=f"agent-{seed}")
        await sessions.append(ann, session.id, made.drafts)
        done = await sessions.compaction.shrink(ann, session.id)
        summary = plain_text(await sessions.entry(ann, session.id, done.summary or ""))
        for plant in made.plants:
            told = await recalled(sessions, ann, plant.query, agent_id=f"agent-{seed}", limit=10)
            found += plant.value in summary or any(plant.value in text for text in told)
        stored = [fact.text for fact in await sessions.memory.facts(ann, session.id)]
        planted += len(made.plants)
        facts += len(stored)
        decoys += len(made.decoys)
        kept += sum(any(text in decoy.text for text in stored) for decoy in made.decoys)
    report = {
        "planted": planted,
        "found again": found,
        "decoys": decoys,
        "kept as facts": kept,
        "facts": facts,
    }
    for name, number in report.items():
        record_property(name, number)
    print(f"{found / planted:.0%} found again; {kept / decoys:.0%} of the decoys kept: {report}")  # noqa: T201
    assert found >= 0.85 * planted
    assert kept <= 0.15 * decoys


async def test_the_memory_alone_finds_most_of_it(ann: Principal) -> None:
    """As above, without the help of the summary; on one store, since all of them rank alike."""
    home: Home = MemoryHome()
    async with connector(home.url)(home.url, Clock()) as store:
        sessions = Sessions(store, now=Clock(), new_id=counting().__next__)
        planted = found = 0
        for seed in SEEDS:
            made = conversation(held_out.TEMPLATES, seed)
            session = await sessions.create(ann, agent_id=f"agent-{seed}")
            await sessions.append(ann, session.id, made.drafts)
            await sessions.compaction.shrink(ann, session.id)
            for plant in made.plants:
                told = await recalled(sessions, ann, plant.query, agent_id=f"agent-{seed}", limit=10)
                planted += 1
                found += any(plant.value in text for text in told)
        print(f"{found / planted:.0%} of {planted} found by memory alone")  # noqa: T201
        assert found >= 0.75 * planted


async def test_a_query_looks_only_at_facts_that_have_its_words(
    sessions: Sessions, ann: Principal, bob: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitherto.service.memory.facts.FACTS_EXAMINED", 6)
    facts = [
        Fact(id=f"n{number}", at=1_000 + number, text=f"Nothing of note {number}") for number in range(50)
    ]
    facts += [Fact(id="old", at=1, text="The database is PostgreSQL"), Fact(id="cat", at=2, text="The cat")]
    await sessions.memory.add(ann, facts)
    await sessions.memory.add(bob, [Fact(id="b", at=9, text="Her database")])
    for query, found in (
        ("databases", ["old"]),
        ("postgresql?", ["old"]),
        ("cat", ["cat"]),
        ("ca", []),
        ("", []),
    ):
        assert [fact.id for fact in await sessions.memory.search(ann, query)] == found, query
    newest = await sessions.memory.search(ann, "nothing")
    assert [fact.id for fact in newest] == ["n49", "n48", "n47", "n46", "n45", "n44"]
    rare = await sessions.memory.search(ann, "nothing of the database")
    assert rare[0].id == "old"
    assert [fact.id for fact in await sessions.memory.search(ann, limit=2, offset=50)] == ["cat", "old"]


async def test_a_person_s_facts_are_found_among_those_of_many(sessions: Sessions, ann: Principal) -> None:
    facts = [
        Fact(
            id=f"{agent}{person}",
            at=1,
            text="Likes tea",
            agent_id=agent,
            identity_id=person,
        )
        for agent in ("x", "y")
        for person in ("p", "q")
    ]
    await sessions.memory.add(ann, facts)
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({"agent_id": "x"}, ["xp", "xq"]),
        ({"identity_id": "q"}, ["xq", "yq"]),
        ({"agent_id": "y", "identity_id": "p"}, ["yp"]),
        ({"agent_id": "z"}, []),
    ]
    for asked, found in cases:
        for query in (None, "tea"):
            facts = await sessions.memory.search(ann, query, **asked)  # type: ignore[arg-type]
            assert sorted(fact.id for fact in facts) == found, asked


async def test_a_fact_goes_when_the_last_message_that_says_it_is_erased(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(
        sessions, ann, "My dog is called Rex.", "Yes, my dog is called Rex!", "And so on"
    )
    fact = Fact(id="f", at=1, text="my dog is called Rex", session=session.id, entries=tuple(ids[:2]))
    await sessions.memory.add(ann, [fact])
    await sessions.erase(ann, session.id, ids[0])
    assert await reader.memory.facts(ann) == [replace(fact, entries=(ids[1],))]
    await sessions.erase(ann, session.id, ids[1])
    assert await reader.memory.facts(ann) == []


async def test_a_fact_that_not_all_is_left_of_goes(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "My dog is called Rex.", "He is nine.")
    fork = await sessions.fork(ann, session.id)
    fact = Fact(id="f", at=1, text="The dog Rex is nine", session=session.id, entries=tuple(ids))
    other = replace(fact, id="h", text="Nine is odd", entries=(ids[1],))
    await sessions.memory.add(ann, [fact, replace(fact, id="g", session=fork.id), other])
    await sessions.erase(ann, session.id, ids[0])
    assert [fact.id for fact in await reader.memory.facts(ann)] == ["h"]
