"""Housekeeping looks at what is due, however much else there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from hitherto.model import Filter, Principal, Session
from hitherto.ports import Ahead, Reader, Store, Writer
from hitherto.service import Policy, Sessions, address_of, parse_resets
from hitherto.service.admin.retention import Retention
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.channels.resets import Resets
from hitherto.values.days import DAY_MS
from hitherto.values.keys import LOOSE_FORMS, chat_of, parse_key
from tests.support.conversations import say, talk, told
from tests.support.homes import Clock

T = TypeVar("T")
HOUR = 3_600_000


OPEN = ("agent:a:irc:group:dm:thread:x", "agent:a:irc:account:group:dm:x")
"""Keys of whose kind a store cannot be sure."""


class Counted:
    """A store that counts its transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.secret = store.secret
        self.reads = self.writes = 0

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:
        self.reads += 1
        return await self._store.read(work, ahead)

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        self.writes += 1
        return await self._store.write(work, about)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.fixture
def counted(store: Store) -> Counted:
    return Counted(store)


async def chat(sessions: Sessions, who: Principal, key: str, *texts: str) -> str:
    session = await sessions.channels.begin(who, address_of(parse_key(key), "owner"))
    await talk(sessions, who, session.id, *texts)
    return session.id


async def swept(sessions: Sessions, text: str) -> set[str]:
    return {each.session.id async for done in sessions.resets.sweep(parse_resets(text)) for each in done}


async def test_a_sweep_looks_at_the_chats_that_are_due_and_at_no_other(
    counted: Counted, ann: Principal, bob: Principal, clock: Clock
) -> None:
    sessions = Sessions(counted, now=clock)  # type: ignore[arg-type]
    due = {
        await chat(sessions, who, f"agent:main:irc:dm:{name}", "Hello") for who in (ann, bob) for name in "ab"
    }
    # Old too, and not due: another rule, another channel, empty, archived, without a key.
    await chat(sessions, ann, "agent:main:irc:group:all", "Hello")
    await chat(sessions, ann, "agent:main:xmpp:dm:x", "Hello")
    await sessions.reset(ann, await chat(sessions, ann, "agent:main:irc:dm:empty", "Hello"))
    await sessions.archive(ann, await chat(sessions, ann, "agent:main:irc:dm:archived", "Hello"))
    await talk(sessions, ann, (await sessions.create(ann)).id, "Hello")
    clock.advance(3 * HOUR)
    for number in range(20):
        await chat(sessions, ann, f"agent:main:irc:dm:{number}", "Hello")
    for expected in (due, set()):
        counted.reads = counted.writes = 0
        assert await swept(sessions, "idle@2h, group=off, channel:xmpp=idle@1d") == expected
        # Which kinds there are, then each kind that has a rule. What is worth remembering of a chat is read and written apart.
        assert (counted.reads, counted.writes) == (3 + len(expected), 2 * len(expected))


async def test_of_a_chat_of_which_nothing_is_known_a_sweep_looks_once(
    counted: Counted, ann: Principal, clock: Clock
) -> None:
    sessions = Sessions(counted, now=clock)  # type: ignore[arg-type]
    session_id = await chat(sessions, ann, "agent:main:irc:dm:ann", "one", "two")
    page = await sessions.history(ann, session_id)
    await sessions.rewind(ann, session_id, page.entries[0].id)
    quiet = await chat(sessions, ann, "agent:main:irc:dm:bob")
    await sessions.append(ann, quiet, say("Good morning!", "assistant"))
    for expected in (2, 0):
        counted.writes = 0
        assert await swept(sessions, "idle@1h") == set()
        assert counted.writes == expected
    clock.advance(HOUR + 1)
    assert await swept(sessions, "idle@1h") == {session_id}


async def test_a_chat_of_whose_kind_a_store_cannot_be_sure_has_the_rule_of_its_kind(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    group, direct = [await chat(sessions, ann, key, "Hello") for key in OPEN]
    odd = await sessions.create(ann, key="not a session key")
    await talk(sessions, ann, odd.id, "Hello")
    clock.advance(HOUR + 1)
    assert await swept(sessions, "group=idle@1h, directmessage=idle@3h") == {group}
    clock.advance(2 * HOUR)
    assert await swept(sessions, "group=idle@1h, directmessage=idle@3h") == {direct}


async def test_more_chats_are_due_than_are_looked_for_at_once(
    sessions: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    class Few(Resets):
        at_once = 2

    made = {
        await chat(sessions, who, f"agent:main:irc:dm:{number}", "Hello")
        for number in range(5)
        for who in (ann, bob)
    }
    clock.advance(HOUR + 1)
    busy = min(made)
    owner = ann if busy in {each.id for each in (await sessions.find(ann)).sessions} else bob
    await sessions.leases.acquire(owner, busy, "a turn", ttl_ms=60_000)
    assert {each.session.id for each in await sessions.resets.due(ann, parse_resets("idle@1h"))} < made
    policy = parse_resets("idle@1h")
    done = [each.session.id async for batch in Few(sessions.core).sweep(policy) for each in batch]
    assert sorted(done) == sorted(made - {busy})


async def test_what_changes_a_chat_never_hides_it_from_a_sweep(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id = await chat(sessions, ann, "agent:main:irc:dm:ann", "one", "two")
    first = (await sessions.history(ann, session_id)).entries[0].id

    async def due() -> bool:
        clock.advance(HOUR + 1)
        found = {each.session.id for each in await reader.resets.due(ann, parse_resets("idle@1h"))}
        return session_id in found

    assert await due()
    await sessions.rename(ann, session_id, "A title")
    assert await due()
    await sessions.archive(ann, session_id)
    assert not await due()
    await sessions.archive(ann, session_id, archived=False)
    assert await due()
    await sessions.rewind(ann, session_id, first)
    assert await due()
    await sessions.reset(ann, session_id)
    assert not await due()
    (*_, checkpoint) = await sessions.checkpoints(ann, session_id)
    await sessions.restore(ann, session_id, checkpoint.id)
    assert await due()
    await sessions.compact(ann, session_id, say("What was said"))
    await talk(sessions, ann, session_id, "three")
    assert await due()
    assert await swept(sessions, "idle@1h") == {session_id}
    await sessions.append(ann, session_id, say("Still there?", "assistant"))
    assert not await due()
    await talk(sessions, ann, session_id, "four")
    assert await due()
    assert (await told(reader, ann, session_id))[-1] == "four"


async def test_keys_are_of_the_kind_that_stores_take_them_for(
    store: Store, sessions: Sessions, ann: Principal
) -> None:
    keys = [
        "agent:main:main", "agent:dm:main", "agent:cron:main", "agent:a:irc:dm:main", "agent:dm:group:dm:x",
        "agent:a:dm:group:x", "agent:a:cron:main", "agent:group:cron:dm", "subagent:agent:main:main", "subagent:agent:a:dm",
        "not a key", "agent:%3A:x%2Fy:group:%25", "agent:a:irc:account:x:dm:y:thread:z", "agent:a:irc:account:cron:group:main",
        *OPEN,
    ]  # fmt: skip
    for number, key in enumerate(keys):
        channel = f"channel {number % 3}" if number % 2 else None
        session = await sessions.create(ann, key=key, channel=channel)
        await talk(sessions, ann, session.id, "Hello")
        kind = chat_of(key, channel).partition(":")[0]
        assert kind == (parse_key(key).kind if ":" in key and key not in OPEN else "")
    assert set(LOOSE_FORMS.values()) == {parse_key(key).kind for key in keys if ":" in key}
    expected: dict[str, set[str]] = {}
    for session in (await sessions.find(ann)).sessions:
        expected.setdefault(chat_of(session.key or "", session.channel), set()).add(session.id)
    assert await store.read(lambda tx: tx.chats()) == sorted(expected)
    for each, ids in expected.items():
        found = await store.read(lambda tx, each=each: tx.silent(ann.owner, each, 1 << 60, None, 50))  # type: ignore[misc]
        assert {silent.id for silent in found} == ids


async def test_by_age_only_old_sessions_are_looked_at(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    old = await sessions.create(ann, title="old")
    clock.advance(2 * DAY_MS)
    await sessions.create(ann, title="new")
    asked: list[Filter] = []

    class Noted(Catalog):
        def every(self, who: Principal, given: Filter) -> AsyncIterator[Session]:
            asked.append(given)
            return super().every(who, given)

    retention = Retention(sessions.core, Noted(sessions.core), sessions.leases)
    policy = Policy(older_than_ms=DAY_MS, spare_read_ms=0)
    pruned = await retention.prune(ann, policy, dry_run=False)
    assert [each.session.id for each in pruned] == [old.id]
    assert [given.updated_before for given in asked] == [clock.now - DAY_MS]
