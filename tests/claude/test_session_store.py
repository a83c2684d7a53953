"""The SDK keeps its sessions in Hitherto: its own conformance suite, and what it does not ask."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from claude_agent_sdk import (
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    rename_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance
from claude_agent_sdk.types import SessionKey, SessionListSubkeysKey, SessionStoreEntry

import hitherto
from hitherto.claude import HithertoSessionStore
from hitherto.errors import ReadOnly, TooLarge
from hitherto.model import LOCAL, Draft, Filter, Principal, Text
from hitherto.service import Sessions
from tests.support.homes import Home

SESSION = "550e8400-e29b-41d4-a716-446655440000"
MAIN: SessionKey = {"project_key": "-home-me-project", "session_id": SESSION}
LISTED: SessionListSubkeysKey = {"project_key": "-home-me-project", "session_id": SESSION}
SUB: SessionKey = {**MAIN, "subpath": "subagents/agent-1"}


@pytest.fixture
async def kept(shared_home: Home) -> AsyncIterator[Sessions]:
    """A store that several processes can share, with the real clock: the SDK compares times."""
    async with hitherto.open(shared_home.url) as sessions:
        yield sessions


@pytest.fixture
def store(kept: Sessions) -> HithertoSessionStore:
    return HithertoSessionStore(kept)


def entries(*records: dict[str, Any]) -> list[SessionStoreEntry]:
    return cast("list[SessionStoreEntry]", list(records))


def message(number: int, text: str, kind: str = "user") -> dict[str, Any]:
    name = "00000000-0000-4000-8000-{:012x}"
    return {
        "type": kind,
        "uuid": name.format(number),
        "parentUuid": name.format(number - 1) if number > 1 else None,
        "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
        "sessionId": SESSION,
        "cwd": "/home/me/project",
        "message": {"role": kind, "content": text},
    }


async def test_the_conformance_suite_of_the_sdk_passes(kept: Sessions) -> None:
    owners = (Principal(owner=f"owner-{number}") for number in itertools.count())
    await run_session_store_conformance(lambda: HithertoSessionStore(kept, next(owners)))


async def test_an_entry_comes_back_exactly_whatever_is_in_it(store: HithertoSessionStore) -> None:
    odd = {
        "type": "user",
        "uuid": "odd",
        "lone": "\ud83d",
        "nul": "a\0b",
        "lines": "\u2028\u2029\u0085",
        "big": 2**70,
        "float": 1e-7,
        "nested": [{"uuid": None, "": {}}],
        "erased": True,
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": "x\ud800y\0z"}, 7, {"type": "image"}],
        },
    }
    await store.append(MAIN, entries(odd, {"type": "tag", "tag": "\udc00"}))
    assert await store.load(MAIN) == [odd, {"type": "tag", "tag": "\udc00"}]


async def test_an_entry_of_a_kind_that_is_no_text_is_kept_like_any_other(store: HithertoSessionStore) -> None:
    odd = entries({"type": ["user"], "uuid": "1", "message": {"content": "Hello"}})
    await store.append(MAIN, odd)
    assert await store.load(MAIN) == odd


async def test_appending_a_batch_again_adds_only_what_is_new(store: HithertoSessionStore) -> None:
    first, second, third = (message(number, f"say {number}") for number in (1, 2, 3))
    mark = {"type": "mode", "mode": "plan"}
    await store.append(MAIN, entries(first, second, mark))
    await store.append(MAIN, entries(second, {**first, "message": "changed"}, third, third, mark))
    assert await store.load(MAIN) == [first, second, mark, third, mark]
    await store.append(MAIN, entries(first, second, third))
    assert await store.load(MAIN) == [first, second, mark, third, mark]


async def test_a_batch_with_an_entry_that_is_too_large_leaves_nothing(store: HithertoSessionStore) -> None:
    huge = {"type": "user", "uuid": "huge", "data": "x" * (17 * 1024 * 1024)}
    with pytest.raises(TooLarge):
        await store.append(MAIN, entries(message(1, "hello"), huge))
    assert await store.load(MAIN) is None
    assert await store.list_sessions(MAIN["project_key"]) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"project_key": "a", "session_id": "b/c"}, {"project_key": "a", "session_id": "b", "subpath": "c"}),
        ({"project_key": "a/b", "session_id": "c"}, {"project_key": "a", "session_id": "b/c"}),
        ({"project_key": "a:b", "session_id": "c"}, {"project_key": "a", "session_id": "b:c"}),
        ({"project_key": "p" * 600, "session_id": "s"}, {"project_key": "p" * 601, "session_id": "s"}),
        ({"project_key": "p", "session_id": "s" * 600}, {"project_key": "p", "session_id": "s" * 601}),
        ({"project_key": "\0", "session_id": "\ud800"}, {"project_key": "\0\0", "session_id": "\ud800"}),
        ({"project_key": "P", "session_id": "s"}, {"project_key": "p", "session_id": "s"}),
    ],
)
async def test_keys_that_look_alike_are_kept_apart(
    store: HithertoSessionStore, one: SessionKey, other: SessionKey
) -> None:
    await store.append(one, entries({"type": "user", "from": "one"}))
    assert await store.load(other) is None
    await store.append(other, entries({"type": "user", "from": "other"}))
    assert await store.load(one) == [{"type": "user", "from": "one"}]
    assert (
        await store.list_subkeys({"project_key": one["project_key"], "session_id": one["session_id"]}) == []
    )
    assert one["session_id"] in [
        found["session_id"] for found in await store.list_sessions(one["project_key"])
    ]
    await store.delete(one)
    assert await store.load(other) == [{"type": "user", "from": "other"}]


async def test_a_subpath_of_any_kind_is_listed_as_it_was_given(store: HithertoSessionStore) -> None:
    subpaths = ["../../etc/passwd", "x" * 700, "~", "subagents/\u2028", "a\0b"]
    await store.append(MAIN, entries(message(1, "hello")))
    for subpath in subpaths:
        await store.append({**MAIN, "subpath": subpath}, entries({"type": "user", "in": subpath}))
    assert sorted(await store.list_subkeys(LISTED)) == sorted(subpaths)
    for subpath in subpaths:
        assert await store.load({**MAIN, "subpath": subpath}) == [{"type": "user", "in": subpath}]
    await store.delete(MAIN)
    assert await store.list_subkeys(LISTED) == []


async def test_an_owner_sees_nothing_of_another(kept: Sessions) -> None:
    ann, bob = (HithertoSessionStore(kept, Principal(owner=name)) for name in ("ann", "bob"))
    await ann.append(MAIN, entries(message(1, "hello")))
    assert await bob.load(MAIN) is None
    assert await bob.list_sessions(MAIN["project_key"]) == []
    assert await bob.list_session_summaries(MAIN["project_key"]) == []
    await bob.delete(MAIN)
    assert await ann.load(MAIN) == [message(1, "hello")]


async def test_the_sessions_are_listed_titled_and_searched_like_any_other(
    kept: Sessions, store: HithertoSessionStore
) -> None:
    await store.append(MAIN, entries(message(1, "Paint the barn"), message(2, "Red or blue?", "assistant")))
    await store.append(SUB, entries({**message(3, "Look for a brush"), "isSidechain": True}))
    (main,) = [one for one in (await kept.find(LOCAL)).sessions if one.parent is None]
    assert (main.title, main.cwd, main.message_count) == ("Paint the barn", "/home/me/project", 2)
    (hit,) = (await kept.search(LOCAL, "blue")).hits
    assert hit.session.id == main.id
    (child,) = [one for one in (await kept.find(LOCAL)).sessions if one.parent == main.id]
    assert child.title == "Look for a brush"
    with pytest.raises(ReadOnly):
        await kept.append(LOCAL, main.id, Draft(role="user", parts=(Text(text="not from the SDK"),)))
    fork = await kept.fork(LOCAL, main.id)
    await kept.append(LOCAL, fork.id, Draft(role="user", parts=(Text(text="from here on"),)))
    assert await store.load(MAIN) == [message(1, "Paint the barn"), message(2, "Red or blue?", "assistant")]
    listed = await store.list_sessions(MAIN["project_key"])
    assert [found["session_id"] for found in listed] == [SESSION]


async def test_a_title_given_through_the_sdk_is_the_title_unless_the_owner_gave_one(
    kept: Sessions, store: HithertoSessionStore
) -> None:
    await store.append(MAIN, entries(message(1, "Paint the barn"), {"type": "ai-title", "aiTitle": "Barn"}))
    (session,) = (await kept.find(LOCAL)).sessions
    assert session.title == "Barn"
    await store.append(MAIN, entries({"type": "custom-title", "customTitle": "The \x1b[31mred barn"}))
    assert (await kept.get(LOCAL, session.id)).title == "The red barn"
    await store.append(MAIN, entries({"type": "ai-title", "aiTitle": "Later"}))
    assert (await kept.get(LOCAL, session.id)).title == "The red barn"
    await kept.rename(LOCAL, session.id, "Mine")
    await store.append(MAIN, entries({"type": "custom-title", "customTitle": "Theirs"}))
    assert (await kept.get(LOCAL, session.id)).title == "Mine"


async def test_what_is_erased_here_is_gone_for_the_sdk_and_does_not_come_back(
    kept: Sessions, store: HithertoSessionStore
) -> None:
    await store.append(MAIN, entries(message(1, "keep"), message(2, "secret"), message(3, "keep too")))
    (session,) = (await kept.find(LOCAL)).sessions
    await kept.erase(LOCAL, session.id, message(2, "")["uuid"])
    assert await store.load(MAIN) == [message(1, "keep"), message(3, "keep too")]
    await store.append(MAIN, entries(message(2, "secret")))
    assert await store.load(MAIN) == [message(1, "keep"), message(3, "keep too")]


async def test_a_session_deleted_by_the_sdk_leaves_no_rows(
    kept: Sessions, store: HithertoSessionStore, shared_home: Home
) -> None:
    await store.append(MAIN, entries(message(1, "hello")))
    await store.append(SUB, entries(message(2, "hello")))
    await store.delete(MAIN)
    rows = shared_home.rows()
    assert {name: rows[name] for name in ("session", "entry", "span")} == {
        "session": 0,
        "entry": 0,
        "span": 0,
    }
    assert (await kept.find(LOCAL, Filter(archived="include"))).sessions == ()
    await store.append(MAIN, entries(message(3, "again")))
    assert await store.load(MAIN) == [message(3, "again")]


async def test_more_sessions_than_a_page_are_all_listed(store: HithertoSessionStore) -> None:
    for number in range(510):
        key: SessionKey = {"project_key": "many", "session_id": f"s{number}"}
        await store.append(key, entries({"type": "user", "n": number}))
    assert {found["session_id"] for found in await store.list_sessions("many")} == {
        f"s{number}" for number in range(510)
    }
    assert len(await store.list_session_summaries("many")) == 510


async def test_the_store_functions_of_the_sdk_work_on_it(store: HithertoSessionStore) -> None:
    folder = "/home/me/project"
    key: SessionKey = {"project_key": project_key_for_directory(folder), "session_id": SESSION}
    await store.append(key, entries(message(1, "Paint the barn"), message(2, "Red?", "assistant")))
    await rename_session_via_store(store, SESSION, "Red barn", folder)
    (listed,) = await list_sessions_from_store(store, folder)
    assert (listed.summary, listed.first_prompt, listed.cwd) == ("Red barn", "Paint the barn", folder)
    fork = await fork_session_via_store(store, SESSION, folder)
    said = [
        shown.message["content"]
        for shown in await get_session_messages_from_store(store, fork.session_id, folder)
    ]
    assert said == ["Paint the barn", "Red?"]
    await delete_session_via_store(store, SESSION, folder)
    assert [found.session_id for found in await list_sessions_from_store(store, folder)] == [fork.session_id]


async def test_two_connections_append_to_one_session_and_nothing_is_lost(shared_home: Home) -> None:
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as other:
        stores = [HithertoSessionStore(one), HithertoSessionStore(other)]

        async def mirror(store: HithertoSessionStore, first: int) -> None:
            for number in range(first, first + 20):
                title = {"type": "custom-title", "customTitle": f"title {number}"}
                await store.append(MAIN, entries(message(number, f"say {number}"), title))

        await asyncio.gather(mirror(stores[0], 1), mirror(stores[1], 31))
        loaded = cast("list[dict[str, Any]]", await stores[0].load(MAIN))
        said = [record["message"]["content"] for record in loaded if record["type"] == "user"]
        for first in (1, 31):
            mine = [f"say {number}" for number in range(first, first + 20)]
            assert [text for text in said if text in mine] == mine
        assert len(loaded) == 80
        (summary,) = await stores[1].list_session_summaries(MAIN["project_key"])
        titles = [record["customTitle"] for record in loaded if record["type"] == "custom-title"]
        assert summary["data"]["custom_title"] == titles[-1]
