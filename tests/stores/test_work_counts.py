"""How much is written: a fork costs the same whatever its length, and no deletion keeps others waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hitherto.model import Principal
from hitherto.ports import Store, Writer
from hitherto.service import Sessions
from hitherto.service.catalog.deletion import COLLECT_BATCH
from tests.support.conversations import say, told
from tests.support.homes import Clock, Home

T = TypeVar("T")
MANY = 10_000


async def long_session(sessions: Sessions, who: Principal, length: int) -> str:
    session = await sessions.create(who, title=f"{length} messages")
    await sessions.append(who, session.id, [say(f"message {number}") for number in range(length)])
    return session.id


def more(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many rows each table has more; fewer are negative."""
    grown = Counter(after)
    grown.subtract(before)
    return {name: count for name, count in grown.items() if count}


async def test_forking_a_long_session_writes_as_many_rows_as_forking_a_short_one(
    sessions: Sessions, home: Home, ann: Principal
) -> None:
    short, long = await long_session(sessions, ann, 2), await long_session(sessions, ann, MANY)
    written = []
    for session_id in (short, long):
        before = home.rows()
        await sessions.fork(ann, session_id)
        await sessions.admin.collect()
        written.append(more(before, home.rows()))
    assert written[0] == written[1]
    assert 0 < sum(written[1].values()) < 10


async def test_a_fork_of_a_long_session_outlives_it(
    sessions: Sessions, reader: Sessions, home: Home, ann: Principal
) -> None:
    source = await long_session(sessions, ann, MANY)
    middle = (await sessions.history(ann, source, limit=MANY)).entries[MANY // 2].id
    fork = await sessions.fork(ann, source, at=middle)
    before = home.rows()
    assert await sessions.delete(ann, source) == MANY
    assert await told(reader, ann, fork.id) == [f"message {number}" for number in range(MANY // 2 + 1)]
    assert (await reader.get(ann, fork.id)).message_count == MANY // 2 + 1
    hits = (await reader.search(ann, f"{MANY // 2}")).hits
    assert [hit.session.id for hit in hits] == [fork.id]
    assert (await reader.search(ann, f"{MANY // 2 + 1}")).hits == ()
    gone = MANY - MANY // 2 - 1
    assert gone in [-count for count in more(before, home.rows()).values()]


class Spy:
    """A store that notes what each write transaction did."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.secret = store.secret
        self.results: list[object] = []

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        result = await self._store.write(work, about)
        self.results.append(result)
        return result

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def test_a_long_session_is_deleted_in_many_short_transactions(
    store: Store, home: Home, ann: Principal, clock: Clock
) -> None:
    spy = Spy(store)
    sessions = Sessions(spy, now=clock)  # type: ignore[arg-type]
    session_id = await long_session(sessions, ann, MANY)
    before = home.rows()
    spy.results.clear()
    await sessions.delete(ann, session_id)
    first, *batches = spy.results
    assert first == MANY
    counts = [count for count in batches if isinstance(count, int)]
    assert counts == batches
    assert sum(counts) == MANY
    assert max(counts) <= COLLECT_BATCH < MANY / 10
    assert -MANY in more(before, home.rows()).values()


async def test_the_first_transaction_of_a_deletion_removes_no_message(
    store: Store, home: Home, ann: Principal, clock: Clock
) -> None:
    sessions = Sessions(store, now=clock)
    session_id = await long_session(sessions, ann, 1_000)
    before = home.rows()

    async def bury(tx: Writer) -> None:
        record = await tx.session(ann.owner, session_id)
        assert record is not None
        await tx.bury(record, clock.now)

    await store.write(bury)
    assert -1_000 not in more(before, home.rows()).values()
    assert await store.write(lambda tx: tx.collect(300)) == 300
    assert -300 in more(before, home.rows()).values()
    assert await sessions.admin.collect() == 700
    assert await sessions.admin.collect() == 0


async def test_nothing_is_left_of_what_was_deleted(sessions: Sessions, home: Home, ann: Principal) -> None:
    await sessions.create(ann, session_id="stays", title="Stays")
    await sessions.rename(ann, "stays", None)
    await sessions.delete(ann, (await sessions.create(ann)).id)
    await sessions.search(ann, "message")
    await sessions.rename(ann, "stays", None)
    before = home.rows()
    session_id = await long_session(sessions, ann, 50)
    await sessions.compact(ann, session_id, say("S"), keep=3)
    fork = await sessions.fork(ann, session_id)
    await sessions.tag(ann, session_id, add=["t"])
    await sessions.changes.put_live(ann, session_id, b"x")
    await sessions.transfer.keep_raw(ann, session_id, "n", b"x")
    for gone in (session_id, fork.id):
        await sessions.delete(ann, gone)
    # A search brings an index up to date that is fed behind the commits; a write comes behind what that leads to.
    await sessions.search(ann, "message")
    await sessions.rename(ann, "stays", "Stays")
    await sessions.rename(ann, "stays", None)
    left = more(before, home.rows())
    left.pop(
        "lane", None
    )  # which has a row for each number that is counted up, and not more of them for ever
    assert list(left.values()) == [2], left  # the two tombstones
