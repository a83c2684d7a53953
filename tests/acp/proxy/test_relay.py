"""The proxy in front of an agent that can do nothing but answer: what passes, what is kept, what the editor gets besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Json
from tests.acp.proxy.in_process import Lenient, editor, heard, kept, line_agent, streams
from tests.acp.wire import Refusal, is_update, kinds, texts, url_of
from tests.support.waits import until

CALL = {
    "sessionUpdate": "tool_call",
    "toolCallId": "t1",
    "title": "Read x",
    "kind": "read",
    "status": "pending",
}
EDIT = {"type": "diff", "path": "/p/x", "oldText": "a", "newText": "b"}
TOOLS: list[Json] = [
    {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Let me "}}},
    {"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "see."}}},
    {"say": "I will "},
    {"say": "read it."},
    {"update": CALL},
    {
        "update": {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1",
            "status": "in_progress",
            "rawInput": {"path": "/p/x"},
            "locations": [{"path": "/p/x", "line": 3}],
        }
    },
    {
        "update": {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "t1",
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "ok"}}, EDIT],
            "rawOutput": {"n": 1},
        }
    },
    {
        "update": {
            "sessionUpdate": "plan",
            "entries": [{"content": "Rest", "priority": "low", "status": "pending"}],
        }
    },
    {"say": "Done."},
    {
        "update": {
            "sessionUpdate": "usage_update",
            "used": 100,
            "size": 1000,
            "cost": {"amount": 0.5, "currency": "USD"},
        }
    },
    {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}}},
]


async def test_what_an_agent_says_and_does_is_passed_on_and_kept(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        answer = await talk.prompt(session, TOOLS)
        said = talk.updates(session)
        assert [update for update in said if update["sessionUpdate"] != "session_info_update"] == [
            step["update"] if "update" in step else _chunk(step["say"]) for step in TOOLS[:-1]
        ]
        assert answer == TOOLS[-1]["result"]
    async with hitherto.open(url_of(tmp_path)) as sessions:
        found = await sessions.get(LOCAL, session)
        assert (found.agent_id, found.status, found.cost, found.message_count) == ("line", "idle", 0.5, 4)
        history = (await sessions.history(LOCAL, session)).entries
        assert history[-1].usage is not None
        assert (history[-1].usage.input, history[-1].usage.output) == (7, 3)
    assert (await kept(tmp_path, session))[1:] == [
        ("assistant", {"type": "thought", "text": "Let me see."}),
        ("assistant", {"type": "text", "text": "I will read it."}),
        (
            "assistant",
            {
                "type": "tool_call",
                "id": "t1",
                "name": "Read x",
                "title": "Read x",
                "kind": "read",
                "input": {"path": "/p/x"},
                "locations": [{"path": "/p/x", "line": 3}],
            },
        ),
        (
            "tool",
            {
                "type": "tool_result",
                "id": "t1",
                "content": [{"type": "text", "text": "ok"}, {"type": "unknown", "raw": EDIT}],
                "output": {"n": 1},
            },
        ),
        (
            "assistant",
            {"type": "plan", "steps": [{"content": "Rest", "priority": "low", "status": "pending"}]},
        ),
        ("assistant", {"type": "text", "text": "Done."}),
    ]


async def test_an_agent_without_load_list_and_fork_has_them(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        first = await talk.new(tmp_path)
        await talk.prompt(first, "Paint the barn")
        titled = await talk.until(is_update(first, "session_info_update"))
        assert titled["params"]["update"]["title"] == "Paint the barn"
        await talk.call("session/set_title", {"sessionId": first, "title": "The barn"})
    async with editor(tmp_path, line_agent(tmp_path)) as talk:  # the agent has forgotten everything
        (row,) = (await talk.call("session/list", {"cwd": str(tmp_path)}))["sessions"]
        assert (row["sessionId"], row["title"]) == (first, "The barn")
        replay = await talk.load(first, tmp_path)
        assert kinds(replay) == ["user_message_chunk", "agent_message_chunk"]
        assert texts(replay) == "You said: Paint the barn"
        assert (await talk.prompt(first, "Which colour?"))["stopReason"] == "end_turn"
        fork = await talk.call("session/fork", {"sessionId": first, "cwd": str(tmp_path), "mcpServers": []})
        assert texts(await talk.load(fork["sessionId"], tmp_path)).count("You said") == 2
        await talk.call("session/close", {"sessionId": first})
        await talk.call("session/resume", {"sessionId": first, "cwd": str(tmp_path)})
        await talk.call("session/delete", {"sessionId": first})
        assert [row["sessionId"] for row in (await talk.call("session/list"))["sessions"]] == [
            fork["sessionId"]
        ]
    prompts = heard(tmp_path, "session/prompt")
    assert [len(each["prompt"]) for each in prompts] == [1, 2]  # the second one with all that was said
    context = prompts[1]["prompt"][0]["text"]
    assert "User: Paint the barn\n\nAssistant: You said: Paint the barn" in context
    assert prompts[1]["prompt"][1] == {"type": "text", "text": "Which colour?"}


async def test_a_session_is_told_once_what_it_missed(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "One")
        async with hitherto.open(url_of(tmp_path)) as sessions:  # said through another door
            await sessions.append(
                LOCAL, session, hitherto.Draft(role="user", parts=(hitherto.Text(text="Else"),))
            )
        await talk.prompt(session, "Two")
        await talk.prompt(session, "Three")
    told = [[block["text"] for block in each["prompt"]] for each in heard(tmp_path, "session/prompt")]
    assert [len(blocks) for blocks in told] == [1, 2, 1]
    assert "Else" in told[1][0]
    assert "One" not in told[1][0]


async def test_a_session_that_was_rewound_goes_on_in_a_new_one_behind(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "One")
        await talk.prompt(session, "Two")
        async with hitherto.open(url_of(tmp_path)) as sessions:
            second = (await sessions.history(LOCAL, session)).entries[2].id
            await sessions.rewind(LOCAL, session, second)
        await talk.prompt(session, "Three")
    prompts = heard(tmp_path, "session/prompt")
    assert prompts[0]["sessionId"] == prompts[1]["sessionId"] != prompts[2]["sessionId"]
    assert "One" in prompts[2]["prompt"][0]["text"]
    assert "You said: Two" not in prompts[2]["prompt"][0]["text"]


async def test_a_long_conversation_is_told_as_a_summary_and_its_end(tmp_path: Path) -> None:
    long = [
        hitherto.Draft(role="user", parts=(hitherto.Text(text=f"Fact {at}: " + "word " * 400),))
        for at in range(60)
    ]
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = (await sessions.create(LOCAL, cwd=str(tmp_path))).id
        await sessions.append(LOCAL, session, long)
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        await talk.call("session/resume", {"sessionId": session, "cwd": str(tmp_path)})
        await talk.prompt(session, "Go on")
    context = heard(tmp_path, "session/prompt")[0]["prompt"][0]["text"]
    assert "Summary of the earlier messages" in context
    assert "Fact 59: " in context
    assert len(context) < 100_000


async def test_unknown_updates_fields_and_methods_pass_both_ways(tmp_path: Path) -> None:
    odd = {"sessionUpdate": "_odd", "x": [1, {"y": None}], "_meta": {"z": 1.5}}
    half = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","extra":{"a":1},"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud83d"}}}}'
    other = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"child","update":{"sessionUpdate":"_of_a_child"}}}'
    note = '{"jsonrpc":"2.0","method":"_note","params":{"sessionId":"$S","n":1}}'
    async with streams(tmp_path, line_agent(tmp_path, _meta={"mine": 1})) as (reader, writer):
        talk = Lenient(writer, reader)
        greeting = await talk.initialize({"_meta": {"theirs": 2}, "fs": {"readTextFile": True}})
        assert greeting["agentInfo"]["x"] == {"y": 1}
        assert greeting["agentCapabilities"]["_meta"]["mine"] == 1
        assert greeting["agentCapabilities"]["loadSession"] is True
        assert {"list", "resume", "close", "delete", "fork", "title"} <= set(
            greeting["agentCapabilities"]["sessionCapabilities"]
        )
        made = await talk.call(
            "session/new", {"cwd": str(tmp_path), "mcpServers": [], "_meta": {"k": 1}, "more": 2}
        )
        assert made["_meta"] == {"own": True}
        session = made["sessionId"]
        await talk.prompt(
            session,
            [{"update": odd}, {"raw": half}, {"raw": other}, {"raw": note}],
            _meta={"traceparent": "t"},
            new=3,
        )
        found = talk.updates(session)
        assert odd in found
        assert any(message["params"].get("extra") == {"a": 1} for message in talk.seen)
        assert any(message["params"]["sessionId"] == "child" for message in talk.seen)
        assert {"sessionId": session, "n": 1} in [message["params"] for message in talk.seen]
        got = await talk.call("_own/method", {"sessionId": session, "deep": {"_meta": 1}})
        assert got["got"]["params"]["deep"] == {"_meta": 1}
        assert got["got"]["params"]["sessionId"].startswith("behind-")
        await talk.send(id="a text", method="_own/method", params={})
        assert (await talk.until(lambda message: message.get("id") == "a text"))["result"]["got"][
            "params"
        ] == {}
        assert (await talk.call("authenticate", {"methodId": "m"}))["got"]["params"] == {"methodId": "m"}
        assert odd in await talk.load(session, tmp_path)
    assert heard(tmp_path, "initialize")[0]["clientCapabilities"]["_meta"] == {"theirs": 2}
    assert heard(tmp_path, "session/new")[0] == {
        "cwd": str(tmp_path),
        "mcpServers": [],
        "_meta": {"k": 1},
        "more": 2,
    }
    prompt = heard(tmp_path, "session/prompt")[0]
    assert (prompt["_meta"], prompt["new"]) == ({"traceparent": "t"}, 3)


async def test_what_the_agent_asks_of_the_editor_passes_with_its_answers(tmp_path: Path) -> None:
    shown = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Run", "status": "pending"}
    content = [{"type": "terminal", "terminalId": "term"}]
    ended = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t1",
        "status": "completed",
        "content": content,
    }
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        asked: list[Json] = []

        def read(params: Json) -> Json:
            asked.append(params)
            return {"content": "text"}

        talk.on["fs/read_text_file"] = read
        talk.on["terminal/output"] = lambda _: {"output": "all of it", "truncated": False}
        script = [
            {"ask": "fs/read_text_file", "params": {"path": "/p/x"}},
            {"update": shown},
            {
                "ask": "session/request_permission",
                "params": {"toolCall": {"toolCallId": "t1"}, "options": options},
            },
            {"ask": "terminal/output", "params": {"terminalId": "term"}},
            {"update": ended},
        ]
        await talk.prompt(session, script)
        assert asked == [{"sessionId": session, "path": "/p/x"}]
        assert '{"content": "text"}' in texts(talk.updates(session))
        assert '"selected"' in texts(talk.updates(session))
        number = await talk.begin_prompt(
            session, [{"withdraw": "fs/read_text_file", "params": {"path": "/never"}}, {"say": "Withdrawn"}]
        )
        talk.on.clear()
        await talk.answer(number)
        (question,) = [m for m in talk.seen if m.get("params", {}).get("path") == "/never"]
        (withdrawn,) = [m for m in talk.seen if m["method"] == "$/cancel_request"]
        assert withdrawn["params"]["requestId"] == question["id"]
    results = [part for _, part in await kept(tmp_path, session) if part["type"] == "tool_result"]
    assert results[0]["content"] == [{"type": "text", "text": "all of it"}]  # what the terminal showed


async def test_a_cancelled_turn_keeps_what_was_said(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        number = await talk.begin_prompt(session, [{"say": "Half"}, {"wait": True}])
        await talk.until(is_update(session, "agent_message_chunk"))
        await talk.send(method="session/cancel", params={"sessionId": session})
        assert (await talk.answer(number))["stopReason"] == "cancelled"
    assert (await kept(tmp_path, session))[-1] == ("assistant", {"type": "text", "text": "Half"})


async def test_a_turn_that_another_process_ends_is_ended_in_the_agent(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk, hitherto.open(url_of(tmp_path)) as sessions:
        session = await talk.new(tmp_path)
        number = await talk.begin_prompt(session, [{"say": "Half"}, {"wait": True}])
        await talk.until(is_update(session, "agent_message_chunk"))
        await sessions.turns.end(LOCAL, session)
        assert (await talk.answer(number))["stopReason"] == "cancelled"
        await talk.prompt(session, "Again")
    assert len(heard(tmp_path, "session/cancel")) == 1
    said = [part["text"] for role, part in await kept(tmp_path, session) if role == "assistant"]
    assert said == ["Half", "You said: Again"]


async def test_an_agent_that_dies_in_a_turn_is_told_of_and_started_again(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        with pytest.raises(Refusal, match="exited before it answered") as refused:
            await talk.prompt(session, [{"say": "Half of "}, {"say": "it"}, {"update": CALL}, {"exit": 3}])
        assert refused.value.error["code"] == -32030
        assert refused.value.error["data"] == {"code": "engine_error", "sessionId": session}
        await talk.prompt(session, "Again")
        assert texts(talk.updates(session)).endswith("You said: Again")
    parts = await kept(tmp_path, session)
    assert [part["text"] for _, part in parts if part["type"] == "text"][1] == "Half of it"
    assert [role for role, _ in parts] == ["user", "assistant", "assistant", "tool", "user", "assistant"]
    prompts = heard(tmp_path, "session/prompt")
    assert prompts[0]["sessionId"] != prompts[1]["sessionId"]
    assert "Half of it" in prompts[1]["prompt"][0]["text"]


async def test_requests_that_a_dead_agent_had_fail_and_its_questions_are_withdrawn(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        talk.on.clear()
        params = {"sessionId": "$S", "path": "/x"}
        asks = {
            "raw": json.dumps({"jsonrpc": "2.0", "id": "q", "method": "fs/read_text_file", "params": params})
        }
        number = await talk.begin_prompt(session, [asks, {"wait": True}, {"exit": 1}])
        question = await talk.until(lambda message: message.get("method") == "fs/read_text_file")
        waiting = await talk.begin("_own/method", {})  # it never answers this one
        await talk.send(method="$/cancel_request", params={"requestId": waiting})
        await talk.send(method="session/cancel", params={"sessionId": session})
        for each in (number, waiting):
            with pytest.raises(Refusal, match="'line' exited"):
                await talk.answer(each)
        withdrawn = await talk.until(lambda message: message.get("method") == "$/cancel_request")
        assert withdrawn["params"]["requestId"] == question["id"]
        await talk.send(id=question["id"], result={"content": "late"})
        await talk.prompt(session, "Again")
    lines = (tmp_path / "heard").read_text()
    assert "late" not in lines
    (own,) = [
        message for message in map(json.loads, lines.splitlines()) if message.get("method") == "_own/method"
    ]
    assert heard(tmp_path, "$/cancel_request") == [{"requestId": own["id"]}]


async def test_errors_of_the_agent_are_passed_on_as_they_are(tmp_path: Path) -> None:
    error = {"code": -32000, "message": "Authentication required", "data": "a text"}
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        with pytest.raises(Refusal) as refused:
            await talk.prompt(session, [{"say": "Oh"}, {"fail": error}])
        assert refused.value.error == error
        assert (await talk.prompt(session, "Again"))["stopReason"] == "end_turn"


async def test_lines_of_an_agent_that_are_no_messages_do_no_harm(tmp_path: Path) -> None:
    bad = [
        "not json",
        "[]",
        "{}",
        "null",
        "[" * 5000,
        '{"jsonrpc":"2.0","id":99,"result":{}}',
        '{"id":true,"result":1}',
    ]
    odd = [
        '{"jsonrpc":"2.0","method":"session/update"}',
        '{"jsonrpc":"2.0","method":"session/update","params":[]}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S"}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":7}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":["x"]}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":{"sessionUpdate":"plan"}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"plan","entries":7}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"tool_call"}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"tool_call_update","toolCallId":"z","status":"completed","content":{"a":1},"locations":7}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"agent_message_chunk","content":"bare"}}}',
        '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S","update":{"sessionUpdate":"usage_update","cost":{"amount":-1,"currency":"USD"}}}}',
    ]
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        await talk.initialize()
        session = await talk.new(tmp_path)
        script = [
            *({"raw": line} for line in (*bad, *odd)),
            {"bytes": [0xFF, 0xFE, 0x0A]},
            {"say": "Still here"},
        ]
        assert (await talk.prompt(session, script))["stopReason"] == "end_turn"
        assert "Still here" in [u["content"]["text"] for u in talk.updates(session) if _is_text(u)]
        assert await talk.load(session, tmp_path)
    assert ("assistant", {"type": "text", "text": "Still here"}) in await kept(tmp_path, session)


async def test_frames_of_an_editor_that_are_no_messages_are_answered_as_such(tmp_path: Path) -> None:
    async with streams(tmp_path, line_agent(tmp_path)) as (reader, writer):
        talk = Lenient(writer, reader)
        with pytest.raises(Refusal, match="call initialize first"):
            await talk.call("_own/method", {})
        with pytest.raises(Refusal, match="call initialize first"):
            await talk.call("session/list", {})
        await talk.initialize()
        for line, code in ((b"nothing", -32700), (b"[]", -32600), (b'{"id":{},"method":"x"}', -32600)):
            await talk.write(line + b"\n")
            assert (await talk.read())["error"]["code"] == code
        for method in ("session/load", "session/prompt", "session/fork"):
            with pytest.raises(Refusal) as refused:
                await talk.call(method, {"sessionId": "none", "cwd": "/p", "mcpServers": [], "prompt": []})
            assert refused.value.code == -32002
            assert refused.value.error["data"]["sessionId"] == "none"
        with pytest.raises(Refusal) as refused:
            await talk.call("session/new", {"cwd": "relative", "mcpServers": []})
        assert refused.value.code == -32602
    assert not heard(tmp_path, "session/new")


async def test_an_agent_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    async with streams(tmp_path, ["/nowhere/agent"]) as (reader, writer):
        talk = Lenient(writer, reader)
        with pytest.raises(Refusal, match="cannot start the agent '/nowhere/agent'"):
            await talk.initialize()


async def test_its_own_replay_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path, loadSession=True)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "Hello")
    before = await kept(tmp_path, session)
    async with editor(tmp_path, line_agent(tmp_path, loadSession=True)) as talk:
        number = await talk.begin(
            "session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        )
        assert (await talk.answer(number))["_meta"] == {"loaded": True, "hitherto/behind": "loaded"}
        assert "old word" not in texts(talk.updates(session))
        await talk.prompt(session, "More")
    assert len(heard(tmp_path, "session/prompt")[1]["prompt"]) == 1  # it knows what was said
    assert (
        heard(tmp_path, "session/load")[0]["sessionId"] == heard(tmp_path, "session/prompt")[1]["sessionId"]
    )
    assert (await kept(tmp_path, session))[: len(before)] == before
    assert len(await kept(tmp_path, session)) == len(before) + 2


async def test_what_an_agent_replays_of_its_own_fork_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path, sessionCapabilities={"fork": {}})) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "Hello")
        before = await kept(tmp_path, session)
        params = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        fork = (await talk.call("session/fork", params))["sessionId"]
        await talk.prompt(fork, "More")
        told = [kind for kind in kinds(talk.updates(fork)) if kind != "session_info_update"]
        assert told == ["current_mode_update", "agent_message_chunk"]
        assert texts(talk.updates(fork)) == "You said: More"
    assert heard(tmp_path, "session/prompt")[1]["sessionId"].endswith("-fork")
    assert len(await kept(tmp_path, fork)) == len(before) + 2


async def test_a_fork_that_was_made_elsewhere_does_not_go_on_in_its_source(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path, loadSession=True)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, "Hello")
        async with hitherto.open(url_of(tmp_path)) as sessions:
            fork = (await sessions.fork(LOCAL, session)).id
        await talk.load(fork, tmp_path)
        await talk.prompt(fork, "More")
    first, second = heard(tmp_path, "session/prompt")
    assert first["sessionId"] != second["sessionId"]
    assert "User: Hello" in second["prompt"][0]["text"]


async def test_nothing_is_said_of_a_session_before_the_editor_knows_it(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        assert not [message for message in talk.seen if message["method"] == "session/update"]
        await talk.prompt(session, "Hello")
        told = [message["params"]["update"]["sessionUpdate"] for message in talk.seen]
    assert told[:3] == ["available_commands_update", "available_commands_update", "agent_message_chunk"]


async def test_what_an_agent_says_between_turns_is_kept(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        await talk.prompt(session, [{"say": "One"}])
        behind = heard(tmp_path, "session/prompt")[0]["sessionId"]
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "By the way"}}
        frame = {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {"sessionId": behind, "update": chunk},
        }
        other = await talk.new(tmp_path)
        await talk.prompt(other, [{"raw": json.dumps(frame)}])
        await talk.until(
            lambda m: m.get("params", {}).get("update") == chunk and m["params"]["sessionId"] == session
        )
        await talk.prompt(session, "Two")
    said = [part["text"] for _, part in await kept(tmp_path, session)]
    assert said[1:] == ["One", "By the way", "Two", "You said: Two"]


async def test_two_editors_share_a_session_and_the_second_prompt_waits_for_the_first(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as one, editor(tmp_path, line_agent(tmp_path)) as two:
        session = await one.new(tmp_path)
        await two.load(session, tmp_path)
        number = await one.begin_prompt(session, [{"say": "Mine"}, {"wait": True}])
        await one.until(is_update(session, "agent_message_chunk"))
        waiting = await two.begin_prompt(session, "Now me")
        async with hitherto.open(url_of(tmp_path)) as sessions:

            async def is_waiting() -> bool:
                return bool(await sessions.inbox.waiting(LOCAL, session))

            await until(is_waiting, "the second prompt waits")
        assert len(heard(tmp_path, "session/prompt")) == 1
        await one.send(method="session/cancel", params={"sessionId": session})
        await one.answer(number)
        await two.answer(waiting)
        await one.until(lambda m: "Now me" in json.dumps(m.get("params", {})))
    told = heard(tmp_path, "session/prompt")[1]["prompt"]
    assert "Assistant: Mine" in told[0]["text"]


async def test_an_editor_that_leaves_in_a_turn_loses_nothing(tmp_path: Path) -> None:
    async with editor(tmp_path, line_agent(tmp_path)) as talk:
        session = await talk.new(tmp_path)
        await talk.begin_prompt(session, [{"say": "Half"}, {"wait": True}])
        await talk.until(is_update(session, "agent_message_chunk"))
    assert [part["text"] for _, part in await kept(tmp_path, session)][1:] == ["Half"]
    async with hitherto.open(url_of(tmp_path)) as sessions:
        assert (await sessions.get(LOCAL, session)).status == "idle"


async def test_titles_of_the_agent_hold_until_the_user_gives_one(tmp_path: Path) -> None:
    def titled(title: str) -> list[Json]:
        return [{"update": {"sessionUpdate": "session_info_update", "title": title}}, {"say": "Yes"}]

    async with editor(tmp_path, line_agent(tmp_path)) as talk, hitherto.open(url_of(tmp_path)) as sessions:
        session = await talk.new(tmp_path)
        await talk.prompt(session, titled("The agent's"))

        async def is_titled() -> bool:
            return (await sessions.get(LOCAL, session)).title == "The agent's"

        await until(is_titled, "the agent's title")
        await talk.call("session/set_title", {"sessionId": session, "title": "The user's"})
        await talk.prompt(session, titled("Another"))
        assert (await sessions.get(LOCAL, session)).title == "The user's"
        assert "Another" not in [update.get("title") for update in talk.updates(session)]


def _chunk(text: str) -> Json:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def _is_text(update: Json) -> bool:
    return (
        isinstance(update, dict) and isinstance(update.get("content"), dict) and "text" in update["content"]
    )
