"""Ephemeral sessions: used like any other, never stored, and gone with the process that made them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import hitherto
from hitherto.errors import AlreadyExists, InvalidInput, InvalidKey, SessionNotFound, StoreFull
from hitherto.model import Fact, Filter, Principal
from hitherto.service import Address, Sessions
from hitherto.service import ephemeral as module
from hitherto.service.admin.retention import Policy
from hitherto.summariser import CompactionPolicy
from hitherto.values.keys import is_ephemeral
from tests.support.conversations import exported, finds, say, started, told
from tests.support.homes import Clock, Home
from tests.support.scripted_engine import Scripted, ask_once

KEY = "agent:coder:ephemeral:01a1de9f-30ab-7a69-822e-6571373d1d36"
OTHER = "agent:coder:ephemeral:01a1de9f-30b4-7a69-822e-6571373d1d37"


@pytest.fixture
async def server(home: Home, clock: Clock, new_id: Callable[[], str]) -> AsyncIterator[Sessions]:
    async with hitherto.open(home.url, now=clock, new_id=new_id, ephemeral=True) as sessions:
        yield sessions


@pytest.fixture
async def second(home: Home, server: Sessions, clock: Clock) -> AsyncIterator[Sessions]:
    """Another server on the same store."""
    async with hitherto.open(home.url, now=clock, ephemeral=True) as sessions:
        assert sessions is not server
        yield sessions


@pytest.mark.parametrize(
    "name",
    [
        *(
            None,
            "",
            "01a1de9f-30ab-7a69-822e-6571373d1d36",
            "agent:coder:main",
            f"x{KEY}",
            f"{KEY}x",
            f"{KEY} ",
        ),
        *(
            "agent:coder:ephemeral:",
            "agent:coder:ephemeral:x",
            ":ephemeral:",
            "claude:ephemeral:x",
            KEY.upper(),
        ),
    ],
)
def test_only_a_well_formed_ephemeral_key_is_one(name: str | None) -> None:
    assert is_ephemeral(KEY)
    assert not is_ephemeral(name)


async def test_an_ephemeral_session_is_used_by_its_key_like_any_other(
    server: Sessions, ann: Principal
) -> None:
    sessions = server.at(KEY)
    made = await sessions.create(ann, key=KEY, agent_id="coder", title="Soon gone")
    assert (made.id, made.key, made.title) == (KEY, KEY, "Soon gone")
    await sessions.append(ann, KEY, [say("one"), say("two")])
    assert await told(server.at(made.id), ann, KEY) == ["one", "two"]
    assert (await sessions.get_by_key(ann, KEY)).message_count == 2
    outcome = await ask_once(sessions, ann, KEY, Scripted())
    assert outcome.stop_reason == "end_turn"
    await sessions.rewind(ann, KEY, (await sessions.history(ann, KEY)).entries[0].id)
    assert await told(sessions, ann, KEY) == ["one"]
    with pytest.raises(AlreadyExists):
        await sessions.create(ann, key=KEY)
    await sessions.delete(ann, KEY)
    with pytest.raises(SessionNotFound):
        await sessions.get(ann, KEY)


async def test_nothing_of_an_ephemeral_session_reaches_the_store(
    home: Home, server: Sessions, ann: Principal
) -> None:
    await started(server, ann, "kept")
    before = home.rows()
    sessions = server.at(KEY)
    await sessions.create(ann, key=KEY, title="Secret", idempotency_key="once")
    await sessions.append(ann, KEY, say("The port is 8080.", tokens=500), idempotency_key="twice")
    await sessions.append(ann, KEY, [say("later"), say("last")])
    await sessions.compaction.shrink(ann, KEY, policy=CompactionPolicy(kept_tokens=1))
    await sessions.changes.put_live(ann, KEY, b"partial")
    await sessions.delete(ann, KEY)
    assert home.rows() == before


async def test_only_the_server_that_made_it_knows_an_ephemeral_session(
    server: Sessions, second: Sessions, ann: Principal, bob: Principal
) -> None:
    await server.at(KEY).create(ann, key=KEY)
    for elsewhere, who in ((second.at(KEY), ann), (server.at(KEY), bob), (server, ann)):
        with pytest.raises(SessionNotFound):
            await elsewhere.get(who, KEY)
    assert (await second.find(ann, Filter(archived="include"))).sessions == ()


async def test_an_ephemeral_session_is_gone_with_its_server(home: Home, ann: Principal) -> None:
    async with hitherto.open(home.url, ephemeral=True) as sessions:
        await sessions.at(KEY).create(ann, key=KEY)
    async with hitherto.open(home.url, ephemeral=True) as sessions:
        with pytest.raises(SessionNotFound):
            await sessions.at(KEY).get(ann, KEY)


async def test_ephemeral_sessions_are_in_no_list_search_or_memory(server: Sessions, ann: Principal) -> None:
    sessions = server.at(KEY)
    await sessions.create(ann, key=KEY, title="needle")
    await sessions.append(
        ann, KEY, [say("My name is Ann and the needle port is 8080.", tokens=900), say("ok")]
    )
    await sessions.append(ann, KEY, [say("more"), say("last")])
    shrunk = await sessions.compaction.shrink(ann, KEY, policy=CompactionPolicy(kept_tokens=1))
    assert shrunk.facts_extracted == 0
    assert await finds(server, ann, "needle") == []
    assert await server.count(ann) == 0
    assert await server.changes.since(ann) == []
    for each in (server, sessions):
        assert await each.memory.search(ann) == []


REFUSED: dict[str, Callable[[Any, Principal], Awaitable[Any]]] = {
    "fork": lambda s, who: s.fork(who, KEY),
    "branch": lambda s, who: s.branch(who, KEY, "c"),
    "fork_to": lambda s, who: s.channels.fork_to(who, KEY, None),
    "start_anew": lambda s, who: s.channels.start_anew(who, KEY),
    "search": lambda s, who: s.search(who, "one"),
    "add_facts": lambda s, who: s.memory.add(who, [Fact(id="f", at=1, text="t", session=KEY)]),
    "take_in": lambda s, who: s.transfer.sync(who, None, []),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_would_outlive_an_ephemeral_session_is_refused(
    server: Sessions, ann: Principal, name: str
) -> None:
    sessions = server.at(KEY)
    await started(sessions, ann, "one", key=KEY)
    with pytest.raises(InvalidInput, match="ephemeral session cannot be"):
        await REFUSED[name](sessions, ann)
    assert await sessions.count(ann) == 1


WRONG_HERE: list[dict[str, Any]] = [{"key": KEY}, {"session_id": KEY}, {"key": KEY, "session_id": "x"}]
WRONG_THERE: list[dict[str, Any]] = [
    *({}, {"key": "agent:coder:main"}, {"session_id": "x"}, {"key": KEY, "session_id": OTHER}),
]


async def test_the_store_refuses_what_is_ephemeral_and_memory_what_is_not(
    server: Sessions, ann: Principal
) -> None:
    for given in WRONG_HERE:
        with pytest.raises(InvalidInput, match="never stored"):
            await server.create(ann, **given)
    kept = await server.create(ann, key="agent:coder:main")
    with pytest.raises(InvalidInput, match="never stored"):
        await server.channels.readdress(ann, kept.id, Address(key=KEY))
    sessions = server.at(KEY)
    for given in WRONG_THERE:
        with pytest.raises(InvalidKey):
            await sessions.create(ann, **given)
    assert (await server.count(ann), await sessions.count(ann)) == (1, 0)


async def test_an_export_of_an_ephemeral_session_is_imported_only_as_a_new_session(
    server: Sessions, ann: Principal
) -> None:
    await started(server.at(KEY), ann, "one", key=KEY)
    lines = await exported(server.at(KEY), ann, KEY)
    with pytest.raises(InvalidInput, match="never stored"):
        await server.import_(ann, lines)
    kept = await server.import_(ann, lines, new_id=True)
    assert (kept.key, await told(server, ann, kept.id)) == (None, ["one"])


async def test_the_quietest_ephemeral_sessions_make_room_for_new_ones(
    server: Sessions, ann: Principal, bob: Principal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BOUND", Policy(keep_newest=2, spare_read_ms=0, delete=True))
    keys = [f"{KEY[:-1]}{number}" for number in range(4)]
    sessions = server.at(KEY)
    await sessions.create(bob, key=KEY)
    for key in keys[:2]:
        clock.advance()
        await sessions.create(ann, key=key)
    clock.advance()
    await sessions.append(ann, keys[0], say("still here"))
    clock.advance()
    await sessions.create(ann, key=keys[2])
    found = await sessions.find(ann)
    assert [session.key for session in found.sessions] == [keys[2], keys[0]]
    assert await sessions.count(bob) == 1


async def test_what_is_said_in_ephemeral_sessions_is_bounded_too(
    server: Sessions, ann: Principal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BOUND", Policy(keep_bytes=15_000, spare_read_ms=0, delete=True))
    monkeypatch.setattr(module, "SESSION_BYTES", 10_000)
    monkeypatch.setattr(module, "LOOKED_AT_BYTES", 1_000)
    sessions = server.at(KEY)
    for key in (KEY, OTHER):
        clock.advance()
        await sessions.create(ann, key=key)
        await sessions.append(ann, key, say("x" * 8_000))
    assert [session.key for session in (await sessions.find(ann)).sessions] == [OTHER]
    await sessions.append(ann, OTHER, say("x" * 3_000))
    with pytest.raises(StoreFull):
        await sessions.append(ann, OTHER, say("more"))
    with pytest.raises(StoreFull):
        await ask_once(sessions, ann, OTHER, Scripted(), "More?")


async def test_a_program_that_keeps_no_ephemeral_sessions_says_so(sessions: Sessions) -> None:
    with pytest.raises(InvalidInput, match="ephemeral=True"):
        sessions.at(KEY)
    assert sessions.at("agent:coder:main") is sessions
