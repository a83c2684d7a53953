"""What tools may do in a turn: the modes, whoever is asked, and answers that are remembered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Choices, Event, HttpServer, Message, ToolEnded, Turn
from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import Principal, Text, ToolCall
from hitherto.permissions import KINDS, MODES, REMEMBERED, Choice, Mode, Verdict, ruling
from hitherto.service import Sessions
from hitherto.updates import Ask, elsewhere
from hitherto.values.positions import BEGINNING
from tests.support.scripted_engine import Permits, Scripted, ask_once, call, result
from tests.support.waits import arrives, within

ALLOWED: dict[Mode, set[str]] = {
    "default": {"read", "search", "think"},
    "acceptEdits": {"read", "search", "think", "edit", "delete", "move"},
    "plan": {"read", "search", "think"},
    "dontAsk": {"read", "search", "think"},
    "bypassPermissions": set(KINDS),
}
"""What each mode allows without asking."""
ASKING = {"default", "acceptEdits"}


class Person:
    """Somebody who always gives the same answer."""

    def __init__(self, answer: Choice | Verdict) -> None:
        self.answer, self.asked = answer, list[str]()

    async def __call__(self, asked: ToolCall) -> Choice | Verdict:
        self.asked.append(asked.name)
        return self.answer


@pytest.mark.parametrize("kind", [*KINDS, None, "unheard-of"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_ruling_for_every_kind(mode: Mode, kind: str | None) -> None:
    expected = "allow" if kind in ALLOWED[mode] else "ask" if mode in ASKING else "refuse"
    if mode == "bypassPermissions":
        expected = "allow"
    assert ruling(mode, kind) == expected


@pytest.mark.parametrize("mode", MODES)
async def test_only_the_modes_that_may_ask_do(sessions: Sessions, ann: Principal, mode: Mode) -> None:
    session = await sessions.create(ann)
    asks, person = Permits(call("run_command", "execute")), Person("allow_once")
    await ask_once(sessions, ann, session.id, Scripted(asks), choices=Choices(mode=mode), ask=person)
    assert person.asked == (["run_command"] if mode in ASKING else [])
    assert asks.verdicts[0].allowed == (mode in ASKING or mode == "bypassPermissions")
    if not asks.verdicts[0].allowed:
        assert asks.verdicts[0].reason.startswith("refused: ")


async def test_what_would_be_asked_is_refused_when_nobody_is_there(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    asks = Permits(call(), call("read_file", "read", id="c2"))
    await ask_once(sessions, ann, session.id, Scripted(asks))
    assert [verdict.allowed for verdict in asks.verdicts] == [False, True]


async def test_an_answer_for_always_is_remembered_in_the_session_and_covers_those_that_wait(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    asks, person = (
        Permits(call(id="c1"), call(id="c2"), call("fetch", "fetch", id="c3")),
        Person("allow_always"),
    )
    await ask_once(sessions, ann, session.id, Scripted(asks), ask=person)
    assert person.asked == ["write_file", "fetch"]
    assert [verdict.allowed for verdict in asks.verdicts] == [True, True, True]

    nobody = Person("reject_once")
    later = Permits(call(id="c4"))
    await ask_once(other, ann, session.id, Scripted(later), ask=nobody)
    assert (later.verdicts[0].allowed, nobody.asked) == (True, [])
    planning = Permits(call(id="c5"))
    await ask_once(other, ann, session.id, Scripted(planning), choices=Choices(mode="plan"))
    assert not planning.verdicts[0].allowed
    fork = await sessions.fork(ann, session.id)
    await ask_once(sessions, ann, fork.id, Scripted(Permits(call(id="c6"))), ask=nobody)
    assert nobody.asked == ["write_file"]


async def test_a_rejection_for_always_holds_until_permissions_are_bypassed(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    person = Person("reject_always")
    await ask_once(sessions, ann, session.id, Scripted(Permits(call())), ask=person)
    for mode in MODES:
        asks = Permits(call())
        await ask_once(sessions, ann, session.id, Scripted(asks), choices=Choices(mode=mode), ask=person)
        assert asks.verdicts[0].allowed == (mode == "bypassPermissions")
    assert person.asked == ["write_file"]


async def test_always_covers_a_command_but_not_another_command(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    person = Person("allow_always")
    for command in ("ls", "ls", "rm -rf ~"):
        asks = Permits(call("run_command", "execute", command=command))
        await ask_once(sessions, ann, session.id, Scripted(asks), ask=person)
    assert person.asked == ["run_command", "run_command"]


async def test_always_covers_a_tool_of_a_server_while_the_server_is_the_same(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    person = Person("allow_always")
    for url, key in (("http://one", "a"), ("http://one", "b"), ("http://two", "a")):
        server = HttpServer(name="shop", url=url, headers={"Authorization": key})
        engine = Scripted(Permits(call("mcp__shop__buy", "other")))
        async with sessions.opened(ann, session.id, engine, mcp_servers=(server,)) as opened:
            await opened.prompt((Text(text="Buy"),), ask=person)
    assert person.asked == ["mcp__shop__buy", "mcp__shop__buy"]


async def test_a_question_is_seen_from_outside_and_a_verdict_may_change_the_input(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    states = []
    session = await sessions.create(ann)

    async def person(asked: ToolCall) -> Verdict:
        states.append((await other.get(ann, session.id)).status)
        return Verdict(allowed=True, input={**asked.input, "path": "b"})

    asks = Permits(call(path="a"))
    await ask_once(sessions, ann, session.id, Scripted(asks), ask=person)
    assert states == ["waiting"]
    assert asks.verdicts == [Verdict(allowed=True, input={"path": "b"})]
    assert (await other.get(ann, session.id)).status == "idle"


@pytest.mark.parametrize("here", [elsewhere, None], ids=["nobody attends", "somebody is asked"])
async def test_a_question_is_answered_from_another_process(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, here: Ask | None
) -> None:
    session = await sessions.create(ann)
    posed, withdrawn = asyncio.Event(), asyncio.Event()

    async def person(asked: ToolCall) -> Choice | Verdict:
        posed.set()
        try:
            return await elsewhere(asked)
        finally:
            withdrawn.set()

    asks = Permits(call("run_command", "execute", id="c1", command="ls"))
    assert await other.questions.pending(ann, session.id) is None
    turn = asyncio.create_task(ask_once(sessions, ann, session.id, Scripted(asks), ask=here or person))
    async with within("the question"):
        async for _ in other.watch(ann, session_id=session.id, after=BEGINNING):
            if (question := await other.questions.pending(ann, session.id)) is not None:
                break
    assert question is not None
    assert (question.id, question.input) == ("c1", {"command": "ls"})
    assert not await other.questions.answer(ann, session.id, "another call", "allow_once")
    with pytest.raises(SessionNotFound):
        await other.questions.answer(bob, session.id, "c1", "allow_once")
    assert await other.questions.answer(ann, session.id, "c1", "allow_always")
    assert not await other.questions.answer(ann, session.id, "c1", "reject_once")
    await arrives(turn, "the end of the turn")
    assert asks.verdicts[0].allowed
    assert withdrawn.is_set() == posed.is_set() == (here is None)
    assert await other.questions.pending(ann, session.id) is None
    assert not await other.questions.answer(ann, session.id, "c1", "allow_once")
    again = Permits(call("run_command", "execute", id="c2", command="ls"))
    await ask_once(other, ann, session.id, Scripted(again))
    assert again.verdicts[0].allowed


async def test_a_question_ends_with_its_turn(sessions: Sessions, other: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    asks = Permits(call("run_command", "execute", id="c1"))
    turn = asyncio.create_task(ask_once(sessions, ann, session.id, Scripted(asks), ask=elsewhere))
    async with within("the question"):
        async for _ in other.watch(ann, session_id=session.id, after=BEGINNING):
            if await other.questions.pending(ann, session.id) is not None:
                break
    await other.leases.request_end(ann, session.id)
    await arrives(turn, "the end of the turn")
    assert await other.questions.pending(ann, session.id) is None
    assert not await other.questions.answer(ann, session.id, "c1", "allow_once")
    assert asks.verdicts == []


async def test_no_caller_can_permit_anything_through_metadata(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    forged = {REMEMBERED: {"write_file": True}}
    session = await sessions.create(ann)
    for attempt in (sessions.create(ann, meta=forged), sessions.set_meta(ann, session.id, forged)):
        with pytest.raises(InvalidInput, match="hitherto/"):
            await attempt
    await sessions.catalog.set_own_meta(ann, session.id, forged)
    lines = [line async for line in sessions.export(ann, session.id)]
    copy = await sessions.import_(ann, lines, new_id=True)
    assert REMEMBERED not in (await reader.get(ann, copy.id)).meta


async def test_what_needs_no_question_does_not_wait_for_one(sessions: Sessions, ann: Principal) -> None:
    answered = asyncio.Event()

    async def script(turn: Turn) -> AsyncIterator[Event]:
        asked = asyncio.ensure_future(turn.permit(call()))
        assert (await turn.permit(call("read_file", "read", id="c2"))).allowed
        answered.set()
        assert (await asked).allowed
        yield Message(parts=(Text(text="ok"),))

    async def person(_: ToolCall) -> Choice:
        await arrives(answered.wait(), "the permission that needs no question")
        return "allow_once"

    session = await sessions.create(ann)
    await ask_once(sessions, ann, session.id, Scripted(script), ask=person)


async def test_always_covers_a_command_with_other_limits_but_not_in_another_folder(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/a")
    person = Person("allow_always")
    for seconds in (1, 2):
        asks = Permits(call("run_command", "execute", command="make", seconds=seconds))
        await ask_once(sessions, ann, session.id, Scripted(asks), ask=person)
    assert person.asked == ["run_command"]
    await sessions.move(ann, session.id, "/b")
    await ask_once(
        sessions,
        ann,
        session.id,
        Scripted(Permits(call("run_command", "execute", command="make"))),
        ask=person,
    )
    assert person.asked == ["run_command"] * 2


async def test_an_input_that_was_changed_is_on_record(sessions: Sessions, ann: Principal) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:
        yield Message(parts=(call(path="a"),))
        await turn.permit(call(path="a"))
        yield ToolEnded(result=result())

    session = await sessions.create(ann)
    person = Person(Verdict(allowed=True, input={"path": "b"}))
    await ask_once(sessions, ann, session.id, Scripted(script), ask=person)
    entries = (await sessions.history(ann, session.id)).entries
    assert entries[2].meta == {"input": {"path": "b"}}
