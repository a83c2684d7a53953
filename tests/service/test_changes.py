"""The change feed, waiting for changes, and the text of running turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from hitherto.errors import SessionNotFound
from hitherto.model import Change, Principal
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.values.positions import BEGINNING, covers
from tests.support.conversations import say, started, talk
from tests.support.homes import Clock
from tests.support.waits import NEVER, arrives, within


class Watched:
    """A store that tells when somebody who watches has read all there is and waits for more, which only a change ends."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.waits = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def wait(self, owner: str, after: str, timeout: float) -> str:  # noqa: ARG002, ASYNC109 - the port's own
        self.waits.set()
        return await self._store.wait(owner, after, NEVER)


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store)


@pytest.fixture
async def sessions(watched: Watched, clock: Clock, new_id: Callable[[], str]) -> Sessions:
    return Sessions(cast("Store", watched), now=clock, new_id=new_id)


async def following(changes: AsyncIterator[Change]) -> Change:
    return await arrives(anext(changes), "the next change")


async def asleep(watched: Watched, task: asyncio.Task[Any]) -> None:
    """Let a watcher run until it has nothing more to do but wait."""
    await arrives(watched.waits.wait(), "the watcher to wait")
    watched.waits.clear()
    await hears_nothing(task)


async def hears_nothing(task: asyncio.Task[Any]) -> None:
    done, _ = await asyncio.wait({task}, timeout=0.2)
    assert not done


async def test_the_feed_has_the_newest_change_of_each_session(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    assert await reader.changes.newest(ann) == BEGINNING
    one = await sessions.create(ann)
    two = await sessions.create(ann)
    await sessions.create(bob)
    await sessions.rename(ann, one.id, "Named")
    await talk(sessions, ann, two.id, "Hello")
    await sessions.tag(ann, one.id, add=["t"])
    found = await reader.changes.since(ann)
    assert {change.session: (change.kind, change.revision) for change in found} == {
        two.id: ("append", 2),
        one.id: ("tag", 3),
    }
    newest = await reader.changes.newest(ann)
    assert newest == found[-1].position
    assert [covers(newest, change.position) for change in found] == [True, True]
    assert [covers(change.position, newest) for change in found] == [False, True]


async def test_every_change_has_its_kind(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session, ids = await started(sessions, ann, "a", "b")
    seen = []
    position = await reader.changes.newest(ann)
    for work in (
        lambda: sessions.rename(ann, session.id, "N"),
        lambda: sessions.tag(ann, session.id, add=["t"]),
        lambda: sessions.archive(ann, session.id),
        lambda: sessions.pin(ann, session.id),
        lambda: sessions.catalog.set_status(ann, session.id, "running"),
        lambda: sessions.set_meta(ann, session.id, {"a": 1}),
        lambda: sessions.move(ann, session.id, "/a"),
        lambda: sessions.append(ann, session.id, say("c")),
        lambda: sessions.changes.put_live(ann, session.id, b"partial"),
        lambda: sessions.compact(ann, session.id, say("S")),
        lambda: sessions.rewind(ann, session.id, ids[0]),
        lambda: sessions.reset(ann, session.id),
        lambda: sessions.erase(ann, session.id, ids[0]),
        lambda: sessions.delete(ann, session.id),
    ):
        await work()
        (change,) = await reader.changes.since(ann, after=position)
        assert change.session == session.id
        position = change.position
        seen.append(change.kind)
    assert seen == [
        *("rename", "tag", "archive", "pin", "status", "meta", "move", "append", "live"),
        *("compact", "rewind", "reset", "erase", "delete"),
    ]


async def test_a_deletion_stays_in_the_feed(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    before = await reader.changes.newest(ann)
    await sessions.delete(ann, session.id)
    (change,) = await reader.changes.since(ann, after=before)
    assert (change.session, change.kind, change.revision) == (session.id, "delete", None)


async def test_the_feed_is_read_in_pages(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    ids = [(await sessions.create(ann)).id for _ in range(7)]
    seen: list[str] = []
    position = BEGINNING
    while page := await reader.changes.since(ann, after=position, limit=3):
        seen += [change.session for change in page]
        position = page[-1].position
    assert sorted(seen) == sorted(ids)


async def test_a_sleeping_watcher_is_woken_by_the_other_connection(
    watched: Watched, sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    changes = sessions.watch(ann)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    await talk(other, ann, session.id, "Wake up")
    change = await waiter
    assert (change.session, change.kind, change.revision) == (session.id, "append", 2)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    await other.delete(ann, session.id)
    assert (await waiter).kind == "delete"
    await changes.aclose()  # type: ignore[attr-defined]


async def test_a_watcher_is_woken_by_its_own_connection(
    watched: Watched, sessions: Sessions, ann: Principal
) -> None:
    changes = sessions.watch(ann)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    session = await sessions.create(ann)
    assert (await waiter).session == session.id
    await changes.aclose()  # type: ignore[attr-defined]


async def test_a_watcher_of_one_session_hears_of_no_other(
    watched: Watched, sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    one = await sessions.create(ann)
    two = await sessions.create(ann)
    changes = sessions.watch(ann, session_id=two.id)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    await other.rename(ann, one.id, "Not this")
    await asleep(watched, waiter)
    await other.rename(ann, two.id, "This")
    assert (await waiter).session == two.id
    await changes.aclose()  # type: ignore[attr-defined]


async def test_a_watcher_hears_of_no_other_owner(
    watched: Watched, sessions: Sessions, other: Sessions, ann: Principal, bob: Principal
) -> None:
    changes = sessions.watch(ann)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    await other.create(bob, session_id="same")
    await hears_nothing(waiter)
    await other.create(ann, session_id="same")
    assert (await waiter).session == "same"
    await changes.aclose()  # type: ignore[attr-defined]


async def test_a_watch_from_an_earlier_position_tells_what_was_missed(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    one = await sessions.create(ann)
    position = await sessions.changes.newest(ann)
    two = await sessions.create(ann)
    three = await sessions.create(ann)
    changes = other.watch(ann, after=position)
    assert {(await following(changes)).session for _ in range(2)} == {two.id, three.id}
    await changes.aclose()  # type: ignore[attr-defined]
    again = other.watch(ann, after=BEGINNING)
    assert {(await following(again)).session for _ in range(3)} == {one.id, two.id, three.id}
    await again.aclose()  # type: ignore[attr-defined]


async def test_a_watcher_that_is_cancelled_in_the_moment_of_a_change_ends(
    watched: Watched, sessions: Sessions, ann: Principal
) -> None:
    async def watch() -> None:
        async for _ in sessions.watch(ann):
            pass

    for steps in range(8):
        watched.waits.clear()
        watching = asyncio.create_task(watch())
        await asleep(watched, watching)
        await sessions.create(ann)
        for _ in range(steps):
            await asyncio.sleep(0)
        watching.cancel()
        await arrives(asyncio.wait({watching}), f"the watcher to end, {steps} steps after the change")


async def test_a_watcher_sleeps_though_a_deleted_session_was_made_again(
    watched: Watched, sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    await sessions.create(ann, session_id="again")
    changes = sessions.watch(ann)
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    await other.delete(ann, "again")
    assert (await waiter).kind == "delete"
    # The watcher has not come back for more yet, and a deletion that it has not seen is superseded.
    await other.create(ann, session_id="again")
    await other.delete(ann, "again")
    await other.create(ann, session_id="again")
    assert (await following(changes)).kind == "create"
    waiter = asyncio.create_task(following(changes))
    await asleep(watched, waiter)
    watched.waits.clear()
    await hears_nothing(waiter)
    assert not watched.waits.is_set()
    waiter.cancel()


async def test_waiting_ends_at_once_when_there_is_something_newer(store: Store, sessions: Sessions) -> None:
    who = Principal(owner="ann")
    await sessions.create(who)
    newest = await sessions.changes.newest(who)
    async with within("what is there already"):
        assert await store.wait("ann", BEGINNING, 600) == newest
        assert await store.wait("ann", newest, 0.01) == newest
        assert await store.wait("nobody", BEGINNING, 0.01) == BEGINNING


async def test_every_watcher_hears_of_every_session(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    made = [(await sessions.create(ann)).id for _ in range(5)]

    async def hears() -> set[str]:
        heard: set[str] = set()
        changes = other.watch(ann, after=start)
        while heard != set(made):
            heard.add((await following(changes)).session)
        await changes.aclose()  # type: ignore[attr-defined]
        return heard

    start = await sessions.changes.newest(ann)
    watchers = [asyncio.create_task(hears()) for _ in range(3)]
    for session_id in made:
        await talk(sessions, ann, session_id, "Hello")
    assert await asyncio.gather(*watchers) == [set(made)] * 3


async def test_the_text_of_a_running_turn_is_seen_until_it_ends(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    assert await reader.changes.live(ann, session.id) is None
    await sessions.changes.put_live(ann, session.id, b"half a sen\0\xff")
    assert await reader.changes.live(ann, session.id) == b"half a sen\0\xff"
    await sessions.changes.put_live(ann, session.id, b"half a sentence")
    assert await reader.changes.live(ann, session.id) == b"half a sentence"
    await sessions.changes.put_live(ann, session.id, None)
    assert await reader.changes.live(ann, session.id) is None
    assert (await reader.get(ann, session.id)).revision == 1
    with pytest.raises(SessionNotFound):
        await sessions.changes.put_live(ann, "nowhere", b"x")


async def test_live_text_is_a_change_of_the_same_revision(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    before = await reader.changes.newest(ann)
    await sessions.changes.put_live(ann, session.id, b"x")
    (change,) = await reader.changes.since(ann, after=before)
    assert (change.kind, change.revision) == ("live", 1)
