"""The protocol's TypeScript SDK as the client of `hitherto acp`: `make interop`.

The model behind it is on the loopback interface. Every line that the agent says is held against the official schema.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import LOCAL
from tests.acp.wire import environment, url_of
from tests.engines.provider import PAUSE, Provider, ToolUse, serving
from tests.interop.packages import NODE, SDK, install
from tests.interop.schema import Schema
from tests.interop.tap import conversations
from tests.support.paths import ROOT
from tests.support.waits import arrives, within

Json = dict[str, Any]
DRIVER = Path(__file__).parent / "js" / "driver.mjs"

pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


class Refusal(Exception):
    def __init__(self, error: Json) -> None:
        super().__init__(error)
        self.code: int = error["code"]
        self.data: Any = error.get("data")


class Driver:
    """The SDK's client, told what to call. `said` is what it told meanwhile, in order."""

    def __init__(self, process: asyncio.subprocess.Process, provider: Provider, folder: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout
        self.provider, self.folder = provider, folder
        self.said: list[Json] = []
        self._numbers = itertools.count(1)
        self._ended: dict[int, Json] = {}

    async def tell(self, **what: Any) -> None:
        self._in.write(json.dumps(what).encode() + b"\n")
        await arrives(self._in.drain(), "the client to take a line")

    async def begin(self, method: str, **params: Any) -> int:
        number = next(self._numbers)
        await self.tell(id=number, call=method, params=params)
        return number

    async def call(self, method: str, **params: Any) -> Json:
        return await self.end(await self.begin(method, **params))

    async def end(self, number: int) -> Json:
        async with within(f"the end of call {number}"):
            while number not in self._ended:
                await self._step()
        message = self._ended.pop(number)
        if "error" in message:
            raise Refusal(message["error"])
        result: Json = message["result"]
        return result

    async def until(self, wanted: Callable[[Json], bool]) -> Json:
        async with within("something that is wanted"):
            while not any(map(wanted, self.said)):
                await self._step()
        return next(filter(wanted, self.said))

    async def open(self, method: str = "session/new", **params: Any) -> Json:
        return await self.call(method, **{"cwd": str(self.folder), "mcpServers": [], **params})

    async def begin_prompt(self, session: str, text: str) -> int:
        return await self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session: str, text: str) -> Json:
        return await self.end(await self.begin_prompt(session, text))

    async def replay(self, session: str) -> list[tuple[str, str]]:
        before = len(self.said)
        await self.open("session/load", sessionId=session)
        updates = [message["update"]["update"] for message in self.said[before:] if "update" in message]
        return [
            (update["sessionUpdate"], update["content"]["text"])
            for update in updates
            if update["sessionUpdate"].endswith("_chunk")
        ]

    async def leave(self) -> int:
        self._in.close()
        return await arrives(self.process.wait(), "the client to end")

    async def _step(self) -> None:
        line = await arrives(self._out.readline(), "a line of the client")
        assert line, "the client has left"
        message = json.loads(line)
        if "id" in message:
            self._ended[message["id"]] = message
        else:
            self.said.append(message)


def says(text: str) -> Callable[[Json], bool]:
    """Whether this is a chunk of the agent's with that text."""

    def wanted(message: Json) -> bool:
        update = message.get("update", {}).get("update", {})
        return bool(
            update.get("sessionUpdate") == "agent_message_chunk" and update["content"]["text"] == text
        )

    return wanted


def agent_command(lines: Path, folder: Path) -> list[str]:
    """`hitherto acp`, with each line noted."""
    agent = [sys.executable, "-m", "hitherto", "acp", "--store", url_of(folder)]
    tap = [sys.executable, str(Path(__file__).parent / "tap.py"), str(lines)]
    return [*tap, *agent, "--model", "anthropic:claude-sonnet-4-5"]


def check_lines(lines: Path) -> int:
    """Hold every line of every agent against the schema; returns how many there were."""
    count = 0
    for conversation in conversations(lines):
        schema = Schema()
        for side, line in conversation:
            if side == "client":
                schema.note(line)
            else:
                schema.check(line)
        count += schema.checked
    return count


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[Driver]:
    install()
    lines, work = tmp_path / "lines", tmp_path / "work"
    lines.mkdir()
    work.mkdir()
    with serving() as provider:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            NODE,
            DRIVER,
            SDK / "dist" / "v1" / "unstable" / "acp.js",
            *agent_command(lines, tmp_path),
            stdin=pipe,
            stdout=pipe,
            cwd=ROOT,
            env=environment(tmp_path, provider.environ()),
            limit=64 * 1024 * 1024,
        )
        made = Driver(process, provider, work)
        try:
            greeting = await made.call("initialize", protocolVersion=1, clientCapabilities=EVERYTHING)
            assert greeting["protocolVersion"] == 1
            yield made
            assert await made.leave() == 0
        finally:
            if process.returncode is None:
                process.kill()
            await arrives(process.wait(), "the end of the client")
        assert check_lines(lines) > 1


EVERYTHING = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
}


async def test_a_session_is_made_prompted_loaded_and_resumed(driver: Driver) -> None:
    driver.provider.script(["Hel", "lo."], ["A title"])
    session = (await driver.open())["sessionId"]
    assert (await driver.prompt(session, "Hi"))["stopReason"] == "end_turn"
    chunks = [
        message["update"]["update"] for message in driver.said if says("Hel")(message) or says("lo.")(message)
    ]
    assert len({chunk["messageId"] for chunk in chunks}) == 1
    assert await driver.replay(session) == [("user_message_chunk", "Hi"), ("agent_message_chunk", "Hello.")]
    await driver.call("session/close", sessionId=session)
    before = len(driver.said)
    assert (await driver.open("session/resume", sessionId=session))["modes"]["currentModeId"] == "default"
    assert not [message for message in driver.said[before:] if "content" in message["update"]["update"]]
    driver.provider.script(["Again."])
    await driver.prompt(session, "And?")
    sent = driver.provider.requests[-1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]


async def test_pages_follow_each_other_and_keep_to_their_filter(driver: Driver, tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        made = [(await sessions.create(LOCAL, cwd=f"/p{number % 2}")).id for number in range(120)]
    seen: list[str] = []
    page: Json = {"nextCursor": None}
    while "nextCursor" in page:
        page = await driver.call("session/list", **({"cursor": page["nextCursor"]} if seen else {}))
        seen += [row["sessionId"] for row in page["sessions"]]
    assert sorted(seen) == sorted(made)
    first = await driver.call("session/list", cwd="/p1")
    assert {row["cwd"] for row in first["sessions"]} == {"/p1"}
    second = await driver.call("session/list", cwd="/p1", cursor=first["nextCursor"])
    assert len(first["sessions"]) + len(second["sessions"]) == 60
    assert await driver.call("session/list", cwd="/nowhere") == {"sessions": []}
    for wrong in ({"cursor": first["nextCursor"]}, {"cursor": "x"}, {"cwd": "p1"}, {"archived": "some"}):
        with pytest.raises(Refusal) as refused:
            await driver.call("session/list", **wrong)
        assert refused.value.code == -32602


async def test_forks_titles_archives_and_deletion(driver: Driver) -> None:
    driver.provider.script(["Blue."], ["Barn"])
    session = (await driver.open())["sessionId"]
    await driver.prompt(session, "Which colour?")
    fork = (await driver.open("session/fork", sessionId=session))["sessionId"]
    assert fork != session
    driver.provider.script(["Red."])
    await driver.prompt(fork, "Another?")
    assert [text for _, text in await driver.replay(fork)] == ["Which colour?", "Blue.", "Another?", "Red."]
    assert [text for _, text in await driver.replay(session)] == ["Which colour?", "Blue."]
    assert await driver.call("session/set_title", sessionId=session, title=" Colours ") == {
        "title": "Colours"
    }
    assert await driver.call("session/status", sessionId=session) == {"status": "open"}
    assert await driver.call("session/archive", sessionId=session) == {}
    assert await driver.call("session/status", sessionId=session) == {"status": "saved"}
    listed = {
        archived: [
            row["sessionId"] for row in (await driver.call("session/list", archived=archived))["sessions"]
        ]
        for archived in ("exclude", "include", "only")
    }
    assert listed["exclude"] == [fork]
    assert listed["only"] == [session]
    assert sorted(listed["include"]) == sorted([fork, session])
    assert await driver.call("session/unarchive", sessionId=session) == {}
    rows = {row["sessionId"]: row for row in (await driver.call("session/list"))["sessions"]}
    assert rows[session]["title"] == "Colours"
    assert rows[session]["archived"] is False
    assert rows[fork]["_meta"]["hitherto/parent"] == session
    assert await driver.call("session/delete", sessionId=session) == {}
    assert await driver.call("session/delete", sessionId=session) == {}
    assert [row["sessionId"] for row in (await driver.call("session/list"))["sessions"]] == [fork]


async def test_a_tool_asks_and_sees_the_unsaved_file(driver: Driver) -> None:
    path = str(driver.folder / "a.txt")
    (driver.folder / "a.txt").write_text("saved")
    await driver.tell(id=0, buffer={"path": path, "content": "unsaved"})
    driver.provider.script(
        [ToolUse("read_file", {"path": path}, id="t1")],
        [ToolUse("write_file", {"path": path, "content": "new"}, id="t2")],
        ["Done."],
    )
    session = (await driver.open())["sessionId"]
    assert (await driver.prompt(session, "Change it"))["stopReason"] == "end_turn"
    told = [name for message in driver.said for name in message if name != "update"]
    assert "read" in told
    assert told.index("asked") < told.index("wrote")
    assert "unsaved" in json.dumps(driver.provider.requests[1])
    (question,) = [message["asked"] for message in driver.said if "asked" in message]
    assert question["toolCall"]["toolCallId"] == "t2"
    assert (driver.folder / "a.txt").read_text() == "saved"


@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
async def test_a_running_prompt_is_cancelled(driver: Driver, how: str) -> None:
    driver.provider.script(["Half", PAUSE, "whole"])
    session = (await driver.open())["sessionId"]
    prompt = await driver.begin_prompt(session, "Go")
    await driver.until(says("Half"))
    if how == "session/cancel":
        await driver.tell(notify=how, params={"sessionId": session})
        assert (await driver.end(prompt))["stopReason"] == "cancelled"
    else:
        await driver.tell(abort=prompt)
        with pytest.raises(Refusal) as refused:
            await driver.end(prompt)
        assert refused.value.code == -32800
    driver.provider.go.set()
    assert [text for _, text in await driver.replay(session)] == ["Go", "Half"]


async def test_modes_and_options_are_set(driver: Driver) -> None:
    session = (await driver.open())["sessionId"]
    assert await driver.call("session/set_mode", sessionId=session, modeId="plan") == {}
    answer = await driver.call(
        "session/set_config_option", sessionId=session, configId="thinking", value="low"
    )
    current = {option["id"]: option["currentValue"] for option in answer["configOptions"]}
    assert current == {"model": "default", "mode": "plan", "thinking": "low"}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/load", {"cwd": "/p", "mcpServers": []}, -32002),
        ("session/resume", {"cwd": "/p"}, -32002),
        ("session/fork", {"cwd": "/p", "mcpServers": []}, -32002),
        ("session/prompt", {"prompt": [{"type": "text", "text": "Hi"}]}, -32002),
        ("session/set_title", {"title": "T"}, -32002),
        ("session/archive", {}, -32002),
        ("session/unarchive", {}, -32002),
        ("session/status", {}, -32002),
        ("session/set_mode", {"modeId": "plan"}, -32002),
        ("session/set_config_option", {"configId": "mode", "value": "plan"}, -32002),
        ("session/new", {"cwd": "p", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/p", "mcpServers": [{"name": "x"}]}, -32602),
        ("session/new", {"cwd": "/p", "mcpServers": [], "additionalDirectories": ["q"]}, -32602),
        ("session/nonesuch", {}, -32601),
        ("_nonesuch", {}, -32601),
    ],
)
async def test_what_cannot_be_is_refused_with_its_code(
    driver: Driver, method: str, params: Json, code: int
) -> None:
    unknown = {"sessionId": "nonesuch"} if code == -32002 else {}
    with pytest.raises(Refusal) as refused:
        await driver.call(method, **unknown, **params)
    assert refused.value.code == code
    if code == -32002:
        assert refused.value.data["sessionId"] == "nonesuch"
    assert await driver.call("session/list") == {"sessions": []}


async def test_closing_an_unknown_session_and_a_wrong_folder_or_title(driver: Driver) -> None:
    assert await driver.call("session/close", sessionId="nonesuch") == {}
    session = (await driver.open())["sessionId"]
    with pytest.raises(Refusal) as refused:
        await driver.open("session/load", sessionId=session, cwd="/elsewhere")
    assert (refused.value.code, refused.value.data["cwd"]) == (-32602, str(driver.folder))
    for method, params in (
        ("session/set_title", {"title": " "}),
        ("session/set_mode", {"modeId": "nonesuch"}),
        ("session/set_config_option", {"configId": "nonesuch", "value": "x"}),
        ("session/prompt", {"prompt": [{"type": "nonesuch"}]}),
    ):
        with pytest.raises(Refusal) as refused:
            await driver.call(method, sessionId=session, **params)
        assert refused.value.code == -32602
