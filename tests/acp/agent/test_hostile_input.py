"""Whatever comes in: a proper error or nothing, and the next good request works."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acp.wire import Json, Refusal, Talk, scripted, separate, texts, unmet
from tests.support.waits import arrives, until, within

DEEP = b"[" * 100_000 + b"]" * 100_000
FRAMES: list[tuple[bytes, int | None, Any]] = [
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]', -32600, None),
    (b"nonsense", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"session/li', -32700, None),
    (b"\xff\xfe\x00", -32700, None),
    (b'"text"', -32600, None),
    (b"5", -32600, None),
    (b"null", -32600, None),
    (b"{}", -32600, None),
    (b'{"id":7,"method":"session/list"}', -32600, 7),
    (b'{"jsonrpc":"1.0","id":7,"method":"session/list"}', -32600, 7),
    (b'{"jsonrpc":2.0,"id":7,"method":"session/list"}', -32600, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
    (b'{"jsonrpc":"2.0","id":{},"method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":"\xff","method":"session/list"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"_no/such"}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/set_model","params":{}}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":"seven","method":"no/such"}', -32601, "seven"),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/list","params":[]}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/list","params":"x"}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cwd":' + DEEP + b"}}", -32700, None),
    (DEEP, -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cwd":1e999}}', -32602, 7),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"' + b"9" * 5_000 + b'"}}',
        -32602,
        7,
    ),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt"}', -32602, 7),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":null,"prompt":[]}}',
        -32602,
        7,
    ),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/a\\u0000b","mcpServers":[]}}',
        -32602,
        7,
    ),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/status","params":{"sessionId":"a\\u0000b"}}', -32002, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/status","params":{"sessionId":"\\ud800"}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/status","params":{"sessionId":"\xff"}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"1"}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":70000}}', -32602, 7),
    (
        b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":' + b"9" * 400 + b"}}",
        -32602,
        7,
    ),
    (b'{"jsonrpc":"2.0","id":7,"method":"authenticate","params":{"methodId":"x"}}', -32602, 7),
    (b'{"jsonrpc":"2.0","id":7,"method":"logout","params":{}}', -32601, 7),
]
SILENT = [
    b"",
    b"   ",
    b"\r",
    b'{"jsonrpc":"2.0","method":"no/such"}',
    b'{"jsonrpc":"2.0","method":"session/cancel"}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nowhere"}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[[]]}}',
    b'{"jsonrpc":"2.0","method":"$/progress","params":{}}',
    b'{"jsonrpc":"2.0","id":12345,"result":{}}',
    b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":1,"error":"no object"}',
]


async def test_a_bad_frame_is_answered_properly_and_the_next_good_one_works(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        for frame, code, number in FRAMES:
            await agent.write(frame + b"\n")
            message = await agent.read()
            assert (message["error"]["code"], message["id"]) == (code, number), frame[:200]
            assert "Traceback" not in message["error"]["message"]
        assert await agent.call("session/list") == {"sessions": []}


async def test_what_needs_no_answer_gets_none(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        await agent.write(b"\n".join(SILENT) + b"\n")
        assert await agent.call("session/list") == {"sessions": []}
        assert agent.seen == []
        assert len(agent.lines) == 2


async def test_an_id_comes_back_as_it_was(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        for number in (b"null", b"0", b"-5", b"1.5", b'"\\u00e9"', b"9" * 300, b'"\\ud800"'):
            await agent.write(b'{"jsonrpc":"2.0","id":%b,"method":"no/such"}\n' % number)
            line = await arrives(agent._out.readline(), "an answer")
            told = json.loads(line)["id"]
            assert told == json.loads(number.replace(b"\\ud800", b"\\ufffd"))


async def test_two_requests_of_one_id_are_both_answered(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        agent.methods[7] = "session/list"
        await agent.write(b'{"jsonrpc":"2.0","id":7,"method":"session/list"}\n' * 2)
        assert [(await agent.read())["id"] for _ in range(2)] == [7, 7]


async def test_half_of_a_line_waits_for_the_other_half(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        agent.methods[7] = "session/list"
        line = b'{"jsonrpc":"2.0","id":7,"method":"session/list"}\n'
        for at in range(len(line)):
            await agent.write(line[at : at + 1])
        assert (await agent.read())["id"] == 7


async def test_a_line_without_end_at_the_end_of_input_is_a_line(tmp_path: Path) -> None:
    async with unmet(tmp_path) as agent:
        agent.methods[7] = "initialize"
        await agent.write(b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}\n')
        await agent.write(b'{"jsonrpc":"2.0","id":8,"method":"no/such"}')
        agent._in.write_eof()
        assert [(await agent.read())["id"] for _ in range(2)] == [7, 8]


async def test_random_bytes_do_no_harm(tmp_path: Path) -> None:
    dice = random.Random(5)
    good = b'{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cwd":"/a","cursor":null,"_meta":{}}}'
    async with scripted(tmp_path) as agent:
        agent.methods[7] = "session/list"
        for _ in range(300):
            line = bytearray(good)
            for _ in range(dice.randrange(1, 6)):
                line[dice.randrange(len(line))] = dice.randrange(256)
            await agent.write(bytes(line).replace(b"\n", b" ") + b"\n")
        await agent.write(dice.randbytes(100_000) + b"\n")
        number = await agent.begin("session/list", {"search": "the last one"})
        async with within("the last answer"):
            while True:
                message = json.loads(await agent._out.readline())
                assert message["jsonrpc"] == "2.0"
                if message.get("id") == number:
                    break


async def test_a_line_of_64_megabytes_is_refused_without_being_kept(tmp_path: Path) -> None:
    async with separate(tmp_path) as agent:
        process = psutil.Process(agent.process.pid)
        before = process.memory_info().rss
        piece = b"x" * 1024 * 1024
        for _ in range(64):
            await agent.write(piece)
        await agent.write(b"\n")
        refused = await agent.read()
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        assert process.memory_info().rss - before < 60 * 1024 * 1024
        assert await agent.call("session/list") == {"sessions": []}


async def test_nothing_is_served_before_initialize(tmp_path: Path) -> None:
    async with unmet(tmp_path) as agent:
        with pytest.raises(Refusal) as refused:
            await agent.call("session/list")
        assert refused.value.code == -32600
        answer = await agent.initialize()
        assert answer["protocolVersion"] == 1
        assert await agent.call("session/list") == {"sessions": []}


async def test_whatever_version_is_asked_for_version_one_is_offered(tmp_path: Path) -> None:
    async with unmet(tmp_path) as agent:
        for version in (2, 0, 1, 65_535):
            assert (await agent.call("initialize", {"protocolVersion": version}))["protocolVersion"] == 1


async def test_a_capability_of_the_wrong_type_counts_as_none(tmp_path: Path) -> None:
    strange: list[Any] = [None, 5, [], {"fs": 5}, {"session": {"notices": False}}, {"terminal": "yes"}]
    async with unmet(tmp_path) as agent:
        for capabilities in strange:
            params: Json = {
                "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": 5, "_meta": 5,
            }  # fmt: skip
            assert (await agent.call("initialize", params))["protocolVersion"] == 1


async def test_a_client_that_does_not_read_costs_nothing(tmp_path: Path) -> None:
    call = {"id": "t1", "name": "run", "kind": "execute"}
    async with separate(tmp_path) as agent:
        process = psutil.Process(agent.process.pid)
        session = await agent.new(tmp_path)
        await agent.prompt(session, "first")
        before = process.memory_info().rss
        prompt = await agent.begin_prompt(
            session, [{"call": call}, {"churn": 3_000}, {"result": "ok"}, "end"]
        )
        # Nothing is read until another process sees that the turn is over.
        async with scripted(tmp_path) as other:

            async def over() -> bool:
                return bool((await row(other, session))["_meta"]["messageCount"] >= 6)

            await until(over, "the end of the turn")
        assert process.memory_info().rss - before < 30 * 1024 * 1024
        assert (await agent.answer(prompt))["stopReason"] == "end_turn"
        found = agent.updates(session)
        assert texts(found) == "You said: firstend"
        ends = [update["status"] for update in found if update["sessionUpdate"] == "tool_call_update"]
        assert ends[-1] == "completed"
        assert len(ends) < 1_000


async def row(agent: Talk, session_id: str) -> Json:
    found: Json = (await agent.call("_hitherto/session/batch_get", {"sessionIds": [session_id]}))["sessions"][
        0
    ]
    return found


async def test_a_thousand_requests_at_once_are_all_answered(tmp_path: Path) -> None:
    async with scripted(tmp_path) as agent:
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "session/list"}) for number in range(1000)
        ]
        agent.methods = dict.fromkeys(range(1000), "session/list")
        sending = asyncio.ensure_future(agent.write("\n".join(lines).encode() + b"\n"))
        numbers = {(await agent.read())["id"] for _ in range(1000)}
        await arrives(sending, "all requests to be sent")
        assert numbers == set(range(1000))
