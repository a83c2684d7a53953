"""The inbox: what is said while a turn runs is stored at once, once, and becomes part of the session in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Delta, Event, Message, ToolEnded, Turn
from hitherto.errors import (
    AlreadyExists,
    Busy,
    EntryNotFound,
    InboxFull,
    Interrupted,
    InvalidInput,
    ModelRefused,
)
from hitherto.limits import INBOX_ROWS
from hitherto.model import Pending, Principal, QueueMode, Text, ToolCall, ToolResult, plain_text
from hitherto.service import Runner, Sessions
from hitherto.service.history.inbox import ABANDONED_MS, next_rows, steering_rows
from hitherto.updates import Outcome, Queued
from tests.support.conversations import say, started, told
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted, Watcher, prompt, says
from tests.support.waits import arrives

SERVER = Runner("server")
ABSENT, SLOW = (Runner(name, wake=lambda: None) for name in ("absent", "slow"))
LONG_MS = 3_600_000


async def waiting(sessions: Sessions, who: Principal, session_id: str) -> list[str]:
    return [
        plain_text(entry) for row in await sessions.inbox.waiting(who, session_id) for entry in row.entries
    ]


class Gate:
    """A script that speaks, waits for leave, and says more: it runs for as long as a test wants."""

    def __init__(self, *steps: Event) -> None:
        self.steps, self.speaking, self.go = steps, asyncio.Event(), asyncio.Event()
        self.steered: list[str] = []

    async def __call__(self, turn: Turn) -> AsyncIterator[Event]:
        yield Delta(text="…")
        self.speaking.set()
        for step in self.steps:
            yield step
            self.steered += [plain_text(entry) for entry in await turn.steered()]
        await arrives(self.go.wait(), "leave to go on")
        self.steered += [plain_text(entry) for entry in await turn.steered()]
        yield Message(parts=(Text(text="Answer"),))


async def test_what_is_appended_while_a_turn_runs_waits_behind_it(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    lease = await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    first = await other.append(ann, session.id, [say("b"), say("c")], idempotency_key="k")
    second = await other.append(ann, session.id, say("d", id="mine"))
    assert (first.place, first.message_count, second.place) == (1, 1, 2)
    with pytest.raises(AlreadyExists):
        await other.append(ann, session.id, say("again", id="mine"))
    assert await told(sessions, ann, session.id) == ["a"]
    assert await waiting(sessions, ann, session.id) == ["b", "c", "d"]
    assert await other.append(ann, session.id, [say("b"), say("c")], idempotency_key="k") == first
    await sessions.append(ann, session.id, say("step"), fence=lease.fence)
    await sessions.leases.release(ann, session.id, lease.fence)
    assert await told(other, ann, session.id) == ["a", "step", "b", "c", "d"]
    page = await other.history(ann, session.id)
    assert [entry.id for entry in page.entries][2:] == [*first.entries, "mine"]
    assert await waiting(other, ann, session.id) == []


async def test_what_waits_is_placed_when_a_dead_turn_s_lease_is_over(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.leases.acquire(ann, session.id, "dead", ttl_ms=1_000)
    await sessions.append(ann, session.id, say("b"))
    assert await sessions.inbox.everywhere() == [(ann.owner, session.id)]
    clock.advance(2_000)
    assert (await sessions.append(ann, session.id, say("c"))).place is None
    assert await told(sessions, ann, session.id) == ["a", "b", "c"]
    assert await sessions.inbox.everywhere() == []


async def test_an_inbox_is_bounded_and_its_messages_are_cancelled_and_moved(
    sessions: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    lease = await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    ids = [(await sessions.append(ann, session.id, say(text))).entries[0] for text in "bcd"]
    assert await sessions.inbox.cancel(ann, session.id, ids[1])
    assert not await sessions.inbox.cancel(ann, session.id, ids[1])
    await sessions.inbox.move(ann, session.id, ids[2], 1)
    assert await waiting(sessions, ann, session.id) == ["d", "b"]
    assert await sessions.inbox.move(ann, session.id, ids[2], 99) == 2
    assert await waiting(sessions, ann, session.id) == ["b", "d"]
    with pytest.raises(EntryNotFound):
        await sessions.inbox.move(ann, session.id, ids[1], 1)
    with pytest.raises(InvalidInput):
        await sessions.inbox.move(ann, session.id, ids[0], 0)
    await sessions.erase(ann, session.id, ids[2])
    for number in range(INBOX_ROWS - 1):
        await sessions.append(ann, session.id, say(str(number)))
    with pytest.raises(InboxFull):
        await sessions.append(ann, session.id, say("too many"))
    await sessions.leases.release(ann, session.id, lease.fence)
    assert (await told(sessions, ann, session.id))[:3] == ["a", "b", "0"]


async def test_what_waits_goes_with_its_session(sessions: Sessions, ann: Principal) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    await sessions.append(ann, session.id, say("b"))
    await sessions.delete(ann, session.id)
    assert await sessions.inbox.everywhere() == []


async def asked(
    opened: object, text: str, queue: QueueMode, **more: object
) -> tuple[asyncio.Task[Outcome], Watcher]:
    """A prompt that waits."""
    watcher = Watcher()
    task = asyncio.create_task(opened.prompt(prompt(text), queue=queue, emit=watcher, **more))  # type: ignore[attr-defined]
    await watcher.until(Queued)
    return task, watcher


async def test_a_followup_has_the_next_turn_and_what_follows_it_stays_behind_it(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    gate = Gate()
    session, _ = await started(sessions, ann, "a")
    engine = Scripted(gate)
    async with sessions.opened(ann, session.id, engine) as one, other.opened(ann, session.id, engine) as two:
        running = asyncio.create_task(one.prompt(prompt("One")))
        await arrives(gate.speaking.wait(), "the first words")
        followup, watcher = await asked(two, "Two", "followup", idempotency_key="k")
        late = await other.append(ann, session.id, say("behind"))
        assert (watcher.seen[0].place, late.place) == (1, 2)  # type: ignore[union-attr]
        gate.go.set()
        await arrives(running, "the end of the turn")
        ended = await arrives(followup, "the end of the next turn")
        assert (ended.stop_reason, ended.text) == ("end_turn", "Noted.")
        again = await two.prompt(prompt("Two"), queue="followup", idempotency_key="k")
        assert (again.prompt, again.text) == (ended.prompt, "Noted.")
    assert await told(sessions, ann, session.id) == ["a", "One", "Answer", "Two", "Noted.", "behind"]


async def test_a_prompt_that_is_called_off_while_it_is_being_stored_leaves_nothing_in_the_inbox(
    sessions: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    async with sessions.opened(ann, session.id, Scripted()) as opened:
        for steps in range(20):
            asking = asyncio.create_task(opened.prompt(prompt("Never mind"), queue="followup"))
            for _ in range(steps):
                await asyncio.sleep(0)
            opened.cancel()
            asking.cancel()
            await arrives(asyncio.wait([asking]), "the end of the prompt")
            assert await waiting(sessions, ann, session.id) == []


async def test_a_prompt_behind_one_that_nobody_answers_has_its_turn_all_the_same(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    lease = await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    async with (
        sessions.opened(ann, session.id, Scripted(), runner=ABSENT) as absent,
        other.opened(ann, session.id, Scripted()) as here,
    ):
        unanswered, _ = await asked(absent, "One", "followup")
        answered, _ = await asked(here, "Two", "followup")
        await sessions.leases.release(ann, session.id, lease.fence)
        clock.advance(ABANDONED_MS + 1_000)
        assert (await arrives(answered, "the end of the turn")).stop_reason == "end_turn"
        with pytest.raises(Interrupted):
            await arrives(unanswered, "the end of the prompt that was placed without a turn")
    assert await told(sessions, ann, session.id) == ["a", "One", "Two", "Noted."]


async def test_who_waits_behind_a_prompt_that_was_placed_is_given_time_for_its_turn(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    lease = await sessions.leases.acquire(ann, session.id, "holder", ttl_ms=LONG_MS)
    async with (
        sessions.opened(ann, session.id, Scripted(), runner=ABSENT) as absent,
        sessions.opened(ann, session.id, Scripted(), runner=SLOW) as slow,
    ):
        waits = [(await asked(absent, "One", "followup"))[0], (await asked(slow, "Two", "followup"))[0]]
        await sessions.leases.release(ann, session.id, lease.fence)
        clock.advance(ABANDONED_MS + 1_000)
        for text in ("b", "c"):
            await sessions.append(ann, session.id, say(text))
        assert await told(sessions, ann, session.id) == ["a", "One"]
        assert await waiting(sessions, ann, session.id) == ["Two", "b", "c"]
        for each in waits:
            each.cancel()
        await arrives(asyncio.wait(waits), "the end of the prompts")


async def test_what_steers_reaches_the_running_turn_behind_a_tool_s_result(
    sessions: Sessions, ann: Principal
) -> None:
    call = Message(parts=(ToolCall(id="c", name="look"),))
    result = ToolEnded(result=ToolResult(id="c", content=(Text(text="seen"),)))
    waits, go = asyncio.Event(), asyncio.Event()

    async def script(turn: Turn) -> AsyncIterator[Event]:
        yield call
        waits.set()
        await arrives(go.wait(), "leave to go on")
        assert await turn.steered() == ()  # never between a call and its result
        yield result
        words = [plain_text(entry) for entry in await turn.steered()]
        yield Message(parts=(Text(text=" and ".join(words)),))

    session, _ = await started(sessions, ann, "a")
    async with sessions.opened(ann, session.id, Scripted(script), runner=SERVER) as opened:
        running = asyncio.create_task(opened.prompt(prompt("One")))
        await arrives(waits.wait(), "the call")
        first, _ = await asked(opened, "left", "steer")
        second, _ = await asked(opened, "right", "steer")
        go.set()
        outcomes = [await arrives(each, "the end of the turn") for each in (running, first, second)]
    assert [outcome.text for outcome in outcomes] == ["left and right"] * 3
    assert len({outcome.prompt for outcome in outcomes}) == 3
    roles = [entry.role for entry in (await sessions.history(ann, session.id)).entries]
    assert roles == ["user", "user", "assistant", "tool", "user", "user", "assistant"]


async def test_collected_prompts_are_one_turn_whose_end_all_get(sessions: Sessions, ann: Principal) -> None:
    gate, failing = Gate(), ModelRefused("the key is wrong")

    async def fails(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Delta(text="So")
        raise failing

    session, _ = await started(sessions, ann, "a")
    engine = Scripted(gate, fails, says("Fine"))
    async with sessions.opened(ann, session.id, engine) as opened:
        running = asyncio.create_task(opened.prompt(prompt("One")))
        await arrives(gate.speaking.wait(), "the first words")
        group = [(await asked(opened, text, "collect"))[0] for text in ("Two", "Three")]
        alone, _ = await asked(opened, "Four", "followup")
        gate.go.set()
        await arrives(running, "the end of the turn")
        for each in group:
            with pytest.raises(ModelRefused, match="the key is wrong"):
                await arrives(each, "the end of the collected turn")
        assert (await arrives(alone, "the end of the last turn")).text == "Fine"
    assert await told(sessions, ann, session.id) == [
        "a", "One", "Answer", "Two", "Three", "So", "Four", "Fine",
    ]  # fmt: skip


async def test_an_interruption_ends_the_turn_and_takes_what_waited(
    sessions: Sessions, ann: Principal
) -> None:
    gate = Gate()
    session, _ = await started(sessions, ann, "a")
    async with sessions.opened(ann, session.id, Scripted(gate)) as opened:
        running = asyncio.create_task(opened.prompt(prompt("One")))
        await arrives(gate.speaking.wait(), "the first words")
        before, _ = await asked(opened, "Two", "followup")
        urgent, _ = await asked(opened, "Stop", "interrupt")
        assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
        texts = [(await arrives(each, "the end of the next turn")).text for each in (before, urgent)]
    assert texts == ["Noted.", "Noted."]
    assert await told(sessions, ann, session.id) == ["a", "One", "…", "Two", "Stop", "Noted."]


async def test_a_prompt_that_was_left_waiting_is_answered_by_another_runner_of_its_kind(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.leases.acquire(ann, session.id, "dead", ttl_ms=1_000)
    wakened: list[None] = []
    left = Runner("server", lambda: wakened.append(None))
    async with sessions.opened(ann, session.id, Scripted(), runner=left) as opened:
        task, watcher = await asked(opened, "One", "followup", idempotency_key="k")
    await arrives(asyncio.wait([task]), "its waiter to leave")
    clock.advance(2_000)
    async with other.opened(ann, session.id, Scripted(), runner=Runner("another")) as opened:
        assert not await opened.run_next()
        with pytest.raises(Busy):
            await opened.prompt(prompt("No"))
    async with other.opened(ann, session.id, Scripted(), runner=SERVER) as opened:
        assert await opened.run_next()
        assert not await opened.run_next()
        known = await opened.prompt(prompt("One"), queue="followup", idempotency_key="k")
    assert (known.prompt, known.text) == (watcher.seen[0].entry, "Noted.")  # type: ignore[union-attr]
    assert await told(sessions, ann, session.id) == ["a", "One", "Noted."]


async def test_a_prompt_that_nobody_answers_for_long_is_placed_without_a_turn(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    await sessions.leases.acquire(ann, session.id, "dead", ttl_ms=1_000)
    async with sessions.opened(ann, session.id, Scripted(), runner=Runner("gone", lambda: None)) as opened:
        task, _ = await asked(opened, "One", "followup")
    await arrives(asyncio.wait([task]), "its waiter to leave")
    clock.advance(120_000)
    async with sessions.opened(ann, session.id, Scripted()) as opened:
        assert (await opened.prompt(prompt("Two"))).text == "Noted."
    assert await told(sessions, ann, session.id) == ["a", "One", "Two", "Noted."]


def row(name: str, mode: QueueMode | None, by: str = "me") -> Pending:
    return Pending(id=name, at=0, entries=(), mode=mode, by=by)


@pytest.mark.parametrize(
    ("rows", "taken", "steering"),
    [
        ("", "", ""),
        ("f1 f2", "f1", ""),
        ("s1 s2 f3", "s1", "s1 s2"),
        ("c1 n2 c3 n4 f5", "c1 n2 c3", ""),
        ("c1 i2 f3", "c1 i2", ""),
        ("n1 f2", "", ""),
        ("x1 f2", "", ""),
        ("f1 x2 i3", "f1", ""),
    ],
)
def test_which_rows_the_next_turn_and_the_running_one_take(rows: str, taken: str, steering: str) -> None:
    modes: dict[str, QueueMode | None] = {
        "f": "followup", "s": "steer", "c": "collect", "i": "interrupt", "n": None, "x": "followup",
    }  # fmt: skip
    waits = [row(name, modes[name[0]], "you" if name[0] == "x" else "me") for name in rows.split()]
    assert [each.id for each in next_rows(waits, "me")] == taken.split()
    assert [each.id for each in steering_rows(waits, "me")] == steering.split()
