"""The checker of histories: it explains what can be explained, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.support.homes import Clock, Home
from torture.histories.calls import Call, Event, Named, begin, make, spelled
from torture.histories.checker import Model, Undecided, UndoableStore, explain
from torture.histories.clients import CLIENTS, Task, record

ANN = Principal(owner="ann")
APPEND_1, APPEND_2 = Call("one", "append", "a"), Call("two", "append", "a")
READ = Call("read", "context", "a")


async def answers(*calls: Call) -> list[str]:
    """What a store that does one thing at a time answers to these, in this order."""
    ids = Named()
    sessions = Sessions(UndoableStore(), now=Clock(), new_id=ids)
    await begin(sessions, ANN)
    return [spelled(await make(sessions, ids, ANN, call)) for call in calls]


async def recorded(*calls: Call, spread: int = 0) -> list[Event]:
    """The same as a history in which each overlaps with so many before and after it."""
    told = await answers(*calls)
    return [
        Event(call, 10 * number - 10 * spread, 10 * number + 5 + 10 * spread, answer)
        for number, (call, answer) in enumerate(zip(calls, told, strict=True))
    ]


def order(events: Sequence[Event] | None) -> list[str] | None:
    return None if events is None else [event.call.name for event in events]


MIXED = (
    APPEND_1,
    Call("f", "fork", "a", "a2"),
    Call("l", "acquire", "a", "holder"),
    Call("busy", "append", "a"),
    Call("fenced", "append", "a", fence=1),
    Call("r", "rewind", "a", "a3", fence=1),
    Call("u", "release", "a", fence=1),
    Call("s", "compact", "a"),
    Call("back", "restore", "a", "of-r"),
    Call("e", "erase", "a", "a1"),
    Call("d", "delete", "fork-f"),
    Call("gone", "get", "fork-f"),
    Call("h", "history", "a"),
)


@pytest.mark.parametrize("spread", [0, 1, 2])
async def test_a_history_that_was_done_one_after_the_other_is_explained(spread: int) -> None:
    events = await recorded(*MIXED, spread=spread)
    assert "place=1" in events[3].answer
    found = await explain(events)
    assert found is not None
    assert await answers(*(event.call for event in found)) == [event.answer for event in found]


async def test_calls_at_the_same_time_are_explained_by_their_answers_not_by_their_ends() -> None:
    first, second = await answers(APPEND_2, APPEND_1)
    events = [Event(APPEND_1, 0, 10, second), Event(APPEND_2, 0, 20, first)]
    assert order(await explain(events)) == ["two", "one"]


async def test_a_lost_update_is_found() -> None:
    """Both appends were acknowledged with the same revision, and the second has overwritten the first."""
    (first,) = await answers(APPEND_1)
    second, seen = await answers(APPEND_2, READ)
    both = [Event(APPEND_1, 0, 20, first), Event(APPEND_2, 0, 20, second)]
    assert order(await explain(both)) is None
    assert order(await explain([both[1], Event(READ, 30, 40, seen)])) == ["two", "read"]
    kept_one = [
        both[0],
        Event(APPEND_2, 0, 20, (await answers(APPEND_1, APPEND_2))[1]),
        Event(READ, 30, 40, seen),
    ]
    assert order(await explain(kept_one)) is None


async def test_a_dirty_read_is_found() -> None:
    """A reader saw a message of an append that was refused in the end."""
    lease = Call("l", "acquire", "a", "holder")
    refused = (await answers(lease, APPEND_1))[1]
    (_, seen), (_, unseen) = await answers(APPEND_1, READ), await answers(lease, READ)
    held, tried = Event(lease, 0, 5, (await answers(lease))[0]), Event(APPEND_1, 10, 30, refused)
    assert order(await explain([held, tried, Event(READ, 15, 20, unseen)])) is not None
    assert order(await explain([held, tried, Event(READ, 15, 20, seen)])) is None


async def test_what_was_acknowledged_before_a_read_began_must_be_in_it() -> None:
    appended, seen = await answers(APPEND_1, READ)
    (unseen,) = await answers(READ)
    done = Event(APPEND_1, 0, 10, appended)
    assert order(await explain([done, Event(READ, 5, 20, unseen)])) == ["read", "one"]
    assert order(await explain([done, Event(READ, 11, 20, unseen)])) is None
    assert order(await explain([done, Event(READ, 11, 20, seen)])) == ["one", "read"]


async def test_where_the_search_came_farthest_is_told() -> None:
    events = await recorded(*MIXED)
    model = Model([*events[:5], events[5]._replace(answer="nonsense"), *events[6:]])
    assert await model.explained() is None
    assert order(model.stuck()) == ["r"]


async def test_two_who_hold_the_same_lease_are_found() -> None:
    first, second = Call("l1", "acquire", "a", "h1"), Call("l2", "acquire", "a", "h2")
    told = [*await answers(first), *await answers(second)]
    assert order(await explain([Event(first, 0, 10, told[0]), Event(second, 0, 10, told[1])])) is None


async def test_a_search_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(Undecided):
        await Model(await recorded(*MIXED), steps=5).explained()


async def test_what_eight_processes_did_is_explained(shared_home: Home, tmp_path: Path) -> None:
    """Few calls: `make torture` has them do much more."""
    task = Task(shared_home.url, seed=1, histories=2, calls=4)
    histories = await record(shared_home.url, tmp_path, task, {})
    assert [len({event.call.name for event in events}) >= CLIENTS * task.calls for events in histories] == [
        True,
        True,
    ]
    for events in histories:
        assert await explain(events) is not None
