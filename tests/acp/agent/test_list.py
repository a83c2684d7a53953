"""`session/list` and what can be done with sessions without opening them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import LOCAL, Draft, Filter, Text, ToolResult
from hitherto.service import Imported
from hitherto.service.access import presence
from tests.acp.wire import Json, Refusal, Talk, is_update, running, scripted, url_of

NOON = 1_767_225_600_000
SESSIONS = int(os.environ.get("HITHERTO_TEST_SESSIONS", "3000"))
"""How many sessions a list has that is walked through while it changes."""
OF_A_SESSION = (
    "session/archive",
    "session/unarchive",
    "session/status",
    "session/close",
    "session/set_title",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
)
IMPOSSIBLE: list[Any] = [
    {"cursor": "nonsense"},
    {"cursor": 5},
    {"cursor": ""},
    {"cwd": "relative"},
    {"cwd": 5},
    {"archived": "sometimes"},
    {"createdAfter": "yesterday"},
    {"search": 5},
    [],
]


async def listed(agent: Talk, **params: Any) -> list[Json]:
    """All pages of a list."""
    rows: list[Json] = []
    cursor: str | None = None
    while True:
        page = await agent.call("session/list", {**params, **({"cursor": cursor} if cursor else {})})
        rows += page["sessions"]
        cursor = page.get("nextCursor")
        if cursor is None:
            return rows


async def test_an_empty_store_has_an_empty_list(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        assert await agent.call("session/list") == {"sessions": []}
        assert await agent.call("session/list", {"cwd": None, "cursor": None}) == {"sessions": []}


async def test_a_row_says_what_is_known_without_opening_the_session(tmp_path: Path) -> None:
    clock = iter(range(NOON, NOON + 1_000_000, 1_000)).__next__
    async with hitherto.open(url_of(tmp_path), now=clock) as sessions:
        session = await sessions.create(
            LOCAL,
            cwd="/p",
            title="Mine",
            tags=("b", "a"),
            additional_directories=("/q",),
            meta={"priority": "high"},
        )
        failed = ToolResult(id="t", is_error=True)
        await sessions.append(LOCAL, session.id, Draft(role="tool", parts=(failed,), tokens=7))
        fork = await sessions.fork(LOCAL, session.id)
        bare = await sessions.create(LOCAL)
    async with scripted(tmp_path) as agent:
        rows = {row["sessionId"]: row for row in await listed(agent)}
    row = rows[session.id]
    assert row["updatedAt"].startswith("2026-01-01T00:00:0")
    assert row["updatedAt"].endswith("Z")
    assert row["_meta"].pop("hitherto/createdAt").endswith("Z")
    used = row["_meta"].pop("hitherto/usage")
    assert (used["messages"], used["contextMessages"], used["toolFailures"], used["failed"]) == (
        1,
        1,
        1,
        False,
    )
    assert (used["contextEstimated"], used["inputTokens"], used["costStatus"]) == (True, None, "unknown")
    assert {name: row[name] for name in ("cwd", "title", "additionalDirectories", "archived", "_meta")} == {
        "cwd": "/p",
        "title": "Mine",
        "additionalDirectories": ["/q"],
        "archived": False,
        "_meta": {
            "messageCount": 1,
            "hasErrors": True,
            "tags": ["a", "b"],
            "priority": "high",
            "hitherto/tokens": 7,
        },
    }
    assert rows[fork.id]["_meta"]["hitherto/parent"] == session.id
    assert rows[bare.id]["cwd"] == "/"
    assert "title" not in rows[bare.id]


async def test_a_row_tells_project_and_branch_and_a_list_is_narrowed_by_project(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = git@host:ada/engine.git\n')
    async with scripted(tmp_path) as agent:
        for place in (tmp_path, folder):
            session = await agent.new(place)
            await agent.prompt(session, "Hello")
        for project in ("host/ada/engine", "engine"):
            (row,) = await listed(agent, project=project)
            assert row["sessionId"] == session
        assert row["_meta"]["hitherto/project"] == "host/ada/engine"
        assert row["_meta"]["hitherto/branch"] == "topic"


async def test_pages_cover_everything_once_newest_first_and_filters_come_before_paging(
    tmp_path: Path,
) -> None:
    clock = iter(range(NOON, NOON + 1_000_000, 1_000)).__next__
    async with hitherto.open(url_of(tmp_path), now=clock) as sessions:
        made = [
            (await sessions.create(LOCAL, cwd="/even" if at % 2 == 0 else "/odd", title=f"number {at}")).id
            for at in range(120)
        ]
    async with scripted(tmp_path) as agent:
        first = await agent.call("session/list")
        assert len(first["sessions"]) == 50
        assert [row["sessionId"] for row in await listed(agent)] == made[::-1]
        even = [row["sessionId"] for row in await listed(agent, cwd="/even/")]
        assert even == made[118::-2]
        assert [row["title"] for row in await listed(agent, search="number 17")] == ["number 17"]
        assert await listed(agent, cwd="/eve") == []
        assert await listed(agent, createdAfter="2999-01-01T00:00:00Z") == []
        assert len(await listed(agent, createdAfter="2020-01-01T00:00:00+02:00")) == 120


async def test_a_walk_through_the_pages_misses_nothing_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions, scripted(tmp_path) as agent:
        made: list[str] = []
        for _ in range(0, SESSIONS, 500):
            batch = await asyncio.gather(
                *(sessions.create(LOCAL, cwd="/p") for _ in range(min(500, SESSIONS)))
            )
            made += [session.id for session in batch]
        touched: set[str] = set()
        seen: list[str] = []
        cursor: str | None = None
        for page in range(len(made)):
            # One that is still to come moves to the top, one is renamed where it stands, one is new.
            moved, renamed = made[page * 7 % len(made)], made[page * 13 % len(made)]
            await sessions.append(LOCAL, moved, Draft(role="user", parts=(Text(text="Up"),)))
            await sessions.rename(LOCAL, renamed, f"Renamed {page}")
            new = (await sessions.create(LOCAL, cwd="/p")).id
            touched |= {moved, renamed, new}
            answer = await agent.call("session/list", {"cwd": "/p", **({"cursor": cursor} if cursor else {})})
            seen += [row["sessionId"] for row in answer["sessions"]]
            if (cursor := answer.get("nextCursor")) is None:
                break
        assert touched | set(made) <= set(seen)
        assert len([each for each in seen if each not in touched]) == len(set(made) - touched)


async def test_a_page_is_bounded_in_bytes(tmp_path: Path) -> None:
    folders = tuple(f"/{'x' * 4_000}/{at}" for at in range(60))
    async with hitherto.open(url_of(tmp_path)) as sessions:
        made = {(await sessions.create(LOCAL, additional_directories=folders)).id for _ in range(5)}
    async with scripted(tmp_path) as agent:
        rows = await listed(agent)
        assert {row["sessionId"] for row in rows} == made
        assert len(rows) == 5
        assert max(map(len, agent.lines)) < 300_000


async def test_a_list_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        for params in IMPOSSIBLE:
            with pytest.raises(Refusal) as refused:
                await agent.call("session/list", params)
            assert refused.value.code == -32602, params


async def test_a_cursor_is_good_for_its_own_filter_only(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        for _ in range(60):
            await sessions.create(LOCAL, cwd="/p")
    async with scripted(tmp_path) as agent:
        cursor = (await agent.call("session/list"))["nextCursor"]
        with pytest.raises(Refusal) as refused:
            await agent.call("session/list", {"cursor": cursor, "cwd": "/p"})
        assert refused.value.code == -32602


async def test_a_session_is_listed_when_something_was_said_and_an_empty_one_goes_with_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted(tmp_path) as agent:
        await agent.call("_hitherto/session/list/subscribe", {"archived": "include"})
        empty, spoken = await agent.new(tmp_path), await agent.new(tmp_path)
        assert await listed(agent, archived="include") == []
        (row,) = (await agent.call("_hitherto/session/batch_get", {"sessionIds": [empty]}))["sessions"]
        assert row["archived"] is False
        await agent.prompt(spoken, "Hello")
        assert [row["sessionId"] for row in await listed(agent)] == [spoken]
        change = await agent.until(lambda message: message["method"] == "_hitherto/session/list/changes")
        assert [row["sessionId"] for row in change["params"]["sessions"]] == [spoken]
    async with scripted(tmp_path) as agent:  # a client that begins in one process and goes on in the next
        resumed = {"sessionId": empty, "cwd": str(tmp_path), "mcpServers": []}
        await agent.call("session/resume", resumed)
        monkeypatch.setattr(presence, "DRAFT_MS", 0)
    async with scripted(tmp_path) as agent:
        with pytest.raises(Refusal) as refused:
            await agent.call("session/load", resumed)
        assert refused.value.code == -32002
        assert [row["sessionId"] for row in await listed(agent)] == [spoken]


async def test_archived_sessions_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        kept, put_away = await agent.new(tmp_path), await agent.new(tmp_path)
        await agent.prompt(kept, "Hello")
        for _ in range(2):
            assert await agent.call("session/archive", {"sessionId": put_away}) == {}
        assert [row["sessionId"] for row in await listed(agent)] == [kept]
        assert [(row["sessionId"], row["archived"]) for row in await listed(agent, archived="only")] == [
            (put_away, True)
        ]
        assert len(await listed(agent, archived="include")) == 2
        assert await agent.call("session/unarchive", {"sessionId": put_away}) == {}
        assert len(await listed(agent)) == 2


async def test_archiving_ends_what_runs(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        prompt = await agent.begin_prompt(session, ["x", {"hang": True}])
        await agent.until(is_update(session, "agent_message_chunk"))
        await agent.call("session/archive", {"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        assert await agent.call("session/status", {"sessionId": session}) == {"status": "saved"}


async def test_close_ends_what_runs_and_keeps_the_session(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        assert await agent.call("session/status", {"sessionId": session}) == {"status": "open"}
        prompt = await agent.begin_prompt(session, ["x", {"hang": True}])
        await agent.until(is_update(session, "agent_message_chunk"))
        assert await agent.call("session/close", {"sessionId": session}) == {}
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
        assert await agent.call("session/close", {"sessionId": session}) == {}
        assert await agent.call("session/status", {"sessionId": session}) == {"status": "saved"}
        assert [row["sessionId"] for row in await listed(agent)] == [session]


async def test_delete_is_for_good_and_succeeds_for_what_is_not_there(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        for _ in range(2):
            assert await agent.call("session/delete", {"sessionId": session}) == {}
        assert await agent.call("session/delete", {"sessionId": "never there"}) == {}
        assert await listed(agent) == []
        with pytest.raises(Refusal) as refused:
            await agent.prompt(session, "hello?")
        assert refused.value.code == -32002


async def test_a_title_is_cleaned_stored_and_answered(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        answer = await agent.call("session/set_title", {"sessionId": session, "title": "  My\n title "})
        assert answer == {"title": "My title"}
        await agent.prompt(session, "this would make another title")
        assert [row["title"] for row in await listed(agent)] == ["My title"]
        with pytest.raises(Refusal) as refused:
            await agent.call("session/set_title", {"sessionId": session, "title": " \n "})
        assert refused.value.code == -32602


async def test_a_session_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    params = {
        "sessionId": "nowhere",
        "title": "t",
        "modeId": "plan",
        "configId": "mode",
        "value": "plan",
        "prompt": [{"type": "text", "text": "x"}],
    }
    async with scripted(tmp_path) as agent:
        for method in OF_A_SESSION:
            with pytest.raises(Refusal) as refused:
                await agent.call(method, params)
            assert refused.value.code == -32002
            assert refused.value.error["data"] == {"code": "session_not_found", "sessionId": "nowhere"}


@pytest.mark.parametrize(("setting", "seen"), [("", 110), ("no", 55)])
async def test_sessions_of_other_agents_are_listed_unless_the_setting_says_no(
    tmp_path: Path, setting: str, seen: int
) -> None:
    clock = iter(range(NOON, NOON + 1_000_000, 1_000)).__next__
    async with hitherto.open(url_of(tmp_path), now=clock) as sessions:
        for at in range(55):
            await sessions.create(LOCAL, title="Ours zebra")
            given = Imported(id=f"claude:{at}", source="claude", created_at=clock(), updated_at=clock())
            await sessions.transfer.sync(LOCAL, given, [])
    env = {"HITHERTO_STORE": url_of(tmp_path), "HITHERTO_LIST_IMPORTED": setting}
    async with running(tmp_path, "-m", "hitherto", "acp", env=env) as agent:
        await agent.initialize()
        first = await agent.call("session/list")
        assert len(first["sessions"]) == 50
        rows = await listed(agent)
        assert len(rows) == seen
        theirs = [row for row in rows if row["_meta"].get("hitherto/source") == "claude"]
        assert len(theirs) == seen - 55
        assert (await agent.call("session/status", {"sessionId": "claude:0"})) == {"status": "saved"}


async def test_search_finds_what_was_said(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
        await agent.new(tmp_path)
        await agent.prompt(session, "the zebra crosses")
        found = await agent.call("_hitherto/session/search", {"query": "zebra"})
        (hit,) = found["hits"]
        assert hit["session"]["sessionId"] == session
        assert "zebra" in hit["snippet"]
        replayed = await agent.load(session, tmp_path)
        assert hit["messageId"] in {update.get("messageId") for update in replayed}
        counted = {"hits": [], "total": {"hits": 0, "sessions": 0, "more": False}}
        assert (
            await agent.call("_hitherto/session/search", {"query": "zebra -crosses", "count": True})
            == counted
        )


async def test_several_sessions_are_got_at_once(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        one, two = await agent.new(tmp_path), await agent.new(tmp_path)
        got = await agent.call("_hitherto/session/batch_get", {"sessionIds": [two, "nowhere", one, two]})
        assert [row["sessionId"] for row in got["sessions"]] == [two, one]
        assert got["missing"] == ["nowhere"]
        with pytest.raises(Refusal) as refused:
            await agent.call("_hitherto/session/batch_get", {"sessionIds": ["x"] * 101})
        assert refused.value.code == -32602


def tells(session_id: str, where: str) -> Any:
    """Whether a message tells about the session, among those that are listed or those that are removed."""

    def wanted(message: Json) -> bool:
        if message.get("method") != "_hitherto/session/list/changes":
            return False
        rows = message["params"][where]
        return session_id in [row["sessionId"] if isinstance(row, dict) else row for row in rows]

    return wanted


async def test_a_subscription_tells_what_changes_in_a_list_whoever_changes_it(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent, hitherto.open(url_of(tmp_path)) as sessions:
        subscribed = await agent.call("_hitherto/session/list/subscribe", {"cwd": "/p"})
        other = await sessions.create(LOCAL, cwd="/elsewhere")
        session = await sessions.create(LOCAL, cwd="/p")
        told = await agent.until(tells(session.id, "sessions"))
        assert told["params"]["subscriptionId"] == subscribed["subscriptionId"]
        await sessions.archive(LOCAL, session.id)
        await agent.until(tells(session.id, "removed"))
        rows = [row for message in agent.seen for row in message["params"]["sessions"]]
        assert other.id not in [row["sessionId"] for row in rows]
        await sessions.archive(LOCAL, session.id, archived=False)
        await agent.until(lambda message: message is not told and tells(session.id, "sessions")(message))
        await sessions.delete(LOCAL, session.id)
        await agent.call("_hitherto/session/list/unsubscribe", subscribed)


async def test_the_list_of_a_session_with_a_very_long_answer_stays_small(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = await sessions.create(LOCAL)
        await sessions.append(LOCAL, session.id, Draft(role="user", parts=(Text(text="word " * 500_000),)))
        assert (await sessions.count(LOCAL, Filter())) == 1
    async with scripted(tmp_path) as agent:
        await listed(agent)
        assert len(agent.lines[-1]) < 5_000
