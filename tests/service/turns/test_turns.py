"""Turns: every step is stored as it happens, whatever happens."""

from __future__ import annotations

import asyncio
import types
from collections.abc import AsyncIterator, Generator

import pytest

from hitherto.engine import (
    Choices,
    Context,
    Delta,
    Event,
    Message,
    Notice,
    Stopped,
    ToolEnded,
    ToolProgress,
    Turn,
)
from hitherto.errors import (
    Busy,
    ContextTooLong,
    EngineError,
    IdempotencyConflict,
    Interrupted,
    InvalidInput,
    LeaseLost,
    ModelMissing,
    ModelUnreachable,
    ReadOnly,
    TooLarge,
)
from hitherto.holders import new_holder
from hitherto.model import (
    RECORDED_IN,
    Draft,
    Entry,
    Live,
    Plan,
    Principal,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
    decode_json,
    encode,
)
from hitherto.permissions import Choice
from hitherto.service import Imported, Sessions
from hitherto.service.turns.context import CANCELLED, CUT_OFF, INTERRUPTED, WITHDRAWN
from hitherto.updates import Compacted, Compacting, Outcome, Said, Stored, Titled
from hitherto.values.positions import BEGINNING
from tests.support.conversations import say, started, told
from tests.support.homes import Clock
from tests.support.scripted_engine import (
    Scripted,
    Watcher,
    ask_once,
    call,
    in_background,
    prompt,
    result,
    says,
)
from tests.support.waits import arrives, within


async def entries(sessions: Sessions, who: Principal, session_id: str) -> tuple[Entry, ...]:
    return (await sessions.history(who, session_id, limit=1_000)).entries


async def test_the_prompt_is_stored_before_the_engine_sees_it(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    seen = []

    async def script(turn: Turn) -> AsyncIterator[Event]:
        seen.append((await entries(other, ann, turn.session.id))[-1])
        assert seen[-1] == turn.history[-1]
        yield Message(parts=(Text(text="Yes"),))

    session = await sessions.create(ann)
    outcome = await ask_once(sessions, ann, session.id, Scripted(script), "Are you there?")
    assert [part for entry in seen for part in entry.parts] == [Text(text="Are you there?")]
    assert outcome.prompt == seen[0].id
    assert (outcome.stop_reason, outcome.text, outcome.requests) == ("end_turn", "Yes", 1)
    assert await told(other, ann, session.id) == ["Are you there?", "Yes"]


async def test_each_message_and_result_is_stored_before_the_next_event_is_asked_for(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    lengths = []

    async def script(turn: Turn) -> AsyncIterator[Event]:
        async def note() -> None:
            lengths.append(len(await entries(other, ann, turn.session.id)))

        await note()
        yield Message(parts=(Text(text="I write."), call(), call(id="c2")))
        await note()  # the calls are on record, and no tool has run
        yield ToolEnded(result=result("c2"))
        await note()
        yield ToolEnded(result=result("c1"), extra=(Plan(steps=({"content": "a"},)),))
        await note()
        yield Message(parts=(Text(text="Done."),))
        await note()

    session = await sessions.create(ann)
    watcher = Watcher()
    await ask_once(sessions, ann, session.id, Scripted(script), emit=watcher)
    assert lengths == [1, 2, 3, 4, 5]
    stored = await entries(other, ann, session.id)
    assert [entry.role for entry in stored] == ["user", "assistant", "tool", "tool", "assistant"]
    assert stored[3].parts == (result("c1"), Plan(steps=({"content": "a"},)))
    assert watcher.stored == list(stored)


async def test_what_is_said_is_shown_as_it_comes_and_stored_under_the_id_it_was_shown_with(
    sessions: Sessions, ann: Principal
) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="Hm", thought=True)
        yield Delta(text="Yes, ")
        yield Delta(text="indeed")
        yield Message(parts=(Thought(text="Hm"), Text(text="Yes, indeed")), usage=Usage(input=3, output=5))
        yield Context(used=8, size=100)
        yield Notice(text="by the way")
        yield ToolProgress(id="c1")
        yield Stopped(reason="max_tokens")

    session = await sessions.create(ann)
    watcher = Watcher()
    outcome = await ask_once(sessions, ann, session.id, Scripted(script), emit=watcher)
    deltas = [update for update in watcher.seen if isinstance(update, Said)]
    answer = (await entries(sessions, ann, session.id))[-1]
    assert [(delta.text, delta.thought) for delta in deltas] == [
        ("Hm", True),
        ("Yes, ", False),
        ("indeed", False),
    ]
    assert {delta.entry for delta in deltas} == {answer.id} == {outcome.answer}
    assert outcome.stop_reason == "max_tokens"
    assert outcome.usage == Usage(input=3, output=5)
    assert answer.tokens == 5
    assert [type(update) for update in watcher.seen[-3:]] == [Context, Notice, ToolProgress]


async def test_a_turn_is_seen_live_by_other_processes_and_its_text_goes_when_it_is_stored(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    go = asyncio.Event()

    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="half a ")
        await arrives(go.wait(), "leave to go on")
        yield Delta(text="sentence")
        yield Message(parts=(Text(text="half a sentence"),))

    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, Scripted(script)) as opened:
        running = await in_background(opened)
        live = None
        async with within("the live text"):
            async for _ in other.watch(ann, session_id=session.id, after=BEGINNING):
                live = await other.changes.live(ann, session.id)
                if live is not None:
                    break
        assert live is not None
        shown = decode_json(live)
        assert shown["parts"] == [{"type": "text", "text": "half a "}]
        assert (await other.get(ann, session.id)).status == "running"
        assert opened.running
        go.set()
        outcome = await arrives(running, "the end of the turn")
    assert outcome.answer == shown["entry"]
    assert await other.changes.live(ann, session.id) is None
    assert (await other.get(ann, session.id)).status == "idle"
    assert await other.leases.current(ann, session.id) is None


@pytest.mark.parametrize("by", ["cancel", "the caller's end", "closing"])
async def test_a_cancelled_turn_keeps_what_was_said_and_answers_its_tool_calls(
    sessions: Sessions, other: Sessions, ann: Principal, by: str
) -> None:
    ended = []

    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(Text(text="I look."), call(id="c1"), call(id="c2")))
        yield ToolEnded(result=result("c1"))
        yield Delta(text="And so")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    session = await sessions.create(ann)
    watcher = Watcher()
    async with sessions.opened(ann, session.id, Scripted(script)) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        if by == "cancel":
            assert opened.cancel()
            assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
        elif by == "the caller's end":
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await arrives(running, "the end of the turn")
    if by == "closing":
        assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
    assert ended == [True]
    stored = await entries(other, ann, session.id)
    assert [entry.role for entry in stored] == ["user", "assistant", "tool", "assistant", "tool"]
    assert stored[3].parts == (Text(text="And so"),)
    assert stored[3].meta == {"partial": WITHDRAWN}
    assert stored[4].parts == (result("c2", CANCELLED, is_error=True),)
    assert (await other.get(ann, session.id)).status == "idle"
    assert not opened.cancel()
    await ask_once(other, ann, session.id, Scripted(), "And now?")


@types.coroutine
def steps(count: int) -> Generator[None, None, None]:
    """Let the event loop go round so many times."""
    for _ in range(count):
        yield


async def test_a_turn_cancelled_at_any_step_of_its_beginning_leaves_nothing_held(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, beside = await sessions.create(ann), await sessions.create(ann)
    engine = Scripted()
    async with sessions.opened(ann, session.id, engine, improve_titles=False) as opened:
        for count in (*range(30), *range(30, 6_000, 200)):  # a store behind a socket takes many rounds
            others = [asyncio.create_task(sessions.append(ann, beside.id, say("x"))) for _ in range(3)]
            running = await in_background(opened, f"Prompt {count}", idempotency_key=f"k{count}")
            await steps(count)
            running.cancel()
            await arrives(asyncio.wait([running, *others]), "the end of all that was begun")
            found = await other.get(ann, session.id)
            assert (found.status, await other.leases.current(ann, session.id)) == ("idle", None), count
        await opened.prompt(prompt("And now?"))
    assert (await told(other, ann, session.id))[-2:] == ["And now?", "Noted."]


async def test_a_failed_turn_keeps_what_was_said_and_says_so(sessions: Sessions, ann: Principal) -> None:
    async def cut_off(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="It is")
        raise ModelUnreachable("the connection broke off")

    async def broken(turn: Turn) -> AsyncIterator[Event]:
        yield Message(parts=(call(),))
        raise KeyError(turn.session.id)

    session = await sessions.create(ann)
    engine = Scripted(cut_off, broken)
    with pytest.raises(ModelUnreachable):
        await ask_once(sessions, ann, session.id, engine)
    half = (await entries(sessions, ann, session.id))[-1]
    assert half.parts == (Text(text="It is"),)
    assert half.meta == {"partial": CUT_OFF, "error": "the connection broke off"}
    assert (await sessions.get(ann, session.id)).status == "failed"
    with pytest.raises(EngineError, match="KeyError"):
        await ask_once(sessions, ann, session.id, engine)
    assert (await entries(sessions, ann, session.id))[-1].parts == (result("c1", INTERRUPTED, is_error=True),)
    await ask_once(sessions, ann, session.id, engine)
    assert (await sessions.get(ann, session.id)).status == "idle"


async def test_an_engine_without_a_model_refuses_before_anything_is_stored(
    sessions: Sessions, ann: Principal
) -> None:
    class Bare(Scripted):
        async def window(self, choices: Choices) -> int | None:
            raise ModelMissing(f"no model: {choices.model}")

    session = await sessions.create(ann)
    with pytest.raises(ModelMissing):
        await ask_once(sessions, ann, session.id, Bare())
    assert await sessions.get(ann, session.id) == session


async def test_what_a_dead_turn_left_open_is_closed_before_the_next_prompt(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    left = Draft(role="assistant", parts=(call(id="c1"), call(id="c2"), call(id="c3")))
    await sessions.append(ann, session.id, [say("Go"), left, Draft(role="tool", parts=(result("c2"),))])
    engine = Scripted()
    await ask_once(sessions, ann, session.id, engine, "Still there?")
    (turn,) = engine.turns
    answers = {
        part.id: part.is_error
        for entry in turn.history
        for part in entry.parts
        if isinstance(part, ToolResult)
    }
    assert answers == {"c2": False, "c1": True, "c3": True}
    assert [entry.role for entry in turn.history] == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert turn.history + (await entries(sessions, ann, session.id))[-1:] == await entries(
        sessions, ann, session.id
    )


async def test_a_second_prompt_is_refused_or_waits(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    go = asyncio.Event()

    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="first")
        await arrives(go.wait(), "leave to go on")
        yield Message(parts=(Text(text="first"),))

    session = await sessions.create(ann)
    watcher = Watcher()
    engine = Scripted(script)
    async with sessions.opened(ann, session.id, engine) as one, other.opened(ann, session.id, engine) as two:
        running = await in_background(one, "One", emit=watcher)
        await watcher.until(Said)
        for opened in (one, two):
            with pytest.raises(Busy) as refused:
                await opened.prompt(prompt("No"))
            assert "hitherto:" not in refused.value.message
        waiting = await in_background(two, "Two", wait=True)
        go.set()
        await arrives(running, "the end of the first turn")
        assert (await arrives(waiting, "the end of the second turn")).text == "Noted."
    assert await told(sessions, ann, session.id) == ["One", "first", "Two", "Noted."]


async def test_a_turn_that_lost_its_lease_writes_nothing_more(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:
        clock.advance(3_600_000)
        await other.leases.acquire(ann, turn.session.id, "another")
        yield Message(parts=(Text(text="late"),))

    session = await sessions.create(ann)
    with pytest.raises(LeaseLost):
        await ask_once(sessions, ann, session.id, Scripted(script))
    assert await told(sessions, ann, session.id) == ["Go"]
    lease = await other.leases.current(ann, session.id)
    assert lease is not None
    assert lease.holder == "another"


async def test_the_lease_of_a_dead_process_is_no_obstacle(sessions: Sessions, ann: Principal) -> None:
    alive = new_holder()
    fields = alive.split(":")
    pid, _, born = fields[-2].partition("-")
    dead = ":".join([*fields[:-2], f"{pid}-{int(born) + 1}", fields[-1]])
    session = await sessions.create(ann)
    await sessions.leases.acquire(ann, session.id, dead, ttl_ms=3_600_000)
    assert await sessions.leases.current(ann, session.id) is None
    await sessions.append(ann, session.id, say("Yes"))
    await ask_once(sessions, ann, session.id, Scripted())
    await sessions.leases.acquire(ann, session.id, alive, ttl_ms=3_600_000)
    with pytest.raises(Busy):
        await ask_once(sessions, ann, session.id, Scripted())


async def test_what_a_dead_turn_was_saying_is_kept_when_the_session_goes_on(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "Go")
    lease = await sessions.leases.acquire(ann, session.id, "a process that dies", ttl_ms=1_000)
    half = Live(entry="half", parts=(Text(text="The answer begins"),))
    await sessions.changes.put_live(ann, session.id, encode(half), fence=lease.fence)
    clock.advance(2_000)
    engine = Scripted(says("Whole."))
    await ask_once(sessions, ann, session.id, engine, "Go on")
    kept = (await entries(sessions, ann, session.id))[-3]
    assert (kept.id, kept.role, kept.parts, kept.meta) == (
        "half",
        "assistant",
        half.parts,
        {"partial": CUT_OFF},
    )
    assert half.parts in [each.parts for each in engine.turns[0].history]
    assert await sessions.changes.live(ann, session.id) is None
    (hit,) = (await sessions.search(ann, "begins")).hits
    assert hit.entry == "half"


async def test_a_prompt_with_an_idempotency_key_is_run_once(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    engine = Scripted(says("Once."))
    first = await ask_once(sessions, ann, session.id, engine, idempotency_key="k")
    again = await ask_once(other, ann, session.id, engine, idempotency_key="k")
    assert first == again == Outcome(
        stop_reason="end_turn", prompt=first.prompt, answer=first.answer, text="Once.", requests=1,
        usage=Usage(),
    )  # fmt: skip
    assert len(engine.turns) == 1
    with pytest.raises(IdempotencyConflict):
        await ask_once(sessions, ann, session.id, engine, "Something else", idempotency_key="k")


async def test_a_prompt_that_never_ended_is_not_run_twice(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    async def dies(turn: Turn) -> AsyncIterator[Event]:
        clock.advance(3_600_000)
        await sessions.leases.acquire(ann, turn.session.id, "whoever finds it dead", ttl_ms=1)
        yield Message(parts=(Text(text="never"),))

    session = await sessions.create(ann)
    engine = Scripted(dies)
    with pytest.raises(LeaseLost):
        await ask_once(sessions, ann, session.id, engine, idempotency_key="k")
    clock.advance(10)
    with pytest.raises(Interrupted):
        await ask_once(sessions, ann, session.id, engine, idempotency_key="k")
    assert len(engine.turns) == 1
    assert await sessions.leases.current(ann, session.id) is None
    await ask_once(sessions, ann, session.id, engine, idempotency_key="k2")


async def test_titles_come_from_the_prompt_then_from_the_engine_and_never_replace_a_person_s(
    sessions: Sessions, ann: Principal
) -> None:
    watcher = Watcher()
    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, Scripted(title="Mending the roof")) as opened:
        await opened.prompt(prompt("how do I fix the roof of my house"), emit=watcher)
        title = (await sessions.get(ann, session.id)).title
        assert title in ("how do I fix the roof of my house", "Mending the roof")
        await watcher.until(Titled)
        await opened.prompt(prompt("and the floor"), emit=watcher)
    found = await sessions.get(ann, session.id)
    assert (found.title, found.title_by) == ("Mending the roof", "auto")
    assert sum(isinstance(update, Titled) for update in watcher.seen) == 1

    named = await sessions.create(ann, title="Mine")
    async with sessions.opened(ann, named.id, Scripted(title="Not mine")) as opened:
        await opened.prompt(prompt("hello"))
    assert (await sessions.get(ann, named.id)).title == "Mine"
    assert (await sessions.turns.retitle(ann, named.id, "Not mine")).title == "Mine"


async def test_a_context_that_nears_the_window_is_made_smaller_before_the_turn(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    full = says("x" * 2_000, usage=Usage(input=900, output=500))
    engine = Scripted(full, says("Short."), window=1_000)
    await ask_once(sessions, ann, session.id, engine, "The first question")
    watcher = Watcher()
    await ask_once(sessions, ann, session.id, engine, "The second question", emit=watcher)
    assert [type(update) for update in watcher.seen] == [
        Stored,
        Compacting,
        Compacting,
        Compacted,
        Said,
        Stored,
    ]
    summary, asked = engine.turns[1].history
    assert summary.role == "system"
    assert "The first question" in await joined(summary)
    assert asked.parts == (Text(text="The second question"),)
    conversation = await told(sessions, ann, session.id, view="conversation")
    assert [text for text in conversation if text.startswith("The ")] == [
        "The first question",
        "The second question",
    ]


async def joined(entry: Entry) -> str:
    return "\n".join(part.text for part in entry.parts if isinstance(part, Text))


async def test_a_context_that_proves_too_long_is_made_smaller_once(
    sessions: Sessions, ann: Principal
) -> None:
    async def too_long(turn: Turn) -> AsyncIterator[Event]:
        raise ContextTooLong(f"{len(turn.history)} are too many")
        yield

    session, _ = await started(sessions, ann, "A long question. " * 100, "And one more. " * 100)
    engine = Scripted(too_long)
    outcome = await ask_once(sessions, ann, session.id, engine)
    assert outcome.text == "Noted."
    assert [len(turn.history) for turn in engine.turns] == [3, 2]
    engine = Scripted(too_long, too_long)
    with pytest.raises(ContextTooLong):
        await ask_once(sessions, ann, session.id, engine)


async def test_a_session_of_another_agent_goes_on_in_one_continuation(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    given = Imported(id="claude:1", source="claude", created_at=clock(), updated_at=clock())
    await sessions.transfer.sync(ann, given, [Entry(id="a", at=5, role="user", parts=(Text(text="Before"),))])
    with pytest.raises(ReadOnly):
        await ask_once(sessions, ann, "claude:1", Scripted())
    fork = await sessions.turns.continuation(ann, "claude:1")
    assert fork.parent == "claude:1"
    assert [each.id for each in (await sessions.find(ann)).sessions] == [fork.id]  # one row, with all of it
    assert await sessions.turns.continuation(ann, fork.id) == fork
    await ask_once(sessions, ann, fork.id, Scripted(), "After")
    again = await other.turns.continuation(ann, "claude:1")
    assert again.id == fork.id
    assert await told(other, ann, again.id) == ["Before", "After", "Noted."]
    await sessions.delete(ann, fork.id)
    assert [each.id for each in (await sessions.find(ann)).sessions] == ["claude:1"]
    assert await told(sessions, ann, (await sessions.turns.continuation(ann, "claude:1")).id) == ["Before"]


async def test_a_continuation_whose_maker_was_killed_still_takes_the_place_of_what_it_continues(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    given = Imported(id="claude:1", source="claude", created_at=clock(), updated_at=clock())
    await sessions.transfer.sync(ann, given, [Entry(id="a", at=5, role="user", parts=(Text(text="Before"),))])
    fork = await sessions.turns.continuation(ann, "claude:1")
    # As when its maker is killed behind the fork.
    await sessions.catalog.set_own_meta(ann, "claude:1", {RECORDED_IN: None})
    await sessions.archive(ann, "claude:1", archived=False)
    assert len((await sessions.find(ann)).sessions) == 2
    assert (await sessions.turns.continuation(ann, "claude:1")).id == fork.id
    assert [each.id for each in (await sessions.find(ann)).sessions] == [fork.id]


async def test_a_continuation_is_made_when_there_is_something_to_store_in_it(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    given = Imported(id="claude:1", source="claude", created_at=clock(), updated_at=clock())
    await sessions.transfer.sync(ann, given, [Entry(id="a", at=5, role="user", parts=(Text(text="Before"),))])
    assert await sessions.turns.continued(ann, "claude:1") is None

    class Picky(Scripted):
        async def window(self, choices: Choices) -> int | None:
            if choices.model is None:
                raise ModelMissing("no model")
            return None

    engine = Picky()
    async with sessions.opened(ann, "claude:1", engine, continuing=True) as opened:
        with pytest.raises(ModelMissing):
            await opened.prompt(prompt("After"))
        assert await other.turns.continued(ann, "claude:1") is None
        assert await other.count(ann) == 1
        await opened.prompt(prompt("After"), choices=Choices(model="m"))
    fork = await other.turns.continued(ann, "claude:1")
    assert fork is not None
    assert [setup.session_id for setup in engine.setups] == [fork.id] == [opened.session_id]
    assert await told(other, ann, fork.id) == ["Before", "After", "Noted."]
    assert (await other.turns.continued(ann, fork.id) or fork).id == fork.id


async def test_tool_servers_and_roots_reach_the_engine_and_end_with_the_block(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/projects/a", additional_directories=["/projects/b"])
    engine = Scripted()
    async with sessions.opened(ann, session.id, engine, local=False):
        assert engine.open_now == 1
    (setup,) = engine.setups
    assert (setup.session_id, setup.roots, setup.local) == (session.id, ("/projects/a", "/projects/b"), False)
    assert engine.open_now == 0


def test_live_text_is_a_value_that_anybody_can_read() -> None:
    assert Live(entry="e").parts == ()
    assert ToolCall(id="c", name="n").kind is None


async def test_a_turn_that_slept_past_its_lease_goes_on_if_nobody_has_had_it(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="Good ")
        clock.advance(3_600_000)
        yield Delta(text="morning")
        yield Message(parts=(Text(text="Good morning"),))

    session = await sessions.create(ann)
    outcome = await ask_once(sessions, ann, session.id, Scripted(script))
    assert outcome.text == "Good morning"
    assert await told(other, ann, session.id) == ["Go", "Good morning"]
    assert (await other.get(ann, session.id)).status == "idle"
    assert await other.leases.current(ann, session.id) is None


async def test_cancelling_again_and_again_changes_nothing_about_the_end(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(Text(text="I look."), call(id="c1")))
        yield ToolEnded(result=result("c1"))
        yield Message(parts=(Text(text="Done."), call(id="c2")))

    for count in (*range(25), *range(25, 3_000, 150)):
        session, beside = await sessions.create(ann), await sessions.create(ann)
        async with sessions.opened(ann, session.id, Scripted(script)) as opened:
            others = [asyncio.create_task(sessions.append(ann, beside.id, say("x"))) for _ in range(3)]
            running = await in_background(opened)
            await steps(count)
            for _ in range(3):
                running.cancel()
                opened.cancel()
                await steps(1)
            await arrives(asyncio.wait([running, *others]), "the end of all that was begun")
        found = await other.get(ann, session.id)
        assert (found.status, await other.leases.current(ann, session.id)) == ("idle", None), count
        parts = [part for entry in await entries(other, ann, session.id) for part in entry.parts]
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert sorted(calls) == sorted(part.id for part in parts if isinstance(part, ToolResult)), count


async def test_what_cannot_be_stored_does_not_leave_the_session_running(
    sessions: Sessions, ann: Principal
) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="x" * 17_000_000)
        yield Message(parts=(Text(text="x" * 17_000_000),))

    session = await sessions.create(ann)
    with pytest.raises(TooLarge):
        await ask_once(sessions, ann, session.id, Scripted(script))
    assert (await sessions.get(ann, session.id)).status == "failed"
    half = (await entries(sessions, ann, session.id))[-1]
    assert half.meta["partial"] == CUT_OFF
    assert (await ask_once(sessions, ann, session.id, Scripted())).text == "Noted."


async def test_whoever_watches_badly_breaks_the_turn_but_not_the_session(
    sessions: Sessions, ann: Principal
) -> None:
    def broken(_: object) -> None:
        raise ValueError("no")

    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, Scripted()) as opened:
        with pytest.raises(EngineError, match="no"):
            await opened.prompt(prompt("Go"), emit=broken)
        assert not opened.running
        assert (await opened.prompt(prompt("Again"))).text == "Noted."


async def test_a_context_that_grows_too_long_in_a_turn_is_made_smaller_and_the_turn_goes_on(
    sessions: Sessions, ann: Principal
) -> None:
    async def looks(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(call(id="c1"),))
        yield ToolEnded(result=result("c1", "y" * 2_000))
        raise ContextTooLong("too much of it")

    session = await sessions.create(ann)
    engine = Scripted(says("An answer. " * 400), looks, says("Done."))
    await ask_once(sessions, ann, session.id, engine, "The first question. " * 200)
    outcome = await ask_once(sessions, ann, session.id, engine, "The second question")
    assert (outcome.text, outcome.requests) == ("Done.", 2)
    assert [entry.role for entry in engine.turns[2].history] == ["system", "user", "assistant", "tool"]


async def test_a_context_that_was_made_smaller_is_not_made_smaller_for_what_it_took_before(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    async def fails(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        raise ModelUnreachable("away")
        yield

    session = await sessions.create(ann)
    engine = Scripted(
        *[says("An answer. " * 100, usage=Usage(input=900, output=50))] * 3, *[fails] * 3, window=1_000
    )
    for number in range(3):
        clock.advance()
        await ask_once(sessions, ann, session.id, engine, f"Question {number}. " * 50)
    shrunk = 0
    for _ in range(3):
        clock.advance()
        watcher = Watcher()
        with pytest.raises(ModelUnreachable):
            await ask_once(sessions, ann, session.id, engine, "And?", emit=watcher)
        shrunk += sum(isinstance(update, Compacted) for update in watcher.seen)
    assert shrunk == 1


async def test_the_cost_of_half_an_answer_is_unknown(sessions: Sessions, ann: Principal) -> None:
    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(call(id="c1"),), usage=Usage(input=100, output=10, cost=0.5))
        yield ToolEnded(result=result("c1"))
        yield Delta(text="And")
        await asyncio.Event().wait()

    session = await sessions.create(ann)
    watcher = Watcher()
    async with sessions.opened(ann, session.id, Scripted(script)) as opened:
        running = await in_background(opened, emit=watcher)
        await watcher.until(Said)
        opened.cancel()
        outcome = await arrives(running, "the end of the turn")
    assert (outcome.usage, outcome.requests) == (Usage(), 2)


async def test_a_closed_session_takes_no_prompt_and_closing_waits_for_none(
    sessions: Sessions, ann: Principal
) -> None:
    class Slow(Scripted):
        async def window(self, choices: Choices) -> int | None:  # noqa: ARG002
            await asyncio.Event().wait()
            return None

        async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
            await asyncio.Event().wait()
            return None

    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, Slow()) as opened:
        running = await in_background(opened)
        await steps(3)
    assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
    with pytest.raises(InvalidInput, match="closed"):
        await opened.prompt(prompt("Too late"))
    assert await told(sessions, ann, session.id) == []


async def test_each_tool_call_of_a_session_has_an_id_of_its_own_whatever_the_provider_calls_it(
    sessions: Sessions, ann: Principal
) -> None:
    async def counts_from_zero(turn: Turn) -> AsyncIterator[Event]:
        for command in ("a", "b"):
            asked = call("run_command", "execute", "call_0", command=command)
            yield Message(parts=(asked,))
            assert (await turn.permit(asked)).allowed
            yield ToolProgress(id="call_0")
            yield ToolEnded(result=result("call_0", command))
        yield Message(parts=(Text(text="ok"),))

    session, watcher, questions = await sessions.create(ann), Watcher(), list[str]()

    async def ask(asked: ToolCall) -> Choice:
        questions.append(asked.id)
        return "allow_once"

    for _ in range(2):
        await ask_once(sessions, ann, session.id, Scripted(counts_from_zero), emit=watcher, ask=ask)
    parts = [part for entry in await entries(sessions, ann, session.id) for part in entry.parts]
    calls = [part.id for part in parts if isinstance(part, ToolCall)]
    assert calls == ["call_0", "call_0-2", "call_0-3", "call_0-4"] == questions
    results = [part for part in parts if isinstance(part, ToolResult)]
    assert results == [result(number, text) for number, text in zip(calls, "abab", strict=True)]
    progress = [update for update in watcher.seen if isinstance(update, ToolProgress)]
    assert [update.id for update in progress] == [
        each for each in calls for _ in range(2)
    ]  # permitted, then seen to run
