"""`session/load` and its kin: the whole conversation, the same each time, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import (
    LOCAL,
    Audio,
    Draft,
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from hitherto.service import Imported
from tests.acp.wire import EVERYTHING, Json, Refusal, kinds, scripted, texts, url_of

NOON = 1_767_225_600_000
MALFORMED: list[Json] = [
    {"cwd": "relative"},
    {"cwd": ""},
    {"cwd": 5},
    {"additionalDirectories": ["relative"]},
    {"additionalDirectories": [""]},
    {"additionalDirectories": [5]},
    {"additionalDirectories": "/a"},
    {"mcpServers": [{"name": "x"}]},
    {"mcpServers": [{"command": "x"}]},
    {"mcpServers": [{"type": "http", "name": "x", "url": "ftp://x", "headers": []}]},
    {"mcpServers": [{"type": "carrier pigeon", "name": "x"}]},
    {"mcpServers": [{"name": "x", "command": "y", "args": "z", "env": []}]},
    {"mcpServers": [{"name": "x", "command": "y", "args": [], "env": [{"name": "v"}]}]},
    {"mcpServers": [{"name": "x", "command": "y", "env": []}]},
    {"mcpServers": [{"name": "x", "command": "y", "args": []}]},
    {"mcpServers": [{"name": "", "command": "y", "args": [], "env": []}]},
    {"mcpServers": [{"type": "http", "name": "x", "url": "http://x"}]},
    {"mcpServers": [{"type": "sse", "name": "x", "url": "http://x"}]},
    {"mcpServers": [5]},
    {"mcpServers": {}},
]


async def said(folder: Path, *drafts: Draft, **fields: Any) -> str:
    """The id of a new session in which this was said."""
    async with hitherto.open(url_of(folder)) as sessions:
        session = await sessions.create(LOCAL, cwd=str(folder), **fields)
        for draft in drafts:
            await sessions.append(LOCAL, session.id, draft)
        return session.id


def draft(role: Role, *parts: Part, **fields: Any) -> Draft:
    return Draft(role=role, parts=parts, at=NOON, **fields)


async def test_everything_that_was_said_is_replayed_in_order_then_the_answer(tmp_path: Path) -> None:
    call = ToolCall(id="t1", name="Bash", kind="execute", input={"command": "ls"}, title="ls")
    session = await said(
        tmp_path,
        draft("user", Text(text="Look around.")),
        draft("assistant", Thought(text="Hm."), Text(text="I will."), call),
        draft("tool", ToolResult(id="t1", content=(Text(text="a.txt"),), output={"code": 0})),
        draft("assistant", Plan(steps=({"content": "rest"},)), Text(text="One file.")),
    )
    async with scripted(tmp_path) as agent:
        found = await agent.load(session, tmp_path)
        assert kinds(found) == [
            "user_message_chunk", "agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update",
            "plan", "agent_message_chunk",
        ]  # fmt: skip
        assert {update["_meta"]["hitherto/at"] for update in found} == {"2026-01-01T00:00:00.000Z"}
        shown, end = found[3], found[4]
        assert (shown["kind"], shown["title"], shown["rawInput"]) == ("execute", "ls", {"command": "ls"})
        assert (end["status"], end["rawOutput"]) == ("completed", {"code": 0})
        assert end["content"] == [{"type": "content", "content": {"type": "text", "text": "a.txt"}}]
        assert await agent.load(session, tmp_path) == found
    async with scripted(tmp_path) as agent:
        assert await agent.load(session, tmp_path) == found


async def test_every_part_that_a_client_can_show_is_replayed(tmp_path: Path) -> None:
    parts: tuple[Part, ...] = (
        Image(mime_type="image/png", data="aGk=", uri="file:///a.png"),
        Image(mime_type="image/png", uri="https://example.org/pictures/b.png"),
        Audio(mime_type="audio/wav", data="aGk="),
        Resource(uri="file:///a.txt", text="text", mime_type="text/plain"),
        Resource(uri="file:///a.bin", blob="aGk="),
        Resource(uri="file:///only/a/name"),
        ResourceLink(uri="file:///c.txt"),
        ResourceLink(uri="file:///d.txt", name="d", title="D", description="the fourth", size=4),
        Unknown(raw={"type": "later"}),
    )
    session = await said(tmp_path, draft("user", *parts))
    async with scripted(tmp_path) as agent:
        blocks = [update["content"] for update in await agent.load(session, tmp_path)]
    assert blocks == [
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png"},
        {
            "type": "resource_link",
            "uri": "https://example.org/pictures/b.png",
            "name": "b.png",
            "mimeType": "image/png",
        },
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {
            "type": "resource",
            "resource": {"uri": "file:///a.txt", "text": "text", "mimeType": "text/plain"},
        },
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "aGk="}},
        {"type": "resource_link", "uri": "file:///only/a/name", "name": "name"},
        {"type": "resource_link", "uri": "file:///c.txt", "name": "c.txt"},
        {
            "type": "resource_link",
            "uri": "file:///d.txt",
            "name": "d",
            "title": "D",
            "description": "the fourth",
            "size": 4,
        },
    ]


@pytest.mark.parametrize(
    ("given", "diffs"),
    [
        ({"file_path": "/a", "old_string": "x", "new_string": "y"}, [("/a", "x", "y")]),
        ({"file_path": "/a", "content": "all"}, [("/a", None, "all")]),
        (
            {
                "file_path": "/a",
                "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
            },
            [("/a", "1", "2"), ("/a", "3", "4")],
        ),
    ],
)
async def test_edits_of_other_agents_are_shown_as_diffs(
    tmp_path: Path, given: Json, diffs: list[tuple[str, str | None, str]]
) -> None:
    session = await said(
        tmp_path,
        draft("assistant", ToolCall(id="e", name="Edit", kind="edit", input=given)),
        draft("tool", ToolResult(id="e", content=(Text(text="The file was updated."),))),
    )
    async with scripted(tmp_path) as agent:
        call, end = await agent.load(session, tmp_path)
    shown = [(each["path"], each["oldText"], each["newText"]) for each in call["content"]]
    assert shown == diffs
    # Content would replace the diff: an edit that went well leaves it standing.
    assert "content" not in end
    assert end["status"] == "completed"


async def test_a_tool_whose_end_nobody_saw_is_ended_as_failed(tmp_path: Path) -> None:
    calls = [ToolCall(id=name, name="Bash") for name in ("a", "b", "c")]
    session = await said(
        tmp_path,
        draft("assistant", calls[0], calls[1]),
        draft("tool", ToolResult(id="b")),
        draft("user", Text(text="Go on.")),
        draft("assistant", calls[2]),
    )
    async with scripted(tmp_path) as agent:
        found = await agent.load(session, tmp_path)
    ends = [
        (each["toolCallId"], each["status"]) for each in found if each["sessionUpdate"] == "tool_call_update"
    ]
    assert ends == [("b", "completed"), ("a", "failed"), ("c", "failed")]
    assert kinds(found).index("user_message_chunk") == 4


async def compacted(folder: Path) -> str:
    session = await said(
        folder,
        draft("user", Text(text="one")),
        draft("assistant", Text(text="two")),
        draft("user", Text(text="three")),
    )
    async with hitherto.open(url_of(folder)) as sessions:
        await sessions.compact(LOCAL, session, draft("system", Text(text="the sum")), keep=1)
        await sessions.append(LOCAL, session, draft("assistant", Text(text="four")))
    return session


async def test_a_compaction_is_a_mark_among_all_that_was_said(tmp_path: Path) -> None:
    session = await compacted(tmp_path)
    async with scripted(tmp_path, EVERYTHING) as agent:
        found = await agent.load(session, tmp_path)
    assert kinds(found) == [
        "user_message_chunk", "agent_message_chunk", "user_message_chunk", "compaction_update",
        "agent_message_chunk",
    ]  # fmt: skip
    assert found[3]["summary"] == [{"type": "text", "text": "the sum"}]


async def test_a_client_that_knows_no_compaction_gets_all_that_was_said_and_no_summary(
    tmp_path: Path,
) -> None:
    session = await compacted(tmp_path)
    async with scripted(tmp_path) as agent:
        found = await agent.load(session, tmp_path)
    assert [update["content"]["text"] for update in found] == ["one", "two", "three", "four"]


async def test_texts_that_are_no_unicode_are_mended_for_the_wire(tmp_path: Path) -> None:
    broken = "half \ud83d an emoji"
    session = await said(
        tmp_path,
        draft("user", Text(text=broken)),
        draft("assistant", ToolCall(id="t", name="x", input={broken: 1 << 80})),
    )
    async with scripted(tmp_path) as agent:
        text, call, _ = await agent.load(session, tmp_path)
        assert text["content"]["text"] == "half \ufffd an emoji"
        assert call["rawInput"] == {"half \ufffd an emoji": 1 << 80}
        assert b"\\ud83d" not in b"".join(agent.lines)


async def test_a_long_conversation_comes_whole_and_in_order(tmp_path: Path) -> None:
    drafts = [draft("user" if at % 2 else "assistant", Text(text=f"{at}")) for at in range(2_500)]
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = await sessions.create(LOCAL, cwd=str(tmp_path))
        await sessions.append(LOCAL, session.id, drafts)
        await sessions.append(LOCAL, session.id, draft("user", Text(text="y" * 3_000_000)))
        await sessions.append(LOCAL, session.id, draft("user", Text(text="end")))
    async with scripted(tmp_path) as agent:
        found = await agent.load(session.id, tmp_path)
    assert [update["content"]["text"] for update in found[:2_500]] == [str(at) for at in range(2_500)]
    assert [len(update["content"]["text"]) for update in found[2_500:]] == [3_000_000, 3]


async def test_resume_tells_nothing_of_what_was_said_and_goes_on(tmp_path: Path) -> None:
    session = await said(tmp_path, draft("user", Text(text="before")))
    async with scripted(tmp_path) as agent:
        answer = await agent.call("session/resume", {"sessionId": session, "cwd": str(tmp_path)})
        assert set(answer) == {"modes", "configOptions"}
        assert agent.updates(session) == []
        await agent.prompt(session, "now")
        assert texts(agent.updates(session)) == "You said: now"


async def test_a_new_session_is_there_for_the_next_process(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path)
    async with scripted(tmp_path) as agent:
        assert await agent.load(session, tmp_path) == []
        assert (await agent.prompt(session, "hello"))["stopReason"] == "end_turn"


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_a_session_that_is_not_there_is_never_opened_blank(tmp_path: Path, method: str) -> None:
    async with scripted(tmp_path) as agent:
        with pytest.raises(Refusal) as refused:
            await agent.call(method, {"sessionId": "nowhere", "cwd": str(tmp_path), "mcpServers": []})
        assert refused.value.code == -32002
        assert refused.value.error["data"]["sessionId"] == "nowhere"


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_another_folder_than_the_sessions_own_is_refused_with_the_right_one(
    tmp_path: Path, method: str
) -> None:
    session = await said(tmp_path)
    async with scripted(tmp_path) as agent:
        with pytest.raises(Refusal) as refused:
            await agent.call(method, {"sessionId": session, "cwd": "/elsewhere", "mcpServers": []})
        assert refused.value.code == -32602
        assert refused.value.error["data"]["cwd"] == str(tmp_path)
        assert refused.value.error["data"]["code"] == "invalid_cwd"
        # Another spelling of it is the same folder.
        await agent.call(method, {"sessionId": session, "cwd": f"{tmp_path}/./", "mcpServers": []})


async def test_a_new_session_with_a_malformed_field_is_refused_and_not_made(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        for fields in MALFORMED:
            with pytest.raises(Refusal) as refused:
                await agent.call("session/new", {"cwd": str(tmp_path), "mcpServers": [], **fields})
            assert refused.value.code == -32602, fields
            assert refused.value.error["data"]["code"] in ("invalid_input", "invalid_cwd"), fields
        assert (await agent.call("session/list"))["sessions"] == []


async def test_a_fork_shares_the_history_and_can_be_prompted_at_once(tmp_path: Path) -> None:
    session = await said(tmp_path, draft("user", Text(text="one")), draft("user", Text(text="two")))
    async with scripted(tmp_path) as agent:
        first, _ = await agent.load(session, tmp_path)
        params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        fork = (await agent.call("session/fork", params))["sessionId"]
        assert fork != session
        await agent.prompt(fork, "three")
        assert texts(await agent.load(fork, tmp_path), "user_message_chunk") == "onetwothree"
        assert texts(await agent.load(session, tmp_path), "user_message_chunk") == "onetwo"
        at = {**params, "_meta": {"hitherto/messageId": first["messageId"]}}
        early = (await agent.call("session/fork", at))["sessionId"]
        assert texts(await agent.load(early, tmp_path), "user_message_chunk") == "one"
        with pytest.raises(Refusal) as refused:
            await agent.call("session/fork", {**params, "_meta": {"hitherto/messageId": "nowhere"}})
        assert refused.value.code == -32602
        assert refused.value.error["data"] == {
            "code": "entry_not_found", "sessionId": session, "messageId": "nowhere",
        }  # fmt: skip


async def taken_in(folder: Path) -> str:
    """A session of another agent, as sync brings it."""
    entries = [
        Entry(id="a", at=NOON, role="user", parts=(Text(text="hidden"),), meta={"meta": True}),
        Entry(id="b", at=NOON, role="user", parts=(Text(text="Hello"),)),
        Entry(id="c", at=NOON, role="assistant", parts=(Text(text="Hi"),)),
    ]
    given = Imported(
        id="claude:1", source="claude", created_at=NOON, updated_at=NOON, cwd=str(folder), title="Theirs"
    )
    async with hitherto.open(url_of(folder)) as sessions:
        await sessions.transfer.sync(LOCAL, given, entries)
    return given.id


async def test_a_session_of_another_agent_is_replayed_without_what_nobody_said(tmp_path: Path) -> None:
    session = await taken_in(tmp_path)
    async with scripted(tmp_path) as agent:
        found = await agent.load(session, tmp_path)
    assert [(update["messageId"], update["content"]["text"]) for update in found] == [
        ("b", "Hello"),
        ("c", "Hi"),
    ]


async def test_prompting_a_session_of_another_agent_goes_on_in_a_fork_and_says_so(tmp_path: Path) -> None:
    session = await taken_in(tmp_path)
    async with scripted(tmp_path) as agent:
        await agent.load(session, tmp_path)
        answer = await agent.prompt(session, "And now?")
        fork = answer["_meta"]["hitherto/continuedAs"]
        assert texts(agent.updates(session)) == "HiYou said: And now?"
        told = [each for each in agent.updates(session) if each["sessionUpdate"] == "session_info_update"]
        assert told[-1]["_meta"] == {"hitherto/continuedAs": fork}
        assert (await agent.prompt(session, "More"))["_meta"] == {"hitherto/continuedAs": fork}
        assert texts(await agent.load(fork, tmp_path)) == "HiYou said: And now?You said: More"
        assert texts(await agent.load(session, tmp_path)) == "HiYou said: And now?You said: More"
        await agent.call("session/set_mode", {"sessionId": session, "modeId": "plan"})
        assert (await agent.prompt(session, "Plan it"))["_meta"] == {"hitherto/continuedAs": fork}
        opened = await agent.call("session/resume", {"sessionId": fork, "cwd": str(tmp_path)})
        assert opened["modes"]["currentModeId"] == "plan", "what was chosen before the fork was found again"


async def test_nothing_of_another_session_comes_in_between(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = await sessions.create(LOCAL, cwd=str(tmp_path))
        drafts = [draft("user", Text(text="x" * 2_000)) for _ in range(1_000)]
        await sessions.append(LOCAL, session.id, drafts)
    async with scripted(tmp_path) as agent:
        other = await agent.new(tmp_path)
        call = {"id": "t1", "name": "run", "kind": "execute"}
        params = {"sessionId": session.id, "cwd": str(tmp_path), "mcpServers": []}
        loads = [await agent.begin("session/load", params) for _ in range(2)]
        prompt = await agent.begin_prompt(other, [{"call": call}, {"churn": 50}, {"result": "ok"}, "end"])
        for number in (*loads, prompt):
            await agent.answer(number)
        told = [message["params"] for message in agent.seen]
        own = ("available_commands_update", "session_info_update")
        order = [each["sessionId"] for each in told if each["update"]["sessionUpdate"] not in own]
        replays = "".join("r" if each == session.id else "o" for each in order)
        assert replays.replace("o", "") == "r" * 2_000
        assert [len(run) % 1_000 for run in replays.split("o") if run] == [0] * len(
            [run for run in replays.split("o") if run]
        )


async def test_a_load_can_be_cancelled_and_leaves_a_whole_line_behind(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = await sessions.create(LOCAL, cwd=str(tmp_path))
        drafts = [draft("user", Text(text="x" * 2_000)) for _ in range(2_000)]
        await sessions.append(LOCAL, session.id, drafts)
    async with scripted(tmp_path) as agent:
        params = {"sessionId": session.id, "cwd": str(tmp_path), "mcpServers": []}
        number = await agent.begin("session/load", params)
        await agent.step()
        await agent.send(method="$/cancel_request", params={"requestId": number})
        with pytest.raises(Refusal) as refused:
            await agent.answer(number)
        assert refused.value.code == -32800
        assert len(agent.seen) < 2_000
        assert await agent.call("session/status", {"sessionId": session.id}) == {"status": "saved"}
        assert len(await agent.load(session.id, tmp_path)) == 2_000


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_folders_that_are_named_are_those_that_the_session_has_from_then_on(
    tmp_path: Path, method: str
) -> None:
    session = await said(tmp_path, additional_directories=("/before",))
    where = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
    async with scripted(tmp_path) as agent:
        for named in (["/q", "/r/../s"], [], None):
            answer = await agent.call(method, {**where, "additionalDirectories": named})
            opened = answer.get("sessionId", session)
            rows = {row["sessionId"]: row for row in (await agent.call("session/list"))["sessions"]}
            assert rows[opened].get("additionalDirectories", []) == (["/q", "/s"] if named else [])
        with pytest.raises(Refusal):
            await agent.call(method, {**where, "additionalDirectories": ["relative"]})


async def test_a_session_with_a_running_turn_is_not_opened_with_other_folders(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        session = await agent.new(tmp_path, additionalDirectories=["/q"])
        prompt = await agent.begin_prompt(session, ["x", {"store": True}, "y", {"hang": True}])
        await agent.until(lambda _: texts(agent.updates(session)) == "xy")
        with pytest.raises(Refusal) as refused:
            await agent.load(session, tmp_path)
        assert refused.value.error["data"]["code"] == "busy"
        assert texts(await agent.load(session, tmp_path, additionalDirectories=["/q"])) == "x"
        await agent.send(method="session/cancel", params={"sessionId": session})
        assert (await agent.answer(prompt))["stopReason"] == "cancelled"
