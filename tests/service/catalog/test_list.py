"""Finding sessions: every filter, the order, and pages that miss nothing."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest

from hitherto.limits import LIST_PAGE
from hitherto.model import STATUSES, Filter, Principal
from hitherto.service import Sessions
from hitherto.values.filters import normal_filter, passes
from tests.support.conversations import exported, listed, say, started, talk, walk
from tests.support.homes import Clock

Edit = Callable[[Sessions, Principal, str], Awaitable[object]]


async def test_the_newest_activity_comes_first(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = []
    for _ in range(5):
        ids.append((await sessions.create(ann)).id)
        clock.advance()
    assert await listed(reader, ann) == ids[::-1]
    await talk(sessions, ann, ids[1], "Hello")
    assert await listed(reader, ann) == [ids[1], ids[4], ids[3], ids[2], ids[0]]


async def test_sessions_of_the_same_moment_are_ordered_by_id(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    given = ["b", "a", "Z", "ä", "zz", "z", "_", "-", "😀", "\uffff"]
    for session_id in given:
        await sessions.create(ann, session_id=session_id)
    assert await listed(reader, ann, limit=3) == sorted(given, key=str.encode, reverse=True)


async def test_a_rename_a_tag_or_a_pin_does_not_move_a_session(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old = await sessions.create(ann)
    clock.advance()
    new = await sessions.create(ann)
    clock.advance()
    await sessions.rename(ann, old.id, "Renamed")
    await sessions.tag(ann, old.id, add=["t"])
    await sessions.pin(ann, old.id)
    await reader.history(ann, old.id)
    assert await listed(reader, ann) == [new.id, old.id]


async def test_a_message_from_the_future_does_not_stay_on_top(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ahead = await sessions.create(ann)
    await sessions.append(ann, ahead.id, say("From the future", at=clock.now + 10_000_000))
    clock.advance()
    later, _ = await started(sessions, ann, "Now")
    assert await listed(reader, ann) == [later.id, ahead.id]


async def test_those_that_run_are_found_with_those_that_wait_in_one_order(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = []
    for number in range(12):
        made = await sessions.create(ann, tags=["t"] if number % 2 else [])
        await sessions.catalog.set_status(ann, made.id, STATUSES[number % 4])
        await sessions.archive(ann, made.id, archived=number > 9)
        ids.append(made.id)
        clock.advance()
    busy = [ids[number] for number in range(11, -1, -1) if STATUSES[number % 4] in ("running", "waiting")]
    shown = [each for each in busy if each in ids[:10]]
    for given, found in (
        (Filter(status="running"), shown),
        (Filter(status="running", archived="include"), busy),
        (Filter(status="running", updated_after=0), shown),
        (Filter(status="running", tags=("t",)), [each for each in shown if ids.index(each) % 2]),
        (Filter(status="waiting"), [each for each in shown if ids.index(each) % 4 == 2]),
    ):
        for limit in (1, 2, 50):
            assert await listed(reader, ann, given, limit=limit) == found, given
        assert await reader.count(ann, given) == len(found)


async def test_each_filter_finds_what_it_names(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    plain = await sessions.create(ann)
    start = clock.advance()
    chosen = await sessions.create(
        ann, cwd="/srv/app", title="Rebuild parseFile", tags=["red", "blue"], agent_id="coder", channel="irc"
    )
    middle = clock.advance()
    await talk(sessions, ann, chosen.id, "Hello")
    await sessions.catalog.set_status(ann, chosen.id, "waiting")
    await sessions.pin(ann, chosen.id)
    end = clock.advance()
    for given in (
        Filter(cwd="/srv/./app/"),
        Filter(agent_id="coder"),
        Filter(channel="irc"),
        Filter(status="waiting"),
        Filter(status="running"),
        Filter(tags=("red",)),
        Filter(tags=("red", "blue", "red")),
        Filter(text="REBUILD"),
        Filter(text="file"),
        Filter(text='"rebuild parse*'),
        Filter(pinned=True),
        Filter(created_after=start),
        Filter(created_after=start, created_before=middle),
        Filter(updated_after=middle),
        Filter(updated_after=middle, updated_before=end),
    ):
        assert await listed(reader, ann, given) == [chosen.id], given
        assert await reader.count(ann, given) == 1, given
    for given in (
        Filter(cwd="/srv"),
        Filter(cwd="/srv/app/below"),
        Filter(agent_id="Coder"),
        Filter(channel="ir"),
        Filter(source="claude"),
        Filter(status="failed"),
        Filter(tags=("red", "green")),
        Filter(tags=("re",)),
        Filter(text="rebuilds"),
        Filter(text="Hello"),
        Filter(archived="only"),
        Filter(created_before=start, created_after=start),
        Filter(updated_after=end),
    ):
        assert await listed(reader, ann, given) == [], given
        assert await reader.count(ann, given) == 0, given
    assert await listed(reader, ann, Filter(pinned=False)) == [plain.id]


async def test_a_session_read_from_another_agent_is_found_by_its_source(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    lines = await exported(sessions, ann, session.id)
    lines[0] = lines[0].replace(b'"session":{', b'"session":{"source":"claude",')
    copy = await sessions.import_(ann, lines, new_id=True)
    for given, found in (
        (Filter(source="claude"), [copy.id]),
        (Filter(native=False), [copy.id]),
        (Filter(native=True), [session.id]),
        (Filter(native=True, source="claude"), []),
    ):
        assert await listed(reader, ann, given) == found, given
        assert await reader.count(ann, given) == len(found), given


async def test_archived_sessions_are_left_out_included_or_alone(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    kept = await sessions.create(ann)
    clock.advance()
    away = await sessions.create(ann)
    await sessions.archive(ann, away.id)
    assert await listed(reader, ann) == [kept.id]
    assert await listed(reader, ann, Filter(archived="include")) == [away.id, kept.id]
    assert await listed(reader, ann, Filter(archived="only")) == [away.id]
    assert await reader.count(ann) == 1


async def test_earlier_titles_are_found_too(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann, title="Ancient name")
    await sessions.rename(ann, session.id, "Modern name")
    assert await listed(reader, ann, Filter(text="ancient")) == [session.id]
    assert await listed(reader, ann, Filter(text="modern")) == [session.id]
    assert await listed(reader, ann, Filter(text="ancient modern")) == [session.id]


def some_filter(dice: random.Random) -> Filter:
    """A filter of one to four conditions."""
    choices: dict[str, object] = {
        "cwd": dice.choice(["/a", "/b"]),
        "agent_id": dice.choice(["x", "y"]),
        "channel": dice.choice(["irc", "mail"]),
        "status": dice.choice(STATUSES),
        "tags": tuple(dice.sample(["t1", "t2", "t3"], dice.randint(1, 2))),
        "text": dice.choice(["alpha", "beta gamma", "al*", '"alpha beta"']),
        "archived": dice.choice(["exclude", "include", "only"]),
        "pinned": dice.random() < 0.5,
        "created_after": 1_750_000_000_000 + dice.randint(0, 30) * 1_000,
        "updated_before": 1_750_000_000_000 + dice.randint(20, 60) * 1_000,
    }
    names = dice.sample(sorted(choices), dice.randint(1, 4))
    return Filter(**{name: choices[name] for name in names})  # type: ignore[arg-type]


async def some_sessions(
    sessions: Sessions, who: Principal, clock: Clock, dice: random.Random, count: int
) -> None:
    """Sessions that have this and that."""
    titles = ["alpha", "alpha beta", "beta gamma", "Alphabet", None]
    for _ in range(count):
        made = await sessions.create(
            who,
            cwd=dice.choice(["/a", "/b", None]),
            title=dice.choice(titles),
            tags=dice.sample(["t1", "t2", "t3"], dice.randint(0, 3)),
            agent_id=dice.choice(["x", "y", None]),
            channel=dice.choice(["irc", "mail", None]),
        )
        await sessions.catalog.set_status(who, made.id, dice.choice(STATUSES))
        await sessions.archive(who, made.id, archived=dice.random() < 0.3)
        await sessions.pin(who, made.id, pinned=dice.random() < 0.3)
        clock.advance(dice.choice([0, 1_000]))


async def test_filters_in_any_combination_find_what_they_mean_in_order(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    dice = random.Random(7)
    await some_sessions(sessions, ann, clock, dice, 40)
    await some_sessions(sessions, bob, clock, dice, 5)
    whole = [session async for page in walk(reader, ann, Filter(archived="include")) for session in page]
    assert len(whole) == 40
    for _ in range(60):
        given = some_filter(dice)
        meant = [session.id for session in whole if passes(session, normal_filter(given))]
        assert await listed(reader, ann, given, limit=dice.choice([1, 3, 50])) == meant, given
        assert await reader.count(ann, given) == len(meant), given


@pytest.mark.parametrize("limit", [1, 2, 7, LIST_PAGE])
async def test_pages_of_any_size_hold_each_session_once(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, limit: int
) -> None:
    ids = []
    for number in range(20):
        ids.append((await sessions.create(ann)).id)
        clock.advance(number % 3)
    found = await listed(reader, ann, limit=limit)
    assert sorted(found) == sorted(ids)
    assert len((await reader.find(ann, limit=limit)).sessions) == min(limit, 20)


async def test_a_cursor_is_good_in_the_other_connection(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = []
    for _ in range(4):
        ids.append((await sessions.create(ann)).id)
        clock.advance()
    first = await sessions.find(ann, limit=2)
    rest = await other.find(ann, cursor=first.cursor, limit=2)
    assert [session.id for session in (*first.sessions, *rest.sessions)] == ids[::-1]


EDITS: dict[str, Edit] = {
    "written": lambda sessions, who, session_id: talk(sessions, who, session_id, "More"),
    "renamed": lambda sessions, who, session_id: sessions.rename(who, session_id, "Renamed wanted"),
    "tagged": lambda sessions, who, session_id: sessions.tag(who, session_id, add=["wanted"]),
    "archived": lambda sessions, who, session_id: sessions.archive(who, session_id),
    "taken back": lambda sessions, who, session_id: sessions.archive(who, session_id, archived=False),
    "pinned": lambda sessions, who, session_id: sessions.pin(who, session_id),
    "deleted": lambda sessions, who, session_id: sessions.delete(who, session_id),
    "forked": lambda sessions, who, session_id: sessions.fork(who, session_id),
    "reset": lambda sessions, who, session_id: sessions.reset(who, session_id),
    "made": lambda sessions, who, _: sessions.create(who, title="wanted", tags=["wanted"]),
}


async def disturbed(
    sessions: Sessions, who: Principal, given: Filter, limit: int, disturb: Callable[[], Awaitable[None]]
) -> list[str]:
    """The ids that a walk shows while things happen between its pages."""
    page = await sessions.find(who, given, limit=limit)
    seen = [session.id for session in page.sessions]
    while page.cursor is not None:
        await disturb()
        page = await sessions.find(who, given, cursor=page.cursor, limit=limit)
        seen += [session.id for session in page.sessions]
    return seen


@pytest.mark.parametrize(
    "given",
    [Filter(), Filter(archived="include"), Filter(tags=("wanted",)), Filter(text="wanted")],
    ids=["all", "archived too", "tagged", "titled"],
)
async def test_a_walk_misses_no_session_whatever_happens_meanwhile(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock, given: Filter
) -> None:
    dice = random.Random(11)
    for _ in range(30):
        made = await sessions.create(ann, title=dice.choice(["wanted", "other"]), tags=["wanted"])
        await sessions.archive(ann, made.id, archived=dice.random() < 0.2)
        clock.advance(dice.choice([0, 1_000]))
    budget = 40

    async def disturb() -> None:
        nonlocal budget
        for _ in range(min(budget, 3)):
            clock.advance(dice.choice([0, 1_000]))
            ids = await listed(other, ann, Filter(archived="include"))
            await dice.choice(list(EDITS.values()))(other, ann, dice.choice(ids))
            budget -= 1

    seen = await disturbed(sessions, ann, given, 3, disturb)
    assert set(await listed(other, ann, given)) <= set(seen)


async def test_a_session_that_is_touched_again_and_again_does_not_hide_the_others(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    ids = []
    for _ in range(9):
        ids.append((await sessions.create(ann)).id)
        clock.advance()
    touched = 0

    async def disturb() -> None:
        nonlocal touched
        if touched < 6:
            clock.advance()
            await talk(other, ann, ids[touched], "Moves to the top")
            touched += 1

    seen = await disturbed(sessions, ann, Filter(), 2, disturb)
    assert set(seen) == set(ids)


async def test_a_walk_that_nothing_disturbs_shows_each_session_once(
    sessions: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    for _ in range(6):
        await sessions.create(ann)
        clock.advance()

    async def disturb() -> None:
        await sessions.create(bob)

    seen = await disturbed(sessions, ann, Filter(), 2, disturb)
    assert len(seen) == len(set(seen)) == 6
